"""The ledger that several machines share, as its owner and its operator see it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from pydantic import SecretStr

from pipeline import config as settings
from pipeline.config.profiles import choose
from pipeline.errors import ConfigurationError
from pipeline.runs.evidence import Finding
from pipeline.sections.secrets import secret
from pipeline.stores.postgres import require_driver
from pipeline.stores.postgres.address import LedgerAddress

if TYPE_CHECKING:
    from pipeline.stores.postgres.connection import Database
    from pipeline.stores.postgres.inspection import DoubtfulRequests, ServerFacts


class LedgerJob(NamedTuple):
    """Which ledger, and as whom."""

    profile: str
    config: Path | None
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    role: str | None = None
    """To connect as; None: as the profile says."""


class NamedLedger(NamedTuple):
    """The ledger of a profile."""

    address: LedgerAddress
    key: SecretStr


def create_ledger(job: LedgerJob, *, grant_to: str | None) -> str:
    """Create the tables of a ledger, or find them there, and let the role of the runs use them.

    Args:
        job: which ledger, as its owner.
        grant_to: the role of the runs; None: that of the profile, where it is not the owner.

    Returns:
        What was done, as a sentence.

    Raises:
        ConfigurationError: the profile names no ledger, or the server refuses, or has another one there.
        IncompleteError: the server is away.
    """
    with connected_ledger(job) as (named, database):
        from pipeline.stores.postgres.administration import create

        role = grant_to or (named.address.user if job.role is not None else None)
        is_new = create(database, named.key, grant_to=role)
        done = "created" if is_new else "it was there already"
        granted = "" if role is None else f"; {role} may use it"
        return f"{named.address.place}: ledger in {named.address.database}: {done}{granted}"


def change_ledger_key(job: LedgerJob, *, variable: str | None, path: Path | None) -> str:
    """Put a ledger under another key.

    Args:
        job: which ledger, as its owner.
        variable: the environment variable with the new key; or else
        path: the file with it.

    Returns:
        What was done and what is left to do, as a sentence.

    Raises:
        ConfigurationError: as `create_ledger`; or one of the keys cannot be read, or is not that of the
            ledger.
        IncompleteError: the server is away.
    """
    new_key = secret(variable, path)
    with connected_ledger(job) as (named, database):
        from pipeline.stores.postgres.administration import rekey

        rekey(database, named.key, new_key)
        return f"{named.address.place}: the ledger has its new key; name it in the profile on every host"


def close_ledger_run(job: LedgerJob, run_id: UUID) -> str:
    """Close a run that will not be gone on with; what it was answered stays.

    Args:
        job: which ledger.
        run_id: as `precheck status` shows it.

    Returns:
        What was done, as a sentence.

    Raises:
        UsageError: the ledger has no such run.
        IncompleteError: a process is at work on it, or the server is away.
        ConfigurationError: as `create_ledger`.
    """
    with connected_ledger(job) as (_, database):
        from pipeline.stores.postgres.closing import close_run

        closed = close_run(database, run_id)
    if closed.was_closed:
        return f"run {run_id}: it had finished, or was closed, before"
    return (
        f"run {run_id} is closed; {closed.answer_count:,} of its {closed.question_count:,} questions were "
        "answered, and that stays on record; the same file begins a new run"
    )


def inspect_ledger(job: LedgerJob, *, is_restored: bool) -> list[Finding]:
    """Look at a ledger and its server.

    Args:
        job: which ledger.
        is_restored: count also what a backup that was brought back leaves in doubt.

    Returns:
        One finding per thing looked at.

    Raises:
        ConfigurationError, IncompleteError: as `create_ledger`.
    """
    with connected_ledger(job) as (named, database):
        from pipeline.stores.postgres.inspection import doubtful_requests, server_facts
        from pipeline.stores.postgres.store import opened_keys

        opened_keys(database, named.key)
        found = [*_findings(named.address, server_facts(database))]
        if is_restored:
            found.append(_restored(doubtful_requests(database)))
        return found


@contextmanager
def connected_ledger(job: LedgerJob) -> "Iterator[tuple[NamedLedger, Database]]":
    """A connection to the ledger of a profile, until the block ends.

    Raises:
        ConfigurationError: the profile names none, or its driver is not installed.
    """
    named = _named(job)
    require_driver()
    from pipeline.stores.postgres.connection import Database, StoreClocks

    clocks = StoreClocks(job.now, job.monotonic, wait_max_s=0.0)  # whoever looks wants to know now
    with Database(named.address, clocks, user=job.role) as database:
        yield named, database


def _named(job: LedgerJob) -> NamedLedger:
    chosen = choose(job.profile, job.config)
    profile = None if chosen.config is None else settings.load(chosen.config, chosen.name)
    address = None if profile is None else profile.ledger_address()
    key = None if profile is None else profile.ledger_key()
    if address is None or key is None:
        raise ConfigurationError(
            f"the profile {chosen.name} names no ledger that machines share; "
            "add `ledger` and its key to the profile (docs/configuration.md)"
        )
    return NamedLedger(address, key)


def _findings(address: LedgerAddress, facts: "ServerFacts") -> Iterator[Finding]:
    wrong = ConfigurationError.exit_code
    yield Finding("ledger", f"{address.place}, {address.database}, tables of version {facts.schema_version}")
    yield Finding("key", "it is that of the profile")
    yield Finding("server", f"PostgreSQL {facts.server_version}")
    if facts.has_fsync and facts.has_full_page_writes:
        yield Finding("disk", "fsync and full_page_writes are on")
    else:
        yield Finding(
            "disk", "fsync or full_page_writes is off: a crash loses answers; switch them on", wrong
        )
    if facts.synchronous_commit in {"off", "local"}:
        said = f"synchronous_commit is {facts.synchronous_commit} on the server"
        yield Finding("commit", f"{said}; the runs switch it on for themselves")
    else:
        yield Finding("commit", f"synchronous_commit is {facts.synchronous_commit}")
    yield _standby(facts)
    yield _role(facts)
    if facts.missing_triggers:
        names = ", ".join(f"{name} on {table}" for table, name in sorted(facts.missing_triggers))
        said = f"missing or switched off: {names}; bring the database back from a backup, or enable them"
        yield Finding("triggers", said, wrong)
    else:
        yield Finding("triggers", "what was recorded cannot be changed")
    yield Finding("runs", f"{facts.run_count:,}, of which unfinished: {facts.unfinished_count:,}")


def _standby(facts: "ServerFacts") -> Finding:
    if facts.standby_count == 0:
        return Finding("replica", "none is connected; a lost disk takes what no backup has")
    if facts.is_standby_synchronous:
        return Finding("replica", f"{facts.standby_count}, synchronous")
    return Finding(
        "replica",
        f"{facts.standby_count}, asynchronous: a failover may lose answers, which are then asked again; "
        "set synchronous_standby_names",
    )


def _role(facts: "ServerFacts") -> Finding:
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
        return Finding("role", f"{facts.role} may read and add, and nothing else")
    return Finding(
        "role",
        f"{facts.role} {' and '.join(powers)}; let runs use another role than the owner of the tables: "
        "`precheck ledger init --grant-to ROLE`",
        ConfigurationError.exit_code,
    )


def _restored(doubt: "DoubtfulRequests") -> Finding:
    latest = (
        "no request is on record"
        if doubt.latest is None
        else f"the latest request on record left {doubt.latest}"
    )
    return Finding(
        "restored",
        f"{latest}; what was asked after that is not known here and is asked again; "
        f"requests of unfinished runs whose answers are not on record: {doubt.in_doubt_count:,}",
    )
