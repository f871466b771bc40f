"""What `precheck ledger check` finds about a ledger and the server that it is on."""

from typing import Any, NamedTuple

import psycopg

from pipeline.stores.postgres import schema
from pipeline.stores.postgres.connection import Database

_SERVER = """
SELECT current_setting('server_version'), current_setting('fsync') = 'on',
 current_setting('full_page_writes') = 'on',
 (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
 (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names') <> '',
 (SELECT version FROM precheck.store)
"""
_ROLE = """
SELECT current_user::text, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
 EXISTS (SELECT FROM pg_class
  WHERE relnamespace = 'precheck'::regnamespace AND pg_has_role(relowner, 'USAGE'))
 OR has_schema_privilege('precheck', 'CREATE'),
 EXISTS (SELECT FROM pg_class WHERE relnamespace = 'precheck'::regnamespace AND relkind = 'r'
 AND (has_table_privilege(oid, 'DELETE') OR has_table_privilege(oid, 'TRUNCATE')))
"""
_TRIGGERS = """
SELECT relname::text, tgname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = 'precheck'::regnamespace AND tgenabled IN ('O', 'A')
"""
_RUNS = """
SELECT count(*), count(*) FILTER (WHERE finished_at IS NULL) FROM precheck.run
"""
_DOUBT = """
SELECT count(*) FROM precheck.intent JOIN precheck.run USING (run)
 LEFT JOIN precheck.failure USING (run, question, attempt) LEFT JOIN precheck.answer USING (run, question)
WHERE finished_at IS NULL AND failure.run IS NULL AND answer.run IS NULL
"""
_LATEST = "SELECT max(time) FROM (SELECT time FROM precheck.intent ORDER BY id DESC LIMIT 1000) AS latest"


class ServerFacts(NamedTuple):
    """The server of a ledger, and what the role of this connection may do."""

    server_version: str
    has_fsync: bool
    has_full_page_writes: bool
    synchronous_commit: str
    """As it is set there; connections of this program switch it on where it is off."""
    standby_count: int
    is_standby_synchronous: bool
    schema_version: int
    role: str
    is_superuser: bool
    may_change_tables: bool
    may_delete: bool
    missing_triggers: frozenset[tuple[str, str]]
    """Table and name."""
    run_count: int
    unfinished_count: int


class DoubtfulRequests(NamedTuple):
    """What a backup that was brought back leaves open."""

    in_doubt_count: int
    """Requests of unfinished runs with no ending on record."""
    latest: str | None
    """When the latest request on record left: UTC, ISO 8601 with Z."""


def server_facts(database: Database) -> ServerFacts:
    """Look at a ledger and its server.

    Raises:
        ConfigurationError, IncompleteError: as `Database.run`.
    """
    return database.run(_facts)


def doubtful_requests(database: Database) -> DoubtfulRequests:
    """Count what may have been answered without the answer being on record.

    Raises:
        ConfigurationError, IncompleteError: as `Database.run`.
    """
    return database.run(lambda db: DoubtfulRequests(*_row(db, _DOUBT), *_row(db, _LATEST)))


def _facts(db: psycopg.Connection) -> ServerFacts:
    there = {(str(table), str(name)) for table, name in db.execute(_TRIGGERS)}
    missing = schema.TRIGGERS - there
    return ServerFacts(*_row(db, _SERVER), *_row(db, _ROLE), missing, *_row(db, _RUNS))  # type: ignore[call-arg]


def _row(db: psycopg.Connection, query: str) -> tuple[Any, ...]:
    row = db.execute(query.encode()).fetchone()
    assert row is not None
    return row
