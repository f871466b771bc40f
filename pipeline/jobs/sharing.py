"""The run of a file in a ledger that processes share: begun or joined, noted in the folder, finished.

Without a shared ledger in the profile all this is nothing: the folder's own ledger is the whole record.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import polars as pl

from pipeline.config import Profile
from pipeline.config.profiles import Chosen, ledger_key, ledger_url
from pipeline.errors import IncompleteError, UsageError
from pipeline.executors.asking import AskingPlan, AskingResult
from pipeline.runs.request import CheckJob, Surface
from pipeline.runs.shared_folder import forget_store_record, read_store_record, write_store_record
from pipeline.runs.work_folder import remove_work, require_private, write_work
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity
from pipeline.wording import Sentence
from schemas.outcomes import ApiName, Environment
from schemas.shared import SharedRunRecord, WorkRecord

if TYPE_CHECKING:
    from pipeline.executors.shared_file import JoinedRun


@contextmanager
def joined_run(
    job: CheckJob, chosen: Chosen, identity: RunIdentity, plan: AskingPlan, surface: Surface
) -> Iterator["JoinedRun | None"]:
    """The shared run of a file, joined or begun; None where the profile has no shared ledger.

    Its folder, which is locked, is noted to belong to it; its questions lie where workers find them, if the
    job says so.

    Raises:
        UsageError: workers are to help, and the profile has no ledger that they could share.
        ConfigurationError: the ledger cannot be used as the profile says, a process at work goes by other
            limits, or another version of this program planned the run otherwise. No run was begun.
        IncompleteError: the database has been away for as long as is waited; nothing was asked.
    """
    if ledger_url(chosen) is None:
        if job.work is not None:
            raise UsageError(Sentence("jobs.workers_help_runs"), advice=Sentence("advice.name_ledger"))
        if job.fresh:
            forget_store_record(job.out)
        del plan  # the largest frame, which is not to be held here
        yield None
        return
    checks = plan.checks if job.order == "file" else plan.checks.sort("check")
    parts = SharedParts(
        lambda _part: checks, 1, [ApiName(api) for api in checks["api"].unique(maintain_order=True)]
    )
    with joined_parts(job, chosen, identity, plan.profile, parts, surface) as joined:
        yield joined


class SharedParts(NamedTuple):
    """The questions of a run, in parts."""

    part: Callable[[int], pl.DataFrame]
    """`Checks` of a part, by their numbers."""
    part_count: int
    apis: list[ApiName]

    def each(self) -> Iterator[pl.DataFrame]:
        """One after the other."""
        return map(self.part, range(self.part_count))


@contextmanager
def joined_parts(  # noqa: PLR0913, PLR0917 (what a run is known by)
    job: CheckJob,
    chosen: Chosen,
    identity: RunIdentity,
    profile: Profile,
    parts: SharedParts,
    surface: Surface,
) -> Iterator["JoinedRun"]:
    """The shared run of questions, joined or begun, under a profile with a shared ledger; as `joined_run`."""
    url = ledger_url(chosen)
    assert url is not None
    from pipeline.executors.joining import SharedAccess, join, open_store
    from pipeline.executors.shared_file import JoinedRun

    secret = ledger_key(chosen)
    assert secret is not None, "a profile with a shared ledger has a key"
    if job.work is not None:
        require_private(job.work)
    with open_store(url, secret, surface.clock) as store:
        access = SharedAccess(store, profile)
        access.require_same_limits(parts.apis, surface.clock)
        record = read_store_record(job.out)
        if record is not None and job.fresh:
            if (before := store.find(record.run)) is not None:
                store.mark_finished(before)
            record = None
        run = join(store, identity, parts.each(), None if record is None else record.run)
        root = job.work.resolve() if job.work is not None else None if record is None else record.work
        work = None if root is None else str(root)
        write_store_record(job.out, SharedRunRecord(ledger=url, run=run.id, work=work))
        if job.work is not None:
            write_work(job.work, _work(identity, parts, run.id, url), parts.each())
        with access.shared_run(run, lru_cache(maxsize=2)(parts.part)) as shared:
            yield JoinedRun(access, run, shared)


def ask_all(
    job: CheckJob, plan: AskingPlan, ledger: SqliteLedger, shared: "JoinedRun | None", surface: Surface
) -> AskingResult:
    """Ask what is left to ask: alone, or together with the processes that share the run.

    Raises:
        DiskError, StoppedError: as `local.ask_all`.
    """
    if shared is None:
        from pipeline.executors import local

        return local.ask_all(job, plan, ledger, surface)
    from pipeline.executors.shared_file import ask_with_others

    return _finished(job, shared, ask_with_others(job, plan, shared, ledger, surface))


def _finished(job: CheckJob, joined: "JoinedRun", asked: AskingResult) -> AskingResult:
    """Have a run on record as finished where no question is left, and remove its work folder.

    Returns:
        The result; ended by the error where the database could not be reached for it.
    """
    if not asked.undecided.is_empty():
        return asked
    try:
        finish_shared(job, joined)
    except IncompleteError as error:
        return replace(asked, ended_by=asked.ended_by or error)
    return asked


def finish_shared(job: CheckJob, joined: "JoinedRun") -> None:
    """Have a run on record as finished, as no question is left, and remove its work folder.

    Raises:
        IncompleteError: the database could not be reached for it.
    """
    joined.access.store.mark_finished(joined.run)
    record = read_store_record(job.out)
    assert record is not None
    write_store_record(job.out, record.model_copy(update={"finished": True}))
    if job.work is not None:
        remove_work(job.work, joined.run.id)


def _work(identity: RunIdentity, parts: SharedParts, run: UUID, ledger: str) -> WorkRecord:
    return WorkRecord(
        ledger=ledger,
        run=run,
        input_sha256=identity.input_sha256,
        profile_sha256=identity.profile_sha256,
        environment=Environment(identity.environment),
        tool_version=identity.tool_version,
        part_count=parts.part_count,
        apis=parts.apis,
    )
