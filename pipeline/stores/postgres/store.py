"""A ledger in PostgreSQL, as jobs use it: find or begin runs, and share the limits of servers."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Self
from uuid import UUID

import polars as pl
import psycopg
from pydantic import SecretStr

from pipeline.errors import ConfigurationError, UsageError
from pipeline.frames import CHECKS
from pipeline.stores import protocols, sharing
from pipeline.stores.leased_shares import LeasedShares, LeaseTerms, Renew, Waiting
from pipeline.stores.postgres import schema
from pipeline.stores.postgres.address import LedgerAddress
from pipeline.stores.postgres.connection import Database, first_row, only_row
from pipeline.stores.postgres.daily_caps import PostgresCap
from pipeline.stores.postgres.lines import StoreKeys, damaged, recorded
from pipeline.stores.postgres.schema import STATEMENTS
from pipeline.stores.postgres.shared_run import LEASE_S, SEEN, PostgresRun
from pipeline.stores.sharing import Division, HeldShare, ShareRenewal, ShareWish
from pipeline.stores.values import LeaseHolder, RecordedRequest, RunIdentity, ServerAccount
from pipeline.wording import Sentence

_LEFT = "UPDATE precheck.holder SET left_at = clock_timestamp() WHERE holder = %s"
_STORE = "SELECT version, salt, hidden_key FROM precheck.store"
_FINISH = "UPDATE precheck.run SET finished_at = clock_timestamp() WHERE run = %s AND finished_at IS NULL"
_DIFFERS = ("stores.run_of_other_file", "stores.run_of_other_profile", "stores.run_of_other_environment")
_ADD = "INSERT INTO precheck.account(scope, api, division) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_READ = STATEMENTS["store.read"]
_RUN = STATEMENTS["store.run"] + "\n"
_WRITE = "UPDATE precheck.account SET division = %s WHERE scope = %s AND api = %s"  # a trigger adds the time
RENEWAL_INTERVAL_S = 1.0


class PostgresStore(protocols.Closing):
    """An open ledger; a `SharedStore` and a context manager. Made by `PostgresStore.open`."""

    def __init__(self, database: Database, keys: StoreKeys, process: protocols.AskingProcess) -> None:
        self.database = database
        self.keys = keys
        self.process = process

    @classmethod
    def open(
        cls,
        address: LedgerAddress,
        secret: SecretStr,
        process: protocols.AskingProcess,
        clocks: protocols.StoreClocks,
    ) -> Self:
        """Connect, and verify the ledger's version and key; errors as in `StoreKind.opened_store`."""
        database = Database(address, clocks)
        try:
            keys = opened_keys(database, secret)
            database.run(lambda db: db.execute(STATEMENTS["store.holder"], process))
        except BaseException:
            database.close()
            raise
        return cls(database, keys, process)

    def close(self) -> None:
        if self.database.is_connected:
            self.database.try_once(lambda db: db.execute(_LEFT, (self.process.id,)))
        self.database.close()

    def be_seen(self) -> None:
        self.database.try_once(lambda db: db.execute(SEEN, (self.process.id,)))

    def wait_at_most(self, wait_max_s: float) -> None:
        self.database.clocks = self.database.clocks._replace(wait_max_s=wait_max_s)

    def plan_of(self, parts: Iterable[pl.DataFrame]) -> protocols.QuestionPlan:
        hashes, question_count = [], 0
        for part in parts:
            assert part.schema == CHECKS
            question_count += part.height
            hashes.append(
                self.keys.plan(part.write_csv(quote_style="non_numeric", line_terminator="\n").encode())
            )
        return protocols.QuestionPlan(self.keys.plan(b"".join(hashes)), question_count)

    def join(
        self, identity: RunIdentity, plan: protocols.QuestionPlan, *, new_id: UUID, run_id: UUID | None = None
    ) -> protocols.StoredRun:
        return self.database.run(lambda db: self._join(db, identity, plan, new_id, run_id))

    def find(self, run_id: UUID) -> protocols.StoredRun | None:
        found = self.database.run(lambda db: first_row(db, _RUN + "WHERE id = %s", (run_id,)))
        return None if found is None else protocols.StoredRun(*found[:5])

    def shared_run(
        self,
        run: protocols.StoredRun,
        questions: protocols.QuestionParts,
        *,
        caps: Mapping[str, protocols.AccountCap] | None = None,
        lease_s: float = LEASE_S,
    ) -> PostgresRun:
        return PostgresRun(
            self.database, self.keys, run, self.process.id, questions, caps=caps, lease_s=lease_s
        )

    def cap(self, cap: protocols.AccountCap) -> PostgresCap:
        return PostgresCap(self.database, cap)

    def shares(self, terms: LeaseTerms) -> LeasedShares:
        """Divide the accounts among the processes of all hosts; each lease has its own connection."""

        @asynccontextmanager
        async def opened(
            accounts: Collection[ServerAccount], _: Waiting
        ) -> AsyncIterator[Callable[[ServerAccount], Renew]]:
            with ExitStack() as stack:
                databases = {account: stack.enter_context(self.database.another()) for account in accounts}

                def new_holder(account: ServerAccount) -> Renew:
                    """Make a holder for one lease; requests of this process's earlier holder still count."""
                    me = self._joining(account, f"{self.process.id} {terms.ticks():.9f}", terms.clock())

                    async def renew(wish: ShareWish) -> ShareRenewal:
                        return await databases[account].run_in_thread(
                            lambda db: _renewed(db, account, wish, me)
                        )

                    return renew

                yield new_holder

        return LeasedShares(opened, terms, every_s=RENEWAL_INTERVAL_S)

    def require_same_limits(self, accounts: Collection[ServerAccount], *, now: datetime) -> None:
        for account in accounts:
            values = account.scope, account.api
            row = self.database.run(partial(first_row, query=STATEMENTS["store.look"], values=values))
            if row is not None:
                me = self._joining(account, str(self.process.id), now)
                _require_same_limits(Division.of_json(row[0]), me, row[1])

    def _joining(self, account: ServerAccount, holder: str, now: datetime) -> HeldShare:
        """Return this process at an account, as other processes see it."""
        server, began = account.scope.partition("|")[0], now.strftime("%Y-%m-%dT%H:%M:%SZ")
        who = LeaseHolder(server, self.process.pid, began, self.process.host)
        return sharing.joining(holder, who, account)

    def lines(self, run: protocols.StoredRun) -> Iterator[RecordedRequest]:
        """Yield every line of a run, verified when read, over a separate connection."""
        return recorded(self.database, self.keys, run)

    def mark_finished(self, run: protocols.StoredRun) -> bool:
        return self.database.run(lambda db: db.execute(_FINISH, (run.number,)).rowcount == 1)

    def _join(
        self,
        db: psycopg.Connection,
        identity: RunIdentity,
        plan: protocols.QuestionPlan,
        new_id: UUID,
        run_id: UUID | None,
    ) -> protocols.StoredRun:
        *same, tool_version = identity
        place = self.database.address.place
        if run_id is not None:
            row = first_row(db, _RUN + "WHERE id = %s", (run_id,))
            if row is None:
                raise UsageError(Sentence("stores.run_of_folder_missing", place=place, run_id=str(run_id)))
        else:
            seal = self.keys.seal(plan.hash, "\n".join(("run", str(new_id), *identity)))
            db.execute(STATEMENTS["store.begin"], (new_id, *identity, *plan, seal))
            where = "WHERE (input_sha256, profile_sha256, environment) = (%s, %s, %s) AND finished_at IS NULL"
            row = first_row(db, _RUN + where, same)
            if row is None:  # it was finished at this very moment
                return self._join(db, identity, plan, new_id, run_id)
        run = protocols.StoredRun(*row[:5])
        *theirs, their_plan, seal = row[5:]
        if seal != self.keys.seal(their_plan, "\n".join(("run", str(run.id), *theirs, run.tool_version))):
            raise damaged(place, run.number)
        for key, ours, other in zip(_DIFFERS, same, theirs, strict=True):
            if ours != other:
                raise UsageError(Sentence(key, id=str(run.id)))
        if their_plan != plan.hash:
            raise ConfigurationError(
                Sentence(
                    "stores.run_of_other_version", tool_version=run.tool_version, tool_version_2=tool_version
                )
            )
        return run


def opened_keys(database: Database, secret: SecretStr) -> StoreKeys:
    """Return the keys of a ledger of this version (ConfigurationError: it has another version or key)."""
    row = database.run(lambda db: first_row(db, _STORE))
    place = database.address.place
    if row is None or row[0] != schema.VERSION:
        theirs = 0 if row is None else row[0]
        raise ConfigurationError(
            Sentence("stores.table_version_differs", place=place, theirs=theirs, version=schema.VERSION)
        )
    keys = StoreKeys.unwrapped(row[1], row[2], secret)
    if keys is None:
        raise ConfigurationError(Sentence("stores.ledger_has_other_key", place=place))
    return keys


def _renewed(db: psycopg.Connection, account: ServerAccount, wish: ShareWish, me: HeldShare) -> ShareRenewal:
    """Renew a lease, idempotently and durably: a database that lost it in a crash would grant it again."""
    key = account.scope, account.api
    with db.transaction():
        if (row := first_row(db, _READ, key)) is None:
            db.execute(_ADD, (*key, Division().as_json()))
            row = only_row(db, _READ, key)
        content, now = row
        division = Division.of_json(content)
        if not any(each.holder == me.holder for each in division.shares):
            _require_same_limits(division, me, now)
        division, renewal = sharing.renewed(division, account, wish, me, now)
        db.execute(_WRITE, (division.as_json(), *key))
    return renewal


def _require_same_limits(division: Division, me: HeldShare, now: float) -> None:
    """Refuse to begin if another process has different limits; the error names both hosts."""
    if (other := sharing.with_other_limits(division, me, now)) is not None:
        limits = {"ours": _limits_text(me), "theirs": _limits_text(other)}
        raise ConfigurationError(Sentence("stores.limits_differ", server=me.who.server, **limits))


def _limits_text(share: HeldShare) -> str:
    cap = "no daily_cap" if share.daily_cap is None else f"daily_cap = {share.daily_cap} ({share.cap_window})"
    limits = f"rate_per_s = {share.rate_per_s:g}, in_flight_max = {share.in_flight_max} and {cap}"
    return f"process {share.who.pid} on {share.who.host} has {limits}"
