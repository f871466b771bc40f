"""Shares of an account on one machine: all of it, for one run at a time; the others wait."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path

import anyio

from pipeline.stores.protocols import Share
from pipeline.stores.scopes import canonical
from pipeline.stores.sqlite.server_lease import leased
from pipeline.stores.values import LeaseHolder, ServerAccount, ShareLimits


class WholeShare:
    """All that an account allows, for as long as the process holds the lease."""

    def __init__(self, account: ServerAccount) -> None:
        self._part = ShareLimits(account.rate_per_s, account.in_flight_max)

    def follow(self, use: Callable[[ShareLimits], None]) -> None:
        """Call this once: the share never changes."""
        use(self._part)


class LocalShares:
    """The accounts of one user, leased by one run at a time."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], datetime],
        waiting: Callable[[LeaseHolder], None],
        wait_max_s: float = inf,
    ) -> None:
        """Take no lease yet.

        Args:
            folder: where the locks are, one folder for all processes of a user.
            clock: the time in UTC, which other processes of this machine go by too.
            waiting: called with each other run that is waited for.
            wait_max_s: how long to wait for them, in all.
        """
        self._leased = partial(leased, folder, clock=clock, waiting=waiting)
        self._wait_max_s = wait_max_s

    @asynccontextmanager
    async def lease(self, accounts: Collection[ServerAccount]) -> AsyncIterator[Mapping[str, Share]]:
        """Wait until no other run asks any of the servers, and have all they allow until the block ends.

        Raises:
            IncompleteError: another run still holds one of the leases at the end of the wait.
            OutputError, DiskError: as `server_lease.turn`.
        """
        deadline = anyio.current_time() + self._wait_max_s
        async with AsyncExitStack() as stack:
            for scope, window_s in sorted(_windows(accounts).items()):
                await stack.enter_async_context(self._leased(scope, window_s, deadline=deadline))
            yield {account.api: WholeShare(account) for account in accounts}


def _windows(accounts: Iterable[ServerAccount]) -> dict[str, float]:
    """The window of each scope's rate: one lease for two APIs that one client asks of one server.

    Earlier versions leased the scope as it is spelled. It is leased too, so that a run of such a version,
    still at work on the day of the upgrade, and one of this version wait for each other.
    """
    windows: dict[str, float] = {}
    for account in accounts:
        window_s = max(1.0, 1 / account.rate_per_s)
        for scope in (canonical(account.scope), account.scope):
            windows[scope] = max(windows.get(scope, 0.0), window_s)
    return windows
