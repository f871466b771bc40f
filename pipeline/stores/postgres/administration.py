"""Tasks for a ledger's owner: create and check it, grant access, show or close its runs, erase names."""

import os
from typing import Any
from uuid import UUID

import psycopg
from psycopg import errors, sql
from psycopg.rows import namedtuple_row
from pydantic import SecretStr

from pipeline.errors import ConfigurationError, IncompleteError, UsageError
from pipeline.stores.ledger_keys import KEY_BYTE_COUNT
from pipeline.stores.postgres import schema
from pipeline.stores.postgres.address import LedgerAddress
from pipeline.stores.postgres.connection import Database, only_row
from pipeline.stores.postgres.daily_caps import EDGE_S
from pipeline.stores.postgres.lines import StoreKeys
from pipeline.stores.postgres.schema import STATEMENTS
from pipeline.stores.postgres.store import opened_keys
from pipeline.stores.protocols import AccountState, ClosedRun, Closing, StoreClocks, StoreFinding, StoreState
from pipeline.stores.sharing import Division
from pipeline.wording import Moment, Sentence

SEEN_MAX_S = 60.0  # processes not seen for this long are not listed
_LATEST = "SELECT max(time) FROM (SELECT time FROM precheck.intent ORDER BY id DESC LIMIT 1000) AS latest"
_POWERS = ("inspection.is_superuser", "inspection.may_change_tables", "inspection.may_delete")
_REKEY = "UPDATE precheck.store SET salt = %s, hidden_key = %s"
_CLOSE = "UPDATE precheck.run SET finished_at = clock_timestamp() WHERE run = %s"


class PostgresCare(Closing):
    """A ledger as its owner or operator uses it; a `StoreCare`."""

    def __init__(self, address: LedgerAddress, clocks: StoreClocks, *, user: str | None = None) -> None:
        self._database = Database(address, clocks, user=user)
        self.place = address.place
        self.database = address.database
        self.user = address.user

    def close(self) -> None:
        self._database.close()

    def create(self, secret: SecretStr, *, grant_to: str | None) -> bool:
        """See `StoreCare.create` (ConfigurationError: other version or key, unknown role, no permission)."""
        self._database.run(lambda db: _require_owner(db, self.place))
        is_new = self._database.run(lambda db: _create(db, secret))
        opened_keys(self._database, secret)
        if grant_to is not None:
            try:
                self._database.run(lambda db: _grant(db, grant_to))
            except errors.UndefinedObject:
                raise ConfigurationError(
                    Sentence("stores.no_such_role", place=self.place, grant_to=grant_to)
                ) from None
        return is_new

    def rekey(self, secret: SecretStr, new_secret: SecretStr) -> None:
        wrapped = opened_keys(self._database, secret).wrapped(new_secret)
        self._database.run(lambda db: db.execute(_REKEY, wrapped))

    def close_run(self, run_id: UUID) -> ClosedRun:
        return self._database.run(lambda db: _closed(db, run_id, self.place))

    def findings(self, secret: SecretStr, *, is_restored: bool) -> list[StoreFinding]:
        opened_keys(self._database, secret)
        address = self._database.address
        return self._database.run(lambda db: _findings(db, address, is_restored=is_restored))

    def state(self) -> StoreState:
        return self._database.run(_state)

    def purge_names(self, run_id: UUID, *, answers_before: str) -> int:
        """Erased names leave the tables at once, the files at the next vacuum, and backups never."""
        query, values = "SELECT precheck.erase_names(%s, %s)", (run_id, answers_before)
        [count] = self._database.run(lambda db: only_row(db, query, values))
        return int(count)


def _state(db: psycopg.Connection) -> StoreState:
    # One snapshot, so that everything shown together is consistent.
    with db.transaction(), db.cursor(row_factory=namedtuple_row) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        [time] = cursor.execute(STATEMENTS["administration.now"]).fetchone() or ("",)
        runs = cursor.execute(STATEMENTS["administration.unfinished"]).fetchall()
        holders = cursor.execute(STATEMENTS["administration.holders"], (SEEN_MAX_S,)).fetchall()
        rows: list[Any] = cursor.execute(STATEMENTS["administration.accounts"]).fetchall()
        caps = cursor.execute(STATEMENTS["administration.caps"], (EDGE_S,)).fetchall()
    accounts = [AccountState(row.scope, row.api, Division.of_json(row.division), row.now) for row in rows]
    return StoreState(time, runs, holders, accounts, caps)


def _findings(db: psycopg.Connection, address: LedgerAddress, *, is_restored: bool) -> list[StoreFinding]:
    """Check a ledger and its server and, if a backup was restored, the requests in doubt."""
    server, has_fsync, has_full_page_writes, commit, standby_count, is_synchronous, version = only_row(
        db, STATEMENTS["administration.server"]
    )
    run_count, unfinished_count = only_row(db, STATEMENTS["administration.runs"])
    is_safe = has_fsync and has_full_page_writes
    # Our connections turn synchronous commits on if the server has them off.
    commit_key = "inspection.commit_off" if commit in {"off", "local"} else "inspection.commit_on"
    replica_key = "inspection.replica_synchronous" if is_synchronous else "inspection.replica_asynchronous"
    place = {"place": address.place, "database": address.database, "version": version}
    runs = {"run_count": run_count, "unfinished_count": unfinished_count}
    found = [
        StoreFinding(Sentence("inspection.ledger"), Sentence("inspection.ledger_at", **place)),
        StoreFinding(Sentence("inspection.key"), Sentence("inspection.key_matches_profile")),
        StoreFinding(Sentence("inspection.server"), Sentence("inspection.server_version", version=server)),
        StoreFinding(
            Sentence("inspection.disk"),
            Sentence("inspection.disk_safe" if is_safe else "inspection.disk_unsafe"),
            is_wrong=not is_safe,
        ),
        StoreFinding(Sentence("inspection.commit"), Sentence(commit_key, setting=commit)),
        StoreFinding(
            Sentence("inspection.replica"),
            Sentence(replica_key, standby_count=standby_count)
            if standby_count
            else Sentence("inspection.no_replica"),
        ),
        _role(db),
        _triggers(db),
        StoreFinding(Sentence("inspection.runs"), Sentence("inspection.runs_counted", **runs)),
    ]
    if is_restored:
        [request_count] = only_row(db, STATEMENTS["administration.doubt"])
        [latest] = only_row(db, _LATEST)
        doubt = (
            Sentence("inspection.no_request_recorded", request_count=request_count)
            if latest is None
            else Sentence("inspection.requests_in_doubt", latest=Moment(latest), request_count=request_count)
        )
        found.append(StoreFinding(Sentence("inspection.restored"), doubt))
    return found


def _role(db: psycopg.Connection) -> StoreFinding:
    """Check that the role of this connection has no more power than runs need."""
    role, *facts = only_row(db, STATEMENTS["administration.role"])
    powers = [Sentence(key) for key, is_so in zip(_POWERS, facts, strict=True) if is_so]
    meant = {"INSERT": schema.INSERTED, "UPDATE": schema.UPDATED}
    surplus = [
        f"{privilege} {table}.{column}"
        for privilege, table, column in db.execute(STATEMENTS["administration.columns"])
        if column not in meant[privilege].get(table, ())
    ]
    if surplus and not powers:  # powerful roles have these permissions anyway
        powers = [Sentence("inspection.has_surplus_permissions", what=surplus)]
    detail = (
        Sentence("inspection.role_too_powerful", role=role, powers=powers)
        if powers
        else Sentence("inspection.role_may_read_and_add", role=role)
    )
    return StoreFinding(Sentence("inspection.role"), detail, is_wrong=bool(powers))


def _triggers(db: psycopg.Connection) -> StoreFinding:
    there = {(str(table), str(name)) for table, name in db.execute(STATEMENTS["administration.triggers"])}
    names = [
        Sentence("inspection.trigger_on_table", name=name, table=table)
        for table, name in sorted(schema.TRIGGERS - there)
    ]
    key = "inspection.triggers_missing" if names else "inspection.triggers_in_place"
    detail = Sentence(key, names=names) if names else Sentence(key)
    return StoreFinding(Sentence("inspection.triggers"), detail, is_wrong=bool(names))


def _require_owner(db: psycopg.Connection, place: str) -> None:
    """Refuse a role that neither can create a ledger here nor owns the existing one."""
    role, name, owner_of_database, may_create, owner, may_use = only_row(db, STATEMENTS["administration.who"])
    if owner is not None and not may_use:
        raise ConfigurationError(
            Sentence("stores.role_may_not_use_ledger", place=place, name=name, owner=owner, role=role)
        )
    if owner is None and not may_create:
        names = {"role": role, "name": name, "owner_of_database": owner_of_database}
        raise ConfigurationError(Sentence("stores.role_may_not_create_tables", place=place, **names))


def _create(db: psycopg.Connection, secret: SecretStr) -> bool:
    with db.transaction():
        # Two processes may create it at the same time: the second one finds it existing.
        db.execute("SELECT pg_advisory_xact_lock(hashtext('precheck'))")
        if only_row(db, "SELECT to_regclass('precheck.store') IS NOT NULL")[0]:
            return False
        db.execute("CREATE SCHEMA IF NOT EXISTS precheck")
        db.execute(schema.TABLES, prepare=False)
        wrapped = StoreKeys(os.urandom(KEY_BYTE_COUNT)).wrapped(secret)
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
        row = db.execute(STATEMENTS["administration.run"], (run_id,)).fetchone()
        if row is None:
            raise UsageError(Sentence("stores.no_such_run", place=place, run_id=str(run_id)))
        run, question_count, was_closed, answer_count = row
        at_work = db.execute(STATEMENTS["administration.at_work"], (run,)).fetchone()
        if at_work is not None:
            pid, host = at_work
            raise IncompleteError(Sentence("stores.run_in_progress", run_id=str(run_id), pid=pid, host=host))
        if not was_closed:
            db.execute(_CLOSE, (run,))
    return ClosedRun(question_count, answer_count, was_closed)
