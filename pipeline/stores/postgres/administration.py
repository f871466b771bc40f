"""Tasks for a ledger's owner: create it, grant access, close a run, erase names."""

from typing import Self
from uuid import UUID

import psycopg
from psycopg import errors, sql
from pydantic import SecretStr

from pipeline.errors import ConfigurationError, IncompleteError, UsageError
from pipeline.stores.postgres import schema
from pipeline.stores.postgres.address import LedgerAddress
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.inspection import findings
from pipeline.stores.postgres.keys import new_keys
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.postgres.status import state_of
from pipeline.stores.postgres.store import opened_keys
from pipeline.stores.shared import ClosedRun, StoreClocks, StoreFinding, StoreState
from pipeline.wording import Sentence

_WHO = STATEMENTS["administration.who"]
_IS_THERE = "SELECT to_regclass('precheck.store') IS NOT NULL"
_REKEY = "UPDATE precheck.store SET salt = %s, hidden_key = %s"
_RUN = STATEMENTS["administration.run"]
_AT_WORK = STATEMENTS["administration.at_work"]
_CLOSE = "UPDATE precheck.run SET finished_at = clock_timestamp() WHERE run = %s"
_ERASE = "SELECT precheck.erase_names(%s, %s)"


class PostgresCare:
    """A ledger as its owner or operator uses it; a `StoreCare`."""

    def __init__(self, address: LedgerAddress, clocks: StoreClocks, *, user: str | None = None) -> None:
        self._database = Database(address, clocks, user=user)
        self.place = address.place
        self.database = address.database
        self.user = address.user

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def create(self, secret: SecretStr, *, grant_to: str | None) -> bool:
        """See `StoreCare.create`.

        Raises:
            ConfigurationError: the ledger exists with another version or key, the role is unknown, or the
            owner lacks permission.
        """
        self._database.run(lambda db: _require_owner(db, self.place))
        is_new = self._database.run(lambda db: _create(db, secret))
        opened_keys(self._database, secret)
        if grant_to is not None:
            try:
                self._database.run(lambda db: _grant(db, grant_to))
            except errors.UndefinedObject:
                raise ConfigurationError(
                    Sentence("stores.there_no_role", place=self.place, grant_to=grant_to)
                ) from None
        return is_new

    def rekey(self, secret: SecretStr, new_secret: SecretStr) -> None:
        """Replace the user's key of this ledger."""
        wrapped = opened_keys(self._database, secret).wrapped(new_secret)
        self._database.run(lambda db: db.execute(_REKEY, wrapped))

    def close_run(self, run_id: UUID) -> ClosedRun:
        """See `StoreCare.close_run`."""
        return self._database.run(lambda db: _closed(db, run_id, self.place))

    def findings(self, secret: SecretStr, *, is_restored: bool) -> list[StoreFinding]:
        """Check the ledger and its server."""
        opened_keys(self._database, secret)
        return findings(self._database, is_restored=is_restored)

    def state(self) -> StoreState:
        """Return the current activity in the ledger."""
        return self._database.run(state_of)

    def purge_names(self, run_id: UUID, *, answers_before: str) -> int:
        """See `StoreCare.purge_names`.

        Erased names disappear from the tables at once, and from the database's files at the next vacuum.
        Backups and archived logs still contain them.
        """
        found = self._database.run(lambda db: db.execute(_ERASE, (run_id, answers_before)).fetchone())
        return 0 if found is None else int(found[0])


def _require_owner(db: psycopg.Connection, place: str) -> None:
    """Refuse a role that neither can create a ledger here nor owns the existing one."""
    row = db.execute(_WHO).fetchone()
    assert row is not None
    role, name, owner_of_database, may_create, owner, may_use = row
    if owner is not None and not may_use:
        raise ConfigurationError(
            Sentence("stores.ledger_already_which", place=place, name=name, owner=owner, role=role)
        )
    if owner is None and not may_create:
        raise ConfigurationError(
            Sentence(
                "stores.may_not_create",
                place=place,
                role=role,
                name=name,
                owner_of_database=owner_of_database,
            )
        )


def _create(db: psycopg.Connection, secret: SecretStr) -> bool:
    with db.transaction():
        # Two processes may create it at the same time: the second one finds it existing.
        db.execute("SELECT pg_advisory_xact_lock(hashtext('precheck'))")
        [is_there] = db.execute(_IS_THERE).fetchone() or (False,)
        if is_there:
            return False
        db.execute("CREATE SCHEMA IF NOT EXISTS precheck")
        db.execute(schema.TABLES, prepare=False)
        wrapped = new_keys().wrapped(secret)
        db.execute(
            "INSERT INTO precheck.store(version, salt, hidden_key) VALUES (%s, %s, %s)",
            (schema.VERSION, *wrapped),
        )
    return True


def _grant(db: psycopg.Connection, role: str) -> None:
    with db.transaction():
        db.execute(sql.SQL("GRANT USAGE ON SCHEMA precheck TO {}").format(sql.Identifier(role)))
        for grant in schema.grants():
            db.execute(sql.SQL("GRANT " + grant + " TO {}").format(sql.Identifier(role)))


def _closed(db: psycopg.Connection, run_id: UUID, place: str) -> ClosedRun:
    with db.transaction():
        row = db.execute(_RUN, (run_id,)).fetchone()
        if row is None:
            raise UsageError(Sentence("stores.this_ledger_no", place=place, run_id=str(run_id)))
        run, question_count, was_closed, answer_count = row
        at_work = db.execute(_AT_WORK, (run,)).fetchone()
        if at_work is not None:
            pid, host = at_work
            raise IncompleteError(Sentence("stores.run_process_on", run_id=str(run_id), pid=pid, host=host))
        if not was_closed:
            db.execute(_CLOSE, (run,))
    return ClosedRun(question_count, answer_count, was_closed)
