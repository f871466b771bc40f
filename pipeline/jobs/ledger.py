"""Commands on the shared ledger, for its owner and its operator."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from pydantic import SecretStr

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import choose, ledger_key, ledger_url
from pipeline.errors import ConfigurationError
from pipeline.runs.evidence import Finding
from pipeline.sections import secret
from pipeline.stores.kinds import cared_for
from pipeline.stores.shared import StoreCare, StoreClocks
from pipeline.wording import Sentence


class LedgerJob(NamedTuple):
    """A profile's ledger, and the role to use it with."""

    profile: str
    config: ConfigurationFile | Path | None
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    role: str | None = None  # the role to connect as; None means the profile's


class NamedLedger(NamedTuple):
    """A profile's ledger, with its name for messages."""

    url: str
    key: SecretStr


def create_ledger(job: LedgerJob, *, grant_to: str | None) -> Sentence:
    """Create the tables of a ledger unless they exist, and grant access to the role of the runs.

    By default, this is the profile's role, unless that is the owner.

    Raises:
        ConfigurationError: the profile names no ledger, the server refuses access, or the database contains
    other tables.
        IncompleteError: the server is unavailable.
    """
    with connected_ledger(job) as (named, care):
        role = grant_to or (care.user if job.role is not None else None)
        is_new = care.create(named.key, grant_to=role)
        where = {"place": care.place, "database": care.database}
        if role is None:
            return Sentence("jobs.ledger_created" if is_new else "jobs.ledger_was_there", **where)
        key = "jobs.ledger_created_for" if is_new else "jobs.ledger_was_there_for"
        return Sentence(key, **where, role=role)


def change_ledger_key(job: LedgerJob, *, variable: str | None, path: Path | None) -> Sentence:
    """Change the key of a ledger to one in an environment variable or a file; return what is left to do.

    Raises:
        ConfigurationError: see `create_ledger`; or a key cannot be read, or the current one is wrong.
        IncompleteError: the server is unavailable.
    """
    new_key = secret(variable, path)
    with connected_ledger(job) as (named, care):
        care.rekey(named.key, new_key)
        return Sentence("jobs.ledger_rekeyed", place=care.place)


def close_ledger_run(job: LedgerJob, run_id: UUID) -> Sentence:
    """Close a run that will not be resumed, by its id in `precheck status`; its answers are kept.

    Raises:
        UsageError: the ledger has no such run.
        IncompleteError: a process is working on it, or the server is unavailable.
        ConfigurationError: see `create_ledger`.
    """
    with connected_ledger(job) as (_, care):
        closed = care.close_run(run_id)
    if closed.was_closed:
        return Sentence("jobs.run_was_closed", run_id=str(run_id))
    return Sentence(
        "jobs.run_closed",
        run_id=str(run_id),
        answer_count=closed.answer_count,
        question_count=closed.question_count,
    )


def inspect_ledger(job: LedgerJob, *, is_restored: bool) -> list[Finding]:
    """Check a ledger, its server and, after a restore, requests in doubt; same errors as `create_ledger`."""
    with connected_ledger(job) as (named, care):
        found = care.findings(named.key, is_restored=is_restored)
    wrong = ConfigurationError.exit_code
    return [Finding(each.name, each.detail, wrong if each.is_wrong else 0) for each in found]


@contextmanager
def connected_ledger(job: LedgerJob) -> Iterator[tuple[NamedLedger, StoreCare]]:
    """Open the ledger of a profile as its owner (ConfigurationError: the profile names none)."""
    named = _named(job)
    clocks = StoreClocks(job.now, job.monotonic, wait_max_s=0.0)  # the user is waiting for the result
    with cared_for(named.url, clocks, role=job.role) as care:
        yield named, care


def _named(job: LedgerJob) -> NamedLedger:
    chosen = choose(job.profile, job.config)
    url, key = ledger_url(chosen), ledger_key(chosen)
    if url is None or key is None:
        raise ConfigurationError(Sentence("jobs.profile_names_no", chosen=chosen.name))
    return NamedLedger(url, key)
