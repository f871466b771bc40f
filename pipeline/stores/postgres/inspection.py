"""Check a ledger and its server, for `precheck ledger check`."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg

from pipeline.stores.postgres import schema
from pipeline.stores.postgres.address import LedgerAddress
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import StoreFinding
from pipeline.wording import Moment, Sentence

_SERVER = STATEMENTS["inspection.server"]
_ROLE = STATEMENTS["inspection.role"]
_COLUMNS = STATEMENTS["inspection.columns"]
_TRIGGERS = STATEMENTS["inspection.triggers"]
_RUNS = STATEMENTS["inspection.runs"]
_DOUBT = STATEMENTS["inspection.doubt"]
_LATEST = "SELECT max(time) FROM (SELECT time FROM precheck.intent ORDER BY id DESC LIMIT 1000) AS latest"


class ServerFacts(NamedTuple):
    """The ledger's server, and the permissions of this connection's role."""

    server_version: str
    has_fsync: bool
    has_full_page_writes: bool
    synchronous_commit: str  # the server's setting; our connections turn it on if it is off
    standby_count: int
    is_standby_synchronous: bool
    schema_version: int
    role: str
    is_superuser: bool
    may_change_tables: bool
    may_delete: bool
    surplus: tuple[str, ...]  # excessive permissions on tables, such as `UPDATE daily_cap.used`
    missing_triggers: frozenset[tuple[str, str]]  # (table, name)
    run_count: int
    unfinished_count: int


class DoubtfulRequests(NamedTuple):
    """Requests whose results are in doubt after a restored backup."""

    in_doubt_count: int  # requests of unfinished runs that have no recorded result
    latest: str | None  # when the latest recorded request was sent: UTC, ISO 8601 with Z


def findings(database: Database, *, is_restored: bool) -> list[StoreFinding]:
    """Check a ledger and its server and, if a backup was restored, the requests in doubt."""
    found = [*_findings(database.address, database.run(_facts))]
    if is_restored:
        found.append(
            _restored(database.run(lambda db: DoubtfulRequests(*_row(db, _DOUBT), *_row(db, _LATEST))))
        )
    return found


def _facts(db: psycopg.Connection) -> ServerFacts:
    there = {(str(table), str(name)) for table, name in db.execute(_TRIGGERS)}
    missing = schema.TRIGGERS - there
    meant = {"INSERT": schema.INSERTED, "UPDATE": schema.UPDATED}
    surplus = tuple(
        f"{privilege} {table}.{column}"
        for privilege, table, column in db.execute(_COLUMNS)
        if column not in meant[privilege].get(table, ())
    )
    return ServerFacts(*_row(db, _SERVER), *_row(db, _ROLE), surplus, missing, *_row(db, _RUNS))  # type: ignore[call-arg]


def _row(db: psycopg.Connection, query: str) -> tuple[Any, ...]:
    row = db.execute(query.encode()).fetchone()
    assert row is not None
    return row


def _findings(address: LedgerAddress, facts: ServerFacts) -> Iterator[StoreFinding]:
    yield StoreFinding(
        Sentence("inspection.ledger"),
        Sentence(
            "inspection.ledger_at",
            place=address.place,
            database=address.database,
            version=facts.schema_version,
        ),
    )
    yield StoreFinding(Sentence("inspection.key"), Sentence("inspection.key_of_profile"))
    version = Sentence("inspection.server_version", version=facts.server_version)
    yield StoreFinding(Sentence("inspection.server"), version)
    is_safe = facts.has_fsync and facts.has_full_page_writes
    disk = Sentence("inspection.disk_safe" if is_safe else "inspection.disk_unsafe")
    yield StoreFinding(Sentence("inspection.disk"), disk, is_wrong=not is_safe)
    is_off = facts.synchronous_commit in {"off", "local"}
    commit = "inspection.commit_off" if is_off else "inspection.commit_on"
    yield StoreFinding(Sentence("inspection.commit"), Sentence(commit, setting=facts.synchronous_commit))
    yield StoreFinding(Sentence("inspection.replica"), _standby(facts))
    yield _role(facts)
    yield _triggers(facts)
    yield StoreFinding(
        Sentence("inspection.runs"),
        Sentence(
            "inspection.runs_counted", run_count=facts.run_count, unfinished_count=facts.unfinished_count
        ),
    )


def _standby(facts: ServerFacts) -> Sentence:
    if facts.standby_count == 0:
        return Sentence("inspection.no_replica")
    return Sentence(
        "inspection.replica_synchronous"
        if facts.is_standby_synchronous
        else "inspection.replica_asynchronous",
        standby_count=facts.standby_count,
    )


def _triggers(facts: ServerFacts) -> StoreFinding:
    names = [
        Sentence("inspection.trigger_on_table", name=name, table=table)
        for table, name in sorted(facts.missing_triggers)
    ]
    detail = (
        Sentence("inspection.triggers_missing", names=names)
        if names
        else Sentence("inspection.triggers_there")
    )
    return StoreFinding(Sentence("inspection.triggers"), detail, is_wrong=bool(names))


def _role(facts: ServerFacts) -> StoreFinding:
    powers = [
        Sentence(key)
        for key, is_so in (
            ("inspection.is_superuser", facts.is_superuser),
            ("inspection.may_change_tables", facts.may_change_tables),
            ("inspection.may_delete", facts.may_delete),
        )
        if is_so
    ]
    if facts.surplus and not powers:  # powerful roles have these permissions anyway
        powers = [Sentence("inspection.may_also", what=[*facts.surplus])]
    detail = (
        Sentence("inspection.role_too_mighty", role=facts.role, powers=powers)
        if powers
        else Sentence("inspection.role_fit", role=facts.role)
    )
    return StoreFinding(Sentence("inspection.role"), detail, is_wrong=bool(powers))


def _restored(doubt: DoubtfulRequests) -> StoreFinding:
    detail = (
        Sentence("inspection.doubt_about_all", request_count=doubt.in_doubt_count)
        if doubt.latest is None
        else Sentence("inspection.doubt", latest=Moment(doubt.latest), request_count=doubt.in_doubt_count)
    )
    return StoreFinding(Sentence("inspection.restored"), detail)
