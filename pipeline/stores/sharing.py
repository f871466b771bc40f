"""The division of a server account among concurrent processes; its clock is an argument.

Each process leases a whole number of requests per window and of slots in flight, and keeps to them for the
time of its lease. Parts are equal: the first processes get the remainder, and if there is less than one each,
the last ones get nothing until another leaves.

Rules that keep the sum within the account, whichever process joins, dies or sleeps:

- A process with more than its part first uses less, and returns the rest in its next renewal. The returned
part is free one window later, as its last requests may count until then.
- A process that stops renewing keeps its part until its lease ends, and by its own clock sends nothing after
that. Its requests are free a window after the lease, its slots once the last reply is due.
- Only free parts can be taken.
- Requests are useless without slots, and slots without requests: a process takes both or neither. So no two
wait for each other, each with what the other lacks.

A process with limits different from the first one's gets no part while that runs.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import NamedTuple, Self

from pipeline.stores.values import LeaseHolder, ServerAccount

LEASE_S = 5.0
PAUSE_MAX_S = 60.0
"""The longest pause that one process can impose on all."""


class SharePart(NamedTuple):
    """A part of an account."""

    requests: int  # per window
    slots: int


NOTHING = SharePart(0, 0)


class HeldShare(NamedTuple):
    """The share of an account that a process holds. Times are of one clock, from 0 on."""

    holder: str  # an id used only once
    order: int  # a number greater than those of earlier processes
    who: LeaseHolder
    rate_per_s: float  # configured rate of the account
    in_flight_max: int
    part: SharePart
    until: float  # the end of its lease
    given_up: SharePart  # the most it had in the last window before `given_up_until`
    given_up_until: float
    daily_cap: int | None = None
    cap_window: str | None = None

    @property
    def counted(self) -> SharePart:
        """The part reserved for this process."""
        return _each(max, self.part, self.given_up)


class Division(NamedTuple):
    """An account, divided."""

    shares: tuple[HeldShare, ...] = ()
    paused_until: float = 0.0  # the server requested a pause: no process sends anything before

    def as_json(self) -> str:
        """As stored, with readable names."""
        shares = [each._asdict() | {"who": each.who._asdict()} for each in self.shares]
        return json.dumps({"paused_until": self.paused_until, "shares": shares})

    @classmethod
    def of_json(cls, content: str | bytes) -> Self:
        """The division from `as_json`."""
        data = json.loads(content)
        shares = (
            each
            | {
                "who": LeaseHolder(**each["who"]),
                "part": SharePart(*each["part"]),
                "given_up": SharePart(*each["given_up"]),
            }
            for each in data["shares"]
        )
        return cls(tuple(HeldShare(**each) for each in shares), data["paused_until"])


class ShareWish(NamedTuple):
    """A process's report and request at a renewal."""

    kept: SharePart  # it has used no more than this since before the renewal began
    wants: bool = True  # whether it has anything to ask; otherwise it leaves
    pause_s: float = 0.0  # remaining pause requested by the server


class ShareRenewal(NamedTuple):
    """The share that a process may use for `LEASE_S` from its request."""

    part: SharePart
    more_in_s: float  # the time until more of its part may be free; inf if it has its whole part
    paused_s: float  # how long nothing may be sent, whatever the part
    behind: LeaseHolder | None  # the process that has to leave before this one gets a part
    kept_slots: int  # slots reserved for this process: its part, or those in flight if more


def renewed(
    division: Division, account: ServerAccount, wish: ShareWish, me: HeldShare, now: float
) -> tuple[Division, ShareRenewal]:
    """Renew, join or leave for the process `me` from `joining(...)`; time is monotonic."""
    shares = [settled for each in division.shares if (settled := _settled(each, account, now)) is not None]
    mine = next((each for each in shares if each.holder == me.holder), None)
    others = [each for each in shares if each is not mine]
    if mine is None:
        mine = me._replace(order=1 + max((each.order for each in others), default=0))
    mine = _with_less(mine, _each(min, wish.kept, mine.part), now + account.window_s)
    mine = mine._replace(until=now + LEASE_S if wish.wants else now)
    fair, behind = _fair_part(account, [*others, mine], mine, now) if wish.wants else (NOTHING, None)
    more = _each(max, mine.part, _each(min, fair, _room(account, others)))
    part = _each(min, more, fair)
    if min(part) > 0:
        mine = mine._replace(part=more)
    else:
        part = NOTHING
    paused_until = max(min(division.paused_until, now + PAUSE_MAX_S), now + min(wish.pause_s, PAUSE_MAX_S))
    renewal = ShareRenewal(
        part=part,
        more_in_s=inf if part == fair else _next_free_s(account, others, now),
        paused_s=paused_until - now,
        behind=behind,
        kept_slots=mine.part.slots,
    )
    return Division((*others, mine), paused_until), renewal


def joining(holder: str, who: LeaseHolder, account: ServerAccount) -> HeldShare:
    """A process without a part yet."""
    limits, cap = (account.rate_per_s, account.in_flight_max), (account.daily_cap, account.cap_window)
    return HeldShare(holder, 0, who, *limits, NOTHING, 0.0, NOTHING, 0.0, *cap)


def not_before(time: float, account: ServerAccount) -> Division:
    """An account with nothing free before a time, as the parts of other processes are unknown."""
    unknown = joining("", LeaseHolder(""), account)
    return Division((unknown._replace(given_up=_whole(account), given_up_until=time),))


def with_other_limits(division: Division, me: HeldShare, now: float) -> HeldShare | None:
    """A running process with other limits for the account, daily cap included, or None."""
    for each in division.shares:
        if each.until > now and each.holder != me.holder and _all_limits(each) != _all_limits(me):
            return each
    return None


def _settled(share: HeldShare, account: ServerAccount, now: float) -> HeldShare | None:
    """A share without the parts that have become free; None if all have."""
    if share.until > now + LEASE_S or share.given_up_until > now + LEASE_S + account.window_s:
        # A share from the future was written before a restart of the machine; its requests may count for a
        # window. One that could have been written now is so old that nothing counts.
        share = share._replace(
            part=NOTHING, until=now, given_up=share.counted, given_up_until=now + account.window_s
        )
    if now >= share.given_up_until:
        share = share._replace(given_up=NOTHING)
    if now >= share.until + account.window_s:
        share = share._replace(part=share.part._replace(requests=0))
    if now >= share.until + max(account.window_s, account.deadline_s):
        share = share._replace(part=NOTHING)
    return None if share.counted == NOTHING and now >= share.until else share


def _with_less(share: HeldShare, kept: SharePart, free_at: float) -> HeldShare:
    if kept == share.part:
        return share
    return share._replace(part=kept, given_up=share.counted, given_up_until=free_at)


def _fair_part(
    account: ServerAccount, shares: Sequence[HeldShare], mine: HeldShare, now: float
) -> tuple[SharePart, LeaseHolder | None]:
    """The fair part of a process once free; and the process ahead of it, if that is nothing."""
    live = sorted((each for each in shares if each.until > now), key=lambda each: each.order)
    alike = [each for each in live if _limits(each) == _limits(mine)]
    whole, rank = _whole(account), alike.index(mine)
    count = min(len(alike), *whole)
    if _limits(live[0]) != _limits(mine) or rank >= count:
        return NOTHING, live[0].who
    return SharePart(*(total // count + (rank < total % count) for total in whole)), None


def _room(account: ServerAccount, others: Iterable[HeldShare]) -> SharePart:
    """The part of an account that other processes do not use."""
    limits = (account.rate_per_s, account.in_flight_max)
    taken = [(each.counted, _limits(each)) for each in others if each.counted != NOTHING]
    if any(theirs != limits for _, theirs in taken):
        return NOTHING
    whole = _whole(account)
    return SharePart(*(max(whole[n] - sum(part[n] for part, _ in taken), 0) for n in range(2)))


def _next_free_s(account: ServerAccount, others: Iterable[HeldShare], now: float) -> float:
    """The time until another process's part becomes free by itself."""
    ends = [
        time
        for each in others
        for time in (each.given_up_until, each.until + account.window_s, each.until + account.deadline_s)
        if time > now
    ]
    return min(ends, default=inf) - now


def _whole(account: ServerAccount) -> SharePart:
    return SharePart(max(int(account.rate_per_s), 1), account.in_flight_max)


def _limits(share: HeldShare) -> tuple[float, int]:
    return share.rate_per_s, share.in_flight_max


def _all_limits(share: HeldShare) -> tuple[float, int, int | None, str | None]:
    return *_limits(share), share.daily_cap, share.cap_window


def _each(rule: Callable[[int, int], int], one: SharePart, other: SharePart) -> SharePart:
    return SharePart(rule(one.requests, other.requests), rule(one.slots, other.slots))
