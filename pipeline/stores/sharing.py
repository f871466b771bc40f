"""Divide a server account among concurrent processes; the time is an argument.

Each process leases a whole number of requests per window and of slots for requests in flight, and stays
within them during its lease. Parts are equal; the first processes get the remainder. If there is less than
one for each, the last processes get nothing until another leaves.

These rules keep the sum within the account when any process joins, dies or sleeps:

- A process with more than its part first uses less, then returns the rest in its next renewal. The rest is
  free one window later, because its last requests may count until then.
- A process that stops renewing keeps its part until its lease ends, and sends nothing after that by its own
  clock. Its requests are free one window after the lease, its slots once the last reply is due.
- Only free parts can be taken.
- Requests are useless without slots, and slots without requests, so a process takes both or neither.
  Otherwise two processes could wait for each other, each holding what the other needs.

A process whose limits differ from those of the first process gets no part while that one runs.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import NamedTuple, Self

from pipeline.stores.values import LeaseHolder, ServerAccount

LEASE_S = 5.0
PAUSE_MAX_S = 60.0  # the longest pause that one process can impose on all


class SharePart(NamedTuple):
    """Part of an account."""

    requests: int  # per window
    slots: int


NOTHING = SharePart(0, 0)


class HeldShare(NamedTuple):
    """The share of an account that a process holds. All times are of one clock, from 0."""

    holder: str  # an id that is never reused
    order: int  # greater than that of every earlier process
    who: LeaseHolder
    rate_per_s: float  # the account's configured rate
    in_flight_max: int
    part: SharePart
    until: float  # the end of its lease
    given_up: SharePart  # the most it had during the last window before `given_up_until`
    given_up_until: float
    daily_cap: int | None = None
    cap_window: str | None = None

    @property
    def counted(self) -> SharePart:
        """The part that is reserved for this process."""
        return self.part if self.given_up == NOTHING else _each(max, self.part, self.given_up)


class Division(NamedTuple):
    """How an account is divided."""

    shares: tuple[HeldShare, ...] = ()
    paused_until: float = 0.0  # nothing may be sent before, because the server requested a pause

    def as_json(self) -> str:
        """Format as JSON with readable names, for storage."""
        shares = [each._asdict() | {"who": each.who._asdict()} for each in self.shares]
        return json.dumps({"paused_until": self.paused_until, "shares": shares})

    @classmethod
    def of_json(cls, content: str | bytes) -> Self:
        """Parse the result of `as_json`."""
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
    """A process's report and request, when it renews its lease."""

    kept: SharePart  # the most it has used since before the renewal began
    wants: bool = True  # True if it has something to ask; otherwise it leaves
    pause_s: float = 0.0  # the rest of a pause requested by the server


class ShareRenewal(NamedTuple):
    """The share that a process may use for `LEASE_S` after it requested the renewal."""

    part: SharePart
    more_in_s: float  # seconds until more of its part may be free; inf if it has its whole part
    paused_s: float  # seconds without sending anything, even with a part
    behind: LeaseHolder | None  # the process that must leave before this one gets a part
    kept_slots: int  # slots reserved for this process: its part, or its requests in flight if more


def renewed(
    division: Division, account: ServerAccount, wish: ShareWish, me: HeldShare, now: float
) -> tuple[Division, ShareRenewal]:
    """Renew, join or leave for the process `me`, made by `joining`; time is monotonic."""
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
    if min(part) <= 0:
        part = NOTHING
    elif more != mine.part:
        mine = mine._replace(part=more)
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
    """Return a process that has no part yet."""
    limits, cap = (account.rate_per_s, account.in_flight_max), (account.daily_cap, account.cap_window)
    return HeldShare(holder, 0, who, *limits, NOTHING, 0.0, NOTHING, 0.0, *cap)


def not_before(time: float, account: ServerAccount) -> Division:
    """Return an account with nothing free before a time, because other processes' parts are unknown."""
    unknown = joining("", LeaseHolder(""), account)
    return Division((unknown._replace(given_up=_whole(account), given_up_until=time),))


def with_other_limits(division: Division, me: HeldShare, now: float) -> HeldShare | None:
    """Return a running process with other limits for the account, daily cap included, or None."""
    for each in division.shares:
        if each.until > now and each.holder != me.holder and _all_limits(each) != _all_limits(me):
            return each
    return None


def _settled(share: HeldShare, account: ServerAccount, now: float) -> HeldShare | None:
    """Return a share without the parts that have become free; None if nothing is left."""
    if share.until > now + LEASE_S or share.given_up_until > now + LEASE_S + account.window_s:
        # A share from the future was written before the machine restarted; its requests may count for one
        # window. A share that could have been written now is so old that nothing counts.
        share = share._replace(
            part=NOTHING, until=now, given_up=share.counted, given_up_until=now + account.window_s
        )
    if now >= share.given_up_until and share.given_up != NOTHING:
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
    """Return a process's fair part, once free; if that is nothing, also the process ahead of it."""
    live = sorted((each for each in shares if each.until > now), key=lambda each: each.order)
    alike = [each for each in live if _limits(each) == _limits(mine)]
    whole, rank = _whole(account), alike.index(mine)
    count = min(len(alike), *whole)
    if _limits(live[0]) != _limits(mine) or rank >= count:
        return NOTHING, live[0].who
    return SharePart(*(total // count + (rank < total % count) for total in whole)), None


def _room(account: ServerAccount, others: Iterable[HeldShare]) -> SharePart:
    """Return the part of an account that other processes do not use."""
    limits = (account.rate_per_s, account.in_flight_max)
    taken = [(each.counted, _limits(each)) for each in others if each.counted != NOTHING]
    if any(theirs != limits for _, theirs in taken):
        return NOTHING
    whole = _whole(account)
    return SharePart(*(max(whole[n] - sum(part[n] for part, _ in taken), 0) for n in range(2)))


def _next_free_s(account: ServerAccount, others: Iterable[HeldShare], now: float) -> float:
    """Return the seconds until another process's part becomes free without its doing."""
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
    return one if one == other else SharePart(rule(one[0], other[0]), rule(one[1], other[1]))
