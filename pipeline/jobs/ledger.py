"""Commands on the shared ledger, for its owner and its operator, and the current activity in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from pydantic import SecretStr

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import choose
from pipeline.errors import ConfigurationError
from pipeline.runs.evidence import Finding
from pipeline.sections import secret
from pipeline.stores.kinds import kind_of
from pipeline.stores.protocols import StoreCare, StoreClocks
from pipeline.stores.sharing import NOTHING, Division
from pipeline.wording import Sentence
from schemas.outcomes import ApiName
from schemas.shared import AccountUse, CapStatus, HolderStatus, LedgerStatus, RunStatus, ShareStatus


class LedgerJob(NamedTuple):
    """A profile's ledger, and the role to use it with."""

    profile: str
    config: ConfigurationFile | Path | None
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    role: str | None = None  # the role to connect as; None means the profile's


def create_ledger(job: LedgerJob, *, grant_to: str | None) -> Sentence:
    """Create missing tables of a ledger; grant access to the role, by default the profile's if not the owner.

    Raises ConfigurationError if access is refused or other tables exist, IncompleteError without the server.
    """
    with connected_ledger(job) as (_, key, care):
        role = grant_to or (care.user if job.role is not None else None)
        is_new = care.create(key, grant_to=role)
        where = {"place": care.place, "database": care.database}
        if role is None:
            return Sentence("jobs.ledger_created" if is_new else "jobs.ledger_exists", **where)
        said = "jobs.ledger_created_for" if is_new else "jobs.ledger_exists_for"
        return Sentence(said, **where, role=role)


def change_ledger_key(job: LedgerJob, *, variable: str | None, path: Path | None) -> Sentence:
    """Change a ledger's key to one in a variable or file; return what is left to do (see `create_ledger`)."""
    new_key = secret(variable, path)
    with connected_ledger(job) as (_, key, care):
        care.rekey(key, new_key)
        return Sentence("jobs.ledger_rekeyed", place=care.place)


def close_ledger_run(job: LedgerJob, run_id: UUID) -> Sentence:
    """Close a run by its id in `precheck status`; its answers are kept (UsageError: it is unknown).

    Raises IncompleteError if a process works on it, and the errors of `create_ledger`.
    """
    with connected_ledger(job) as (_, _, care):
        closed = care.close_run(run_id)
    if closed.was_closed:
        return Sentence("jobs.run_already_closed", run_id=str(run_id))
    counts = {"answer_count": closed.answer_count, "question_count": closed.question_count}
    return Sentence("jobs.run_closed", run_id=str(run_id), **counts)


def inspect_ledger(job: LedgerJob, *, is_restored: bool) -> list[Finding]:
    """Check a ledger, its server and, after a restore, requests in doubt; same errors as `create_ledger`."""
    with connected_ledger(job) as (_, key, care):
        found = care.findings(key, is_restored=is_restored)
    wrong = ConfigurationError.exit_code
    return [Finding(each.name, each.detail, wrong if each.is_wrong else 0) for each in found]


@contextmanager
def connected_ledger(job: LedgerJob) -> Iterator[tuple[str, SecretStr, StoreCare]]:
    """Open a profile's ledger as its owner; yield its address and key too (ConfigurationError: no ledger)."""
    chosen = choose(job.profile, job.config)
    url, key = chosen.settings.ledger, chosen.settings.ledger_key()
    if url is None or key is None:
        raise ConfigurationError(Sentence("jobs.profile_without_shared_ledger", chosen=chosen.name))
    clocks = StoreClocks(job.now, job.monotonic, wait_max_s=0.0)  # the user is waiting for the result
    with kind_of(url).cared_for(url, clocks, role=job.role) as care:
        yield url, key, care


SILENT_MAX_S = 15.0  # a process that has not reported for this long is silent; live ones do every few seconds


def status_of(job: LedgerJob) -> LedgerStatus:
    """Return the unfinished runs, and the processes that ask (errors: see `create_ledger`)."""
    with connected_ledger(job) as (url, _, care):
        state = care.state()
    return LedgerStatus(
        ledger=url,
        time=state.time,
        runs=[
            RunStatus(
                **row._asdict(), left_count=max(row.question_count - row.answer_count - row.reused_count, 0)
            )
            for row in state.runs
        ],
        holders=[HolderStatus(**row._asdict(), alive=row.silent_s <= SILENT_MAX_S) for row in state.holders],
        accounts=[_account(*account) for account in state.accounts],
        caps=[CapStatus.model_validate(row._asdict()) for row in state.caps],
    )


def _account(scope: str, api: str, division: Division, now: float) -> AccountUse:
    shares = [
        ShareStatus(
            host=share.who.host,
            pid=share.who.pid,
            requests=share.part.requests,
            rate_per_s=share.rate_per_s,
            slots=share.part.slots,
            in_flight_max=share.in_flight_max,
            lease_s=share.until - now,
        )
        for share in division.shares
        if share.part != NOTHING
    ]
    paused_s = max(division.paused_until - now, 0.0)
    return AccountUse(scope=scope, api=ApiName(api), paused_s=paused_s, shares=shares)
