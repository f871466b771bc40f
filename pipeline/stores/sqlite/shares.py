"""Shares of accounts on one machine, divided among its runs."""

import os
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple

from pipeline.stores import sharing
from pipeline.stores.leased_shares import LeasedShares, LeaseTerms, Renew, Waiting
from pipeline.stores.sharing import LEASE_S, Division, HeldShare, ShareRenewal, ShareWish
from pipeline.stores.sqlite.division_file import DivisionFile
from pipeline.stores.sqlite.server_lease import ServerLock, file_name
from pipeline.stores.values import LeaseHolder, ServerAccount

RENEWAL_INTERVAL_S = 0.5


def local_shares(folder: Path, terms: LeaseTerms) -> LeasedShares:
    """Divide a user's accounts among the runs of a machine; locks and divisions are in one folder."""
    return LeasedShares(_Divisions(folder, terms).opened, terms, every_s=RENEWAL_INTERVAL_S)


class _Divisions(NamedTuple):
    folder: Path
    terms: LeaseTerms

    @asynccontextmanager
    async def opened(
        self, accounts: Collection[ServerAccount], waiting: Waiting
    ) -> AsyncIterator[Callable[[ServerAccount], Renew]]:
        async with AsyncExitStack() as stack:
            await self._take_locks(accounts, waiting, stack)
            files = {account: DivisionFile(self._path(account)) for account in accounts}
            for file in files.values():
                stack.callback(file.close)

            def new_holder(account: ServerAccount) -> Renew:
                me = self._me(account)

                async def renew(wish: ShareWish) -> ShareRenewal:
                    def rule(division: Division | None) -> tuple[Division, ShareRenewal]:
                        now = self.terms.ticks()
                        if division is None:
                            division = sharing.not_before(now + LEASE_S + account.window_s, account)
                        return sharing.renewed(division, account, wish, me, now)

                    return await files[account].change(rule)

                return renew

            yield new_holder

    async def _take_locks(
        self, accounts: Collection[ServerAccount], waiting: Waiting, stack: AsyncExitStack
    ) -> None:
        """Lock each server; if no other run uses it, only its last requests count, for one window."""
        while True:
            with ExitStack() as taken:
                rests: dict[str, float | None] = {}
                locks = []
                # One lock is enough if a client uses two APIs of a server.
                for scope in sorted({account.scope for account in accounts}):
                    window_s = max(account.window_s for account in accounts if account.scope == scope)
                    lock = ServerLock(self.folder, scope, window_s, self.terms.clock)
                    taken.callback(lock.end)
                    locks.append(lock)
                    rests[scope] = await lock.take(waiting)
                for account in accounts:
                    if (rest_s := rests[account.scope]) is not None:
                        await self._begin(account, rest_s)
                if all(lock.share() for lock in locks):
                    stack.enter_context(taken.pop_all())
                    return

    async def _begin(self, account: ServerAccount, rest_s: float) -> None:
        nobody = sharing.not_before(self.terms.ticks() + rest_s, account) if rest_s else Division()
        with closing(DivisionFile(self._path(account))) as file:
            await file.change(lambda _: (nobody, None))

    def _path(self, account: ServerAccount) -> Path:
        return self.folder / f"{file_name(f'{account.scope}|{account.api}')}.json"

    def _me(self, account: ServerAccount) -> HeldShare:
        """This process as a holder; no other process began at this moment with the same number."""
        began, pid = self.terms.ticks(), os.getpid()
        server = account.scope.partition("|")[0]
        who = LeaseHolder(server, pid, self.terms.clock().strftime("%Y-%m-%dT%H:%M:%SZ"))
        return sharing.joining(f"{pid} {began:.9f}", who, account)
