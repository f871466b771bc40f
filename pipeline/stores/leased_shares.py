"""Lease a share for one process, and renew it while it is used, in any store of divisions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from math import inf
from typing import NamedTuple

import anyio
import anyio.abc

from pipeline.errors import IncompleteError, PrecheckError, first_of
from pipeline.stores.sharing import LEASE_S, NOTHING, SharePart, ShareRenewal, ShareWish
from pipeline.stores.values import LeaseHolder, ServerAccount, ShareLimits
from pipeline.wording import Sentence

POLL_INTERVAL_S = 0.25  # how often a waiting process checks for a free share
LEAVE_MAX_S = 2.0
_NO_LIMITS = ShareLimits(0, 0)

Renew = Callable[[ShareWish], Awaitable[ShareRenewal]]  # renews one holder's lease in the store of divisions
NewHolder = Callable[[], Renew]  # makes a new holder; requests of this process's earlier holder still count


class WholeShare:
    """The whole account, for servers that no other process uses."""

    def __init__(self, account: ServerAccount) -> None:
        self._limits = ShareLimits(account.rate_per_s, account.in_flight_max)

    def follow(self, use: Callable[[ShareLimits], None], in_flight: Callable[[], int]) -> None:  # noqa: ARG002 (one process)
        """Call `use` once, because the share never changes."""
        use(self._limits)

    def pause(self, wait_s: float) -> None:
        """Do nothing: no other process needs to know."""

    def leave(self) -> None:
        """Do nothing: no other process wants the share."""

    async def rejoin(self) -> bool:
        """True: the share is always available."""
        return True


class Waiting(NamedTuple):
    """How a process waits for others when no share is free."""

    announce: Callable[[LeaseHolder], None]  # called with each process it waits for
    deadline: float = inf  # on anyio's clock

    def on(self, holder: LeaseHolder, announced: LeaseHolder | None) -> LeaseHolder:
        """Wait for this holder, and announce it if it is new; raise IncompleteError at the deadline."""
        if anyio.current_time() >= self.deadline:
            raise IncompleteError(
                holder.waited_for_in_vain,
                advice=(Sentence("stores.rerun_after_other_run"), Sentence("advice.wait_longer")),
            )
        if holder != announced:
            self.announce(holder)
        return holder

    async def sleep(self) -> None:
        """Sleep between two tries, but not beyond the deadline."""
        await anyio.sleep(max(min(POLL_INTERVAL_S, self.deadline - anyio.current_time()), 0))


class LeaseTerms(NamedTuple):
    """The clocks for leases, and how a process waits for others."""

    clock: Callable[[], datetime]  # the time in UTC, shared with the other processes
    ticks: Callable[[], float]  # the monotonic clock shared by all processes of this machine
    waiting: Callable[[LeaseHolder], None]  # called with each process it waits for
    wait_max_s: float = inf  # how long to wait for other processes in total


class LeasedShare:
    """A share that changes as other processes come and go."""

    def __init__(self, account: ServerAccount, new_holder: NewHolder, *, ticks: Callable[[], float]) -> None:
        """Start without a share; each return to the account uses a new holder. `ticks` is monotonic."""
        self._account = account
        self._new_holder = new_holder
        self._renew = new_holder()
        self._ticks = ticks
        self._use: Callable[[ShareLimits], None] = lambda _: None
        self._in_flight: Callable[[], int] = lambda: 0
        self._limits = _NO_LIMITS
        self._part = NOTHING
        self._kept_slots = 0
        self._until = self._paused_until = -inf
        self._pause_s = 0.0
        self._hurried = anyio.Event()
        self._is_wanted = self._is_held = True
        self._keep: Callable[[], object] = lambda: None
        self._has_left = anyio.Event()

    def follow(self, use: Callable[[ShareLimits], None], in_flight: Callable[[], int]) -> None:
        """Call `use` with the current limits, and again whenever they change."""
        self._use, self._in_flight = use, in_flight
        use(self._limits)

    def pause(self, wait_s: float) -> None:
        """Pause all processes for `wait_s`, as the server requested."""
        self._pause_s = max(self._pause_s, wait_s)
        self._hurried.set()

    def leave(self) -> None:
        """Release this share; shares of other accounts are kept."""
        self._is_wanted = False
        self._hurried.set()

    async def rejoin(self) -> bool:
        """See `Share.rejoin`; it does not wait, because this process may hold other shares."""
        await self._has_left.wait()
        self._renew, self._part = self._new_holder(), NOTHING
        self._is_wanted = self._is_held = True
        if await self.begin(None):
            self._has_left = anyio.Event()
            self._keep()
            return True
        await self.end()
        return False

    async def begin(self, waiting: Waiting | None) -> bool:
        """Wait for a share; False if another process must leave first and this one may not wait."""
        announced: LeaseHolder | None = None
        while (renewal := await self._renewed()).part == NOTHING:
            if renewal.behind is None:
                await anyio.sleep(min(renewal.more_in_s, POLL_INTERVAL_S))
            elif waiting is None:
                return False
            else:
                announced = waiting.on(renewal.behind, announced)
                await waiting.sleep()
        return True

    def keep_in(self, tasks: anyio.abc.TaskGroup, every_s: float) -> None:
        """Renew the lease in these tasks while it is wanted, at least once every `every_s`."""
        self._keep = partial(tasks.start_soon, self._kept_while_wanted, every_s)
        self._keep()

    async def _kept_while_wanted(self, every_s: float) -> None:
        """Renew the lease every `every_s`, and immediately if there is something to report."""
        while self._is_wanted:
            kept = self._kept()
            renewal = await self._renewed()
            if self._kept() == kept:
                self._hurried = anyio.Event()
                if not self._pause_s and self._is_wanted:
                    paused_s = self._paused_until - self._ticks()
                    wait_s = min(every_s, renewal.more_in_s, paused_s if paused_s > 0 else inf)
                    with anyio.move_on_after(wait_s):
                        await self._hurried.wait()
        await self.end()
        self._has_left.set()

    async def end(self) -> None:
        """Release the share; if that cannot be recorded, the lease expires."""
        if self._is_held:
            with suppress(PrecheckError):
                await self._renew(ShareWish(NOTHING, wants=False, pause_s=self._pause_s))
                self._is_held, self._pause_s = False, 0.0

    async def _renewed(self) -> ShareRenewal:
        began = self._ticks()
        pause_s, self._pause_s = self._pause_s, 0.0
        try:
            renewal = await self._renew(ShareWish(self._kept(), pause_s=pause_s))
        except BaseException:
            self._pause_s = max(self._pause_s, pause_s)  # other processes may not know about the pause
            raise
        self._part, self._until = renewal.part, began + LEASE_S
        self._kept_slots = renewal.kept_slots
        self._paused_until = self._ticks() + renewal.paused_s
        self._limits = self._current()
        self._use(self._limits)
        return renewal

    def _kept(self) -> SharePart:
        """The most that this process has used since it learned its part; requests in flight keep slots."""
        return self._part._replace(slots=max(self._part.slots, self._in_flight()))

    def _current(self) -> ShareLimits:
        requests, slots = self._part
        if self._part == NOTHING or self._paused_until > self._ticks():
            return _NO_LIMITS._replace(kept_slots=self._kept_slots)
        account = self._account
        is_whole = requests >= int(account.rate_per_s)
        rate_per_s = account.rate_per_s if is_whole else float(requests)
        return ShareLimits(rate_per_s, slots, self._until, self._kept_slots)


OpenDivisions = Callable[
    [Collection[ServerAccount], Waiting], AbstractAsyncContextManager[Callable[[ServerAccount], Renew]]
]
"""Opens the store of divisions during the block, and yields a factory of holders."""


class LeasedShares(NamedTuple):
    """Divides the accounts of a store among concurrent processes."""

    open_divisions: OpenDivisions
    terms: LeaseTerms
    every_s: float  # each lease is renewed at least once in this time

    @asynccontextmanager
    async def lease(self, accounts: Collection[ServerAccount]) -> AsyncIterator[Mapping[str, LeasedShare]]:
        """See `Shares.lease` (ConfigurationError: a process on another host has other limits for an account).

        OutputError, DiskError: the divisions cannot be written; IncompleteError: also if the store is
        unavailable.
        """
        _, ticks, announce, wait_max_s = self.terms
        waiting = Waiting(announce, anyio.current_time() + wait_max_s)
        async with self.open_divisions(accounts, waiting) as renewal_of:

            def new_share(account: ServerAccount) -> LeasedShare:
                return LeasedShare(account, partial(renewal_of, account), ticks=ticks)

            leasing = leased_shares(accounts, new_share, every_s=self.every_s, waiting=waiting)
            async with leasing as leased:
                yield leased


@asynccontextmanager
async def leased_shares(
    accounts: Collection[ServerAccount],
    new_share: Callable[[ServerAccount], LeasedShare],
    *,
    every_s: float,
    waiting: Waiting,
) -> AsyncIterator[Mapping[str, LeasedShare]]:
    """Hold a share of each account during the block, and renew each lease at least every `every_s`.

    A waiting process holds no share that another may wait for: it returns all of them, and tries again with
    the missing account first. So no two processes wait for each other, even if one lost some of its shares,
    for example after the machine slept. PrecheckError: a lease cannot be renewed; others as `Shares.lease`.
    """
    order = sorted(accounts, key=lambda account: (account.scope, account.api))
    while True:
        async with AsyncExitStack() as held:
            leased: dict[str, LeasedShare] = {}
            for account in order:
                share = new_share(account)
                holding = _held(share, every_s, None if leased else waiting)
                if not await held.enter_async_context(holding):
                    order.remove(account)
                    order.insert(0, account)
                    break
                leased[account.api] = share
            else:
                yield leased
                return


@asynccontextmanager
async def _held(share: LeasedShare, every_s: float, waiting: Waiting | None) -> AsyncIterator[bool]:
    """Hold a share during the block; yield True if one is held."""
    try:
        if not await share.begin(waiting):
            yield False
            return
        async with anyio.create_task_group() as tasks:
            share.keep_in(tasks, every_s)
            yield True
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    finally:
        with anyio.move_on_after(LEAVE_MAX_S, shield=True):
            await share.end()
