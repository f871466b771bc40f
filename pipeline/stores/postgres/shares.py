"""Shares of an account for all hosts: the division is in the database, whose clock decides."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime

import psycopg

from pipeline.errors import ConfigurationError
from pipeline.stores import sharing
from pipeline.stores.leased_shares import LeasedShares, LeaseTerms, Renew, Waiting
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import AskingProcess
from pipeline.stores.sharing import Division, HeldShare, ShareRenewal, ShareWish
from pipeline.stores.values import LeaseHolder, ServerAccount
from pipeline.wording import Sentence

RENEWAL_INTERVAL_S = 1.0

_ADD = "INSERT INTO precheck.account(scope, api, division) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_READ = STATEMENTS["shares.read"]
_LOOK = STATEMENTS["shares.look"]
_WRITE = "UPDATE precheck.account SET division = %s WHERE scope = %s AND api = %s"  # a trigger adds the time


def postgres_shares(database: Database, process: AskingProcess, terms: LeaseTerms) -> LeasedShares:
    """Divide the accounts of a PostgreSQL ledger among processes; each lease has its own connection."""

    @asynccontextmanager
    async def opened(
        accounts: Collection[ServerAccount], _: Waiting
    ) -> AsyncIterator[Callable[[ServerAccount], Renew]]:
        with ExitStack() as stack:
            databases = {account: stack.enter_context(database.another()) for account in accounts}

            def new_holder(account: ServerAccount) -> Renew:
                """Make a holder for one lease; requests of this process's earlier holder still count."""
                me = _joining(process, account, f"{process.id} {terms.ticks():.9f}", terms.clock())

                async def renew(wish: ShareWish) -> ShareRenewal:
                    return await databases[account].run_in_thread(lambda db: _renewed(db, account, wish, me))

                return renew

            yield new_holder

    return LeasedShares(opened, terms, every_s=RENEWAL_INTERVAL_S)


def require_same_limits(
    database: Database, process: AskingProcess, accounts: Collection[ServerAccount], *, now: datetime
) -> None:
    """Refuse to begin a run while another process has different limits; nothing is leased or written.

    Raises:
        ConfigurationError: another process has different limits; the error names both hosts.
        IncompleteError: see `Database.run`.
    """
    for account in accounts:
        key = account.scope, account.api
        row = database.run(lambda db, key=key: db.execute(_LOOK, key).fetchone())  # type: ignore[misc]
        if row is not None:
            me = _joining(process, account, str(process.id), now)
            _require_same_limits(sharing.with_other_limits(Division.of_json(row[0]), me, row[1]), me)


def _joining(process: AskingProcess, account: ServerAccount, holder: str, now: datetime) -> HeldShare:
    """Return this process at an account, as other processes see it."""
    server, began = account.scope.partition("|")[0], now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return sharing.joining(holder, LeaseHolder(server, process.pid, began, process.host), account)


def _renewed(db: psycopg.Connection, account: ServerAccount, wish: ShareWish, me: HeldShare) -> ShareRenewal:
    """Renew a lease; idempotent, because the reply may be lost.

    The lease must be durable before it counts: a database that lost it in a crash would grant it again.
    """
    key = account.scope, account.api
    with db.transaction():
        row = db.execute(_READ, key).fetchone()
        if row is None:
            db.execute(_ADD, (*key, Division().as_json()))
            row = db.execute(_READ, key).fetchone()
        assert row is not None
        content, now = row
        division = Division.of_json(content)
        if not any(each.holder == me.holder for each in division.shares):
            _require_same_limits(sharing.with_other_limits(division, me, now), me)
        division, renewal = sharing.renewed(division, account, wish, me, now)
        db.execute(_WRITE, (division.as_json(), *key))
    return renewal


def _require_same_limits(other: HeldShare | None, me: HeldShare) -> None:
    """Refuse to begin if another process has different limits; the error names both hosts."""
    if other is not None:
        raise ConfigurationError(
            Sentence(
                "stores.set_same_limits",
                server=me.who.server,
                ours=_limits_text(me),
                theirs=_limits_text(other),
            )
        )


def _limits_text(share: HeldShare) -> str:
    cap = "no daily_cap" if share.daily_cap is None else f"daily_cap = {share.daily_cap} ({share.cap_window})"
    limits = f"rate_per_s = {share.rate_per_s:g}, in_flight_max = {share.in_flight_max} and {cap}"
    return f"process {share.who.pid} on {share.who.host} has {limits}"
