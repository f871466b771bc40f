"""Shares of an account for all hosts: the database keeps the division, and its clock decides."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from math import inf

import anyio
import psycopg

from pipeline.errors import ConfigurationError
from pipeline.stores import sharing
from pipeline.stores.division_json import as_json, from_json
from pipeline.stores.leased_shares import LeasedShare, Renew, Waiting, leased_shares
from pipeline.stores.postgres.connection import Database
from pipeline.stores.protocols import Share
from pipeline.stores.shared import AskingProcess
from pipeline.stores.sharing import Division, HeldShare, ShareRenewal, ShareWish
from pipeline.stores.values import LeaseHolder, ServerAccount

RENEWAL_INTERVAL_S = 1.0

_ADD = "INSERT INTO precheck.account(scope, api, division) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_READ = """
SELECT division::text, greatest(latest, extract(epoch FROM clock_timestamp())::float8)
FROM precheck.account WHERE scope = %s AND api = %s FOR UPDATE
"""
_LOOK = """
SELECT division::text, greatest(latest, extract(epoch FROM clock_timestamp())::float8)
FROM precheck.account WHERE scope = %s AND api = %s
"""
_WRITE = "UPDATE precheck.account SET division = %s, latest = %s WHERE scope = %s AND api = %s"


class PostgresShares:
    """The accounts of a ledger in PostgreSQL, divided among the processes of all hosts."""

    def __init__(  # noqa: PLR0913 (who asks, and what a wait needs)
        self,
        database: Database,
        process: AskingProcess,
        *,
        clock: Callable[[], datetime],
        ticks: Callable[[], float],
        waiting: Callable[[LeaseHolder], None],
        wait_max_s: float = inf,
    ) -> None:
        """Lease nothing yet.

        Args:
            database: where the ledger is; a connection of its own is made for each lease.
            process: who asks.
            clock: the time in UTC, for those who wait for it.
            ticks: the monotonic clock of this host.
            waiting: called with each other process that is waited for.
            wait_max_s: how long to wait for them, in all.
        """
        self._database = database
        self._process = process
        self._clock = clock
        self._ticks = ticks
        self._announce = waiting
        self._wait_max_s = wait_max_s

    @asynccontextmanager
    async def lease(self, accounts: Collection[ServerAccount]) -> AsyncIterator[Mapping[str, Share]]:
        """Wait until there is a share of each account, and have them until the block ends.

        Raises:
            ConfigurationError: a process on another host has other limits for an account.
            IncompleteError: others left nothing in time, or the database is away; nothing was sent.
        """
        waiting = Waiting(self._announce, anyio.current_time() + self._wait_max_s)
        async with AsyncExitStack() as stack:
            databases = {account: stack.enter_context(self._database.another()) for account in accounts}

            def new_share(account: ServerAccount) -> LeasedShare:
                new_holder = partial(self._new_holder, databases[account], account)
                return LeasedShare(account, new_holder, ticks=self._ticks)

            leasing = leased_shares(accounts, new_share, every_s=RENEWAL_INTERVAL_S, waiting=waiting)
            yield await stack.enter_async_context(leasing)

    def _new_holder(self, database: Database, account: ServerAccount) -> Renew:
        """A holder of a share, of one lease alone: what an earlier one of this process sent still counts."""
        me = _joining(self._process, account, f"{self._process.id} {self._ticks():.9f}", self._clock())

        async def renew(wish: ShareWish) -> ShareRenewal:
            return await database.run_in_thread(lambda db: _renewed(db, account, wish, me))

        return renew


def require_same_limits(
    database: Database, process: AskingProcess, accounts: Collection[ServerAccount], *, now: datetime
) -> None:
    """Refuse to begin a run beside a process that goes by other limits; nothing is leased, nothing written.

    Raises:
        ConfigurationError: it names both hosts.
        IncompleteError: as `Database.run`.
    """
    for account in accounts:
        key = account.scope, account.api
        row = database.run(lambda db, key=key: db.execute(_LOOK, key).fetchone())  # type: ignore[misc]
        if row is not None:
            me = _joining(process, account, str(process.id), now)
            _require_same_limits(sharing.with_other_limits(from_json(row[0]), me, row[1]), me)


def _joining(process: AskingProcess, account: ServerAccount, holder: str, now: datetime) -> HeldShare:
    """This process at an account, as others see it."""
    server, began = account.scope.partition("|")[0], now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return sharing.joining(holder, LeaseHolder(server, process.pid, began, process.host), account)


def _renewed(db: psycopg.Connection, account: ServerAccount, wish: ShareWish, me: HeldShare) -> ShareRenewal:
    """Renew one lease; it may be done twice, where the reply is lost.

    It is durable before it counts: a database that forgets in a crash who has what would give it away again.
    """
    key = account.scope, account.api
    with db.transaction():
        row = db.execute(_READ, key).fetchone()
        if row is None:
            db.execute(_ADD, (*key, as_json(Division())))
            row = db.execute(_READ, key).fetchone()
        assert row is not None
        content, now = row
        division = from_json(content)
        if not any(each.holder == me.holder for each in division.shares):
            _require_same_limits(sharing.with_other_limits(division, me, now), me)
        division, renewal = sharing.renewed(division, account, wish, me, now)
        db.execute(_WRITE, (as_json(division), now, *key))
    return renewal


def _require_same_limits(other: HeldShare | None, me: HeldShare) -> None:
    """Refuse to begin beside a process that goes by other limits.

    Raises:
        ConfigurationError: it names both hosts.
    """
    if other is not None:
        raise ConfigurationError(
            f"{me.who.server}: {_said(me)}, and {_said(other)}; set the same limits in the profiles of both"
        )


def _said(share: HeldShare) -> str:
    cap = "no daily_cap" if share.daily_cap is None else f"daily_cap = {share.daily_cap} ({share.cap_window})"
    limits = f"rate_per_s = {share.rate_per_s:g}, in_flight_max = {share.in_flight_max} and {cap}"
    return f"process {share.who.pid} on {share.who.host} has {limits}"
