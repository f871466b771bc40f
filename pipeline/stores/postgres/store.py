"""A ledger in PostgreSQL, as jobs use it: find or begin runs, and read their records."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Self
from uuid import UUID

import polars as pl
import psycopg
from pydantic import SecretStr

from pipeline.errors import ConfigurationError, UsageError
from pipeline.frames import CHECKS
from pipeline.stores.leased_shares import LeasedShares, LeaseTerms
from pipeline.stores.postgres import leases, schema
from pipeline.stores.postgres.address import LedgerAddress
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.daily_caps import DailyCaps, PostgresCap
from pipeline.stores.postgres.keys import StoreKeys, WrappedKey, unwrapped
from pipeline.stores.postgres.lines import damaged
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.postgres.recorded import recorded
from pipeline.stores.postgres.shared_run import LEASE_S, PostgresRun
from pipeline.stores.postgres.shares import postgres_shares, require_same_limits
from pipeline.stores.shared import (
    AccountCap,
    AskingProcess,
    QuestionParts,
    QuestionPlan,
    StoreClocks,
    StoredRun,
)
from pipeline.stores.values import RecordedRequest, RunIdentity, ServerAccount
from pipeline.wording import Sentence

_STORE = "SELECT version, salt, hidden_key FROM precheck.store"
_HOLDER = STATEMENTS["store.holder"]
_TIMES = """to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
_RUN = f"""
SELECT run, id, tool_version, {_TIMES.format("created_at")}, {_TIMES.format("finished_at")},
 input_sha256, profile_sha256, environment, plan_hash, seal FROM precheck.run
"""  # noqa: S608 (constants)
_BEGIN = STATEMENTS["store.begin"]
_FINISH = "UPDATE precheck.run SET finished_at = clock_timestamp() WHERE run = %s AND finished_at IS NULL"
_WHAT = ("input file", "profile", "environment")


class PostgresStore:
    """An open ledger; a `SharedStore` and a context manager. Made by `PostgresStore.open`."""

    def __init__(self, database: Database, keys: StoreKeys, process: AskingProcess) -> None:
        self.database = database
        self.keys = keys
        self.process = process

    @classmethod
    def open(
        cls, address: LedgerAddress, secret: SecretStr, process: AskingProcess, clocks: StoreClocks
    ) -> Self:
        """Connect, and verify that the ledger has this version and the user's key.

        Raises:
            ConfigurationError: the server refuses access, or the ledger is missing or has another version or
            key.
            IncompleteError: the server stayed unavailable until the timeout.
        """
        database = Database(address, clocks)
        try:
            keys = opened_keys(database, secret)
            database.run(lambda db: db.execute(_HOLDER, process))
        except BaseException:
            database.close()
            raise
        return cls(database, keys, process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Record that this process leaves, and close the connection. Safe to call twice."""
        if self.database.is_connected:
            self.database.try_once(lambda db: leases.leave(db, self.process.id))
        self.database.close()

    def be_seen(self) -> None:
        """Record that this process is alive although it holds no chunk."""
        self.database.try_once(lambda db: leases.be_seen(db, self.process.id))

    def wait_at_most(self, wait_max_s: float) -> None:
        """Limit how long to wait for an unavailable server."""
        self.database.clocks = self.database.clocks._replace(wait_max_s=wait_max_s)

    def plan_of(self, parts: Iterable[pl.DataFrame]) -> QuestionPlan:
        """Return the plan that all hosts of a shared run must agree on."""
        hashes, question_count = [], 0
        for part in parts:
            assert part.schema == CHECKS
            question_count += part.height
            hashes.append(
                self.keys.plan(part.write_csv(quote_style="non_numeric", line_terminator="\n").encode())
            )
        return QuestionPlan(self.keys.plan(b"".join(hashes)), question_count)

    def join(
        self, identity: RunIdentity, plan: QuestionPlan, *, new_id: UUID, run_id: UUID | None = None
    ) -> StoredRun:
        """Return the run that this process works on; begin it if it does not exist."""
        return self.database.run(lambda db: self._join(db, identity, plan, new_id, run_id))

    def find(self, run_id: UUID) -> StoredRun | None:
        """Return a run by its id; None if it is not in this ledger."""
        found = self.database.run(lambda db: db.execute(_RUN + "WHERE id = %s", (run_id,)).fetchone())
        return None if found is None else StoredRun(*found[:5])

    def shared_run(
        self,
        run: StoredRun,
        questions: QuestionParts,
        *,
        caps: Mapping[str, AccountCap] | None = None,
        lease_s: float = LEASE_S,
    ) -> PostgresRun:
        """Return a run's ledger and source of questions, for this process; the caller closes it."""
        counted = DailyCaps(caps) if caps else None
        return PostgresRun(
            self.database, self.keys, run, self.process.id, questions, caps=counted, lease_s=lease_s
        )

    def cap(self, cap: AccountCap) -> PostgresCap:
        """Return the count of a daily cap."""
        return PostgresCap(self.database, cap)

    def shares(self, terms: LeaseTerms) -> LeasedShares:
        """Divide the accounts among the processes of all hosts."""
        return postgres_shares(self.database, self.process, terms)

    def require_same_limits(self, accounts: Collection[ServerAccount], *, now: datetime) -> None:
        """Refuse to begin a run while another process has different limits."""
        require_same_limits(self.database, self.process, accounts, now=now)

    def lines(self, run: StoredRun) -> Iterator[RecordedRequest]:
        """Yield every line of a run, verified when read, over a separate connection."""
        return recorded(self.database, self.keys, run)

    def mark_finished(self, run: StoredRun) -> bool:
        """Record that every question has its final answer; False if another process has already done so."""
        return self.database.run(lambda db: db.execute(_FINISH, (run.number,)).rowcount == 1)

    def _join(
        self,
        db: psycopg.Connection,
        identity: RunIdentity,
        plan: QuestionPlan,
        new_id: UUID,
        run_id: UUID | None,
    ) -> StoredRun:
        *same, tool_version = identity
        place = self.database.address.place
        if run_id is not None:
            row = db.execute(_RUN + "WHERE id = %s", (run_id,)).fetchone()
            if row is None:
                raise UsageError(Sentence("stores.this_ledger_no_run", place=place, run_id=str(run_id)))
        else:
            seal = self.keys.seal(plan.hash, "\n".join(("run", str(new_id), *identity)))
            db.execute(_BEGIN, (new_id, *identity, *plan, seal))
            where = "WHERE (input_sha256, profile_sha256, environment) = (%s, %s, %s) AND finished_at IS NULL"
            row = db.execute(_RUN + where, same).fetchone()
            if row is None:  # it was finished at this very moment
                return self._join(db, identity, plan, new_id, run_id)
        run = StoredRun(*row[:5])
        *theirs, their_plan, seal = row[5:]
        if seal != self.keys.seal(their_plan, "\n".join(("run", str(run.id), *theirs, run.tool_version))):
            raise damaged(place, run.number)
        for what, ours, other in zip(_WHAT, same, theirs, strict=True):
            if ours != other:
                raise UsageError(Sentence("stores.run_another_choose", id=str(run.id), what=what))
        if their_plan != plan.hash:
            raise ConfigurationError(
                Sentence("stores.this_run_begun", tool_version=run.tool_version, tool_version_2=tool_version)
            )
        return run


def opened_keys(database: Database, secret: SecretStr) -> StoreKeys:
    """Return the keys of a ledger of this version.

    Raises:
        ConfigurationError: the ledger has another version or key.
        IncompleteError: see `Database.run`.
    """
    row = database.run(lambda db: db.execute(_STORE).fetchone())
    place = database.address.place
    if row is None or row[0] != schema.VERSION:
        theirs = 0 if row is None else row[0]
        raise ConfigurationError(
            Sentence("stores.ledger_s_tables", place=place, theirs=theirs, version=schema.VERSION)
        )
    keys = unwrapped(WrappedKey(bytes(row[1]), bytes(row[2])), secret)
    if keys is None:
        raise ConfigurationError(Sentence("stores.this_ledger_another", place=place))
    return keys
