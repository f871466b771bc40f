"""What `precheck ledger check` finds about a ledger and the server that it is on."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg

from pipeline.stores.postgres import schema
from pipeline.stores.postgres.address import LedgerAddress
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import StoreFinding

_SERVER = STATEMENTS["inspection.server"]
_ROLE = STATEMENTS["inspection.role"]
_TRIGGERS = STATEMENTS["inspection.triggers"]
_RUNS = STATEMENTS["inspection.runs"]
_DOUBT = STATEMENTS["inspection.doubt"]
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


def findings(database: Database, *, is_restored: bool) -> list[StoreFinding]:
    """Look at a ledger and its server.

    Args:
        database: of the ledger.
        is_restored: count also what a backup that was brought back leaves in doubt.

    Raises:
        ConfigurationError, IncompleteError: as `Database.run`.
    """
    found = [*_findings(database.address, database.run(_facts))]
    if is_restored:
        found.append(
            _restored(database.run(lambda db: DoubtfulRequests(*_row(db, _DOUBT), *_row(db, _LATEST))))
        )
    return found


def _facts(db: psycopg.Connection) -> ServerFacts:
    there = {(str(table), str(name)) for table, name in db.execute(_TRIGGERS)}
    missing = schema.TRIGGERS - there
    return ServerFacts(*_row(db, _SERVER), *_row(db, _ROLE), missing, *_row(db, _RUNS))  # type: ignore[call-arg]


def _row(db: psycopg.Connection, query: str) -> tuple[Any, ...]:
    row = db.execute(query.encode()).fetchone()
    assert row is not None
    return row


def _findings(address: LedgerAddress, facts: ServerFacts) -> Iterator[StoreFinding]:
    yield StoreFinding(
        "ledger", f"{address.place}, {address.database}, tables of version {facts.schema_version}"
    )
    yield StoreFinding("key", "it is that of the profile")
    yield StoreFinding("server", f"PostgreSQL {facts.server_version}")
    if facts.has_fsync and facts.has_full_page_writes:
        yield StoreFinding("disk", "fsync and full_page_writes are on")
    else:
        yield StoreFinding(
            "disk", "fsync or full_page_writes is off: a crash loses answers; switch them on", is_wrong=True
        )
    if facts.synchronous_commit in {"off", "local"}:
        said = f"synchronous_commit is {facts.synchronous_commit} on the server"
        yield StoreFinding("commit", f"{said}; the runs switch it on for themselves")
    else:
        yield StoreFinding("commit", f"synchronous_commit is {facts.synchronous_commit}")
    yield _standby(facts)
    yield _role(facts)
    if facts.missing_triggers:
        names = ", ".join(f"{name} on {table}" for table, name in sorted(facts.missing_triggers))
        said = f"missing or switched off: {names}; bring the database back from a backup, or enable them"
        yield StoreFinding("triggers", said, is_wrong=True)
    else:
        yield StoreFinding("triggers", "what was recorded cannot be changed")
    yield StoreFinding("runs", f"{facts.run_count:,}, of which unfinished: {facts.unfinished_count:,}")


def _standby(facts: ServerFacts) -> StoreFinding:
    if facts.standby_count == 0:
        return StoreFinding("replica", "none is connected; a lost disk takes what no backup has")
    if facts.is_standby_synchronous:
        return StoreFinding("replica", f"{facts.standby_count}, synchronous")
    return StoreFinding(
        "replica",
        f"{facts.standby_count}, asynchronous: a failover may lose answers, which are then asked again; "
        "set synchronous_standby_names",
    )


def _role(facts: ServerFacts) -> StoreFinding:
    powers = [
        said
        for said, is_so in (
            ("is a superuser", facts.is_superuser),
            ("may change tables", facts.may_change_tables),
            ("may delete lines", facts.may_delete),
        )
        if is_so
    ]
    if not powers:
        return StoreFinding("role", f"{facts.role} may read and add, and nothing else")
    return StoreFinding(
        "role",
        f"{facts.role} {' and '.join(powers)}; let runs use another role than the owner of the tables: "
        "`precheck ledger init --grant-to ROLE`",
        is_wrong=True,
    )


def _restored(doubt: DoubtfulRequests) -> StoreFinding:
    latest = (
        "no request is on record"
        if doubt.latest is None
        else f"the latest request on record left {doubt.latest}"
    )
    return StoreFinding(
        "restored",
        f"{latest}; what was asked after that is not known here and is asked again; "
        f"requests of unfinished runs whose answers are not on record: {doubt.in_doubt_count:,}",
    )
