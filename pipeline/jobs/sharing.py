"""Begin or join a run in a shared ledger, ask, and finish it; without one, the folder's ledger has it all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import polars as pl

from pipeline.config import Profile
from pipeline.config.profiles import Chosen, choose, opened
from pipeline.errors import ConfigurationError, IncompleteError
from pipeline.executors.asking import Alone, AskingResult, QuestionsLeft, RunQuestions, Way, ask_all
from pipeline.executors.kept_open import KeptOpen
from pipeline.files.plain import real_path
from pipeline.runs.folder import keep_document, read_store_record
from pipeline.runs.request import CheckJob, Notice, Surface
from pipeline.runs.starting import moved_from
from pipeline.runs.work_folder import remove_work, require_private, write_work
from pipeline.stores.protocols import SharedStore
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity
from pipeline.wording import Sentence
from schemas.folder import STORE
from schemas.outcomes import Environment
from schemas.shared import SharedRunRecord, WorkRecord

if TYPE_CHECKING:
    from pipeline.executors.helping import HelpGiven
    from pipeline.executors.with_others import JoinedRun


class AskingPlan(NamedTuple):
    """The questions of a run, with the APIs to ask."""

    questions: RunQuestions
    chosen: Chosen
    profile: Profile  # the chosen profile, with its servers running
    kept: KeptOpen | None = None  # resources that stay open for the next file

    def way(self, ledger: SqliteLedger, joined: "JoinedRun | None", *, asks: bool) -> Way:
        """Return how to ask: as a single process, or together with others as in `ask`."""
        if joined is None:
            return Alone(ledger, is_ours=self.chosen.config is None, kept=self.kept)
        from pipeline.executors.with_others import FolderCopy, WithOthers

        return WithOthers(joined, FolderCopy(ledger), asks)


@contextmanager
def joined_run(
    job: CheckJob, plan: AskingPlan, identity: RunIdentity, surface: Surface
) -> Iterator["JoinedRun | None"]:
    """Begin or join the shared run of these questions; yield None without a shared ledger.

    The locked folder records its run; a job's work folder stores the questions for workers.
    ConfigurationError: the ledger is unusable, or a process has other limits or another plan.
    IncompleteError: no database.
    """
    url = plan.chosen.settings.ledger
    if url is None:
        if job.fresh:
            (job.out / STORE).unlink(missing_ok=True)
        del plan  # free the largest frame now
        yield None
        return
    from pipeline.executors.shared import SharedAccess, join, open_store
    from pipeline.executors.with_others import JoinedRun

    secret, questions = plan.chosen.settings.ledger_key(), plan.questions
    assert secret is not None, "a profile with a shared ledger has a key"
    if job.work is not None:
        require_private(job.work)
    by_number = partial(_by_number, questions)
    opening, kept = open_store(url, secret, surface.clock), plan.kept
    with opening if kept is None else nullcontext(kept.store(url, opening)) as store:
        access = SharedAccess(store, plan.profile, kept)
        access.require_same_limits(questions.counts.keys(), surface.clock)
        record = read_store_record(job.out)
        if job.fresh:
            for folder in (job.out, *moved_from(job.out)[-1:]):
                _end_shared(store, folder)
            record = None
        parts = range(questions.part_count)
        run = join(store, identity, map(by_number, parts), None if record is None else record.run)
        root = real_path(job.work) if job.work is not None else None if record is None else record.work
        work = None if root is None else str(root)
        keep_document(job.out / STORE, SharedRunRecord(ledger=url, run=run.id, work=work))
        if job.work is not None:
            write_work(job.work, _work(identity, questions, run.id, url), map(by_number, parts))
        with access.shared_run(run, lru_cache(maxsize=2)(by_number)) as shared:
            yield JoinedRun(access, run, shared)


def _end_shared(store: SharedStore, folder: Path) -> None:
    """Stop other processes from asking for a run that is started afresh."""
    record = read_store_record(folder)
    if record is not None and (before := store.find(record.run)) is not None:
        store.mark_finished(before)


def ask(  # noqa: PLR0913 (what to ask, how, and where to put the answers)
    job: CheckJob,
    plan: AskingPlan,
    record: tuple[SqliteLedger, "JoinedRun | None"],
    left_of: Callable[[AskingResult], QuestionsLeft],
    surface: Surface,
    *,
    asks: bool,
) -> tuple[AskingResult, QuestionsLeft]:
    """Ask the open questions, alone or with the processes that share the run; return what is left.

    `record` is the folder's ledger, and the shared run, if any; its workers ask unless `asks`. See `ask_all`.
    """
    _, joined = record
    asked = ask_all(job, plan.questions, plan.profile, plan.way(*record, asks=asks), surface)
    left = left_of(asked)
    if joined is not None and not left.open_count:
        try:
            _finish_shared(job, joined)
        except IncompleteError as error:
            asked = replace(asked, ended_by=asked.ended_by or error)
    return asked, left


def _finish_shared(job: CheckJob, joined: "JoinedRun") -> None:
    """Record a run without open questions as finished, and remove its work folder (IncompleteError)."""
    joined.access.store.mark_finished(joined.run)
    record = read_store_record(job.out)
    assert record is not None
    keep_document(job.out / STORE, record.model_copy(update={"finished": True}))
    if job.work is not None:
        remove_work(job.work, joined.run.id)


def _by_number(questions: RunQuestions, part: int) -> pl.DataFrame:
    """Return a part's `Checks`, sorted by number."""
    checks = questions.checks(part)
    return checks if checks["check"].is_sorted() else checks.sort("check")


def _work(identity: RunIdentity, questions: RunQuestions, run: UUID, ledger: str) -> WorkRecord:
    return WorkRecord(
        ledger=ledger,
        run=run,
        input_sha256=identity.input_sha256,
        profile_sha256=identity.profile_sha256,
        environment=Environment(identity.environment),
        tool_version=identity.tool_version,
        part_count=questions.part_count,
        apis=list(questions.counts),
    )


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """The arguments of `precheck worker`."""

    profile: str
    config: Path | None
    work: Path  # the folder given to `precheck run --work`
    until_idle: bool = False  # True to end when no question is left


def work(job: WorkerJob, surface: Surface) -> "HelpGiven":
    """Help until no question is left, or a stop is requested, which is no error (PrecheckError).

    Raises ConfigurationError without a usable ledger, OutputError for a work folder that is unreadable or
    open to others, and IncompleteError if questions are left that this worker cannot ask now.
    """
    chosen = choose(job.profile, job.config)
    if (url := chosen.settings.ledger) is None:
        raise ConfigurationError(
            Sentence("jobs.worker_without_shared_ledger", chosen=chosen.name),
            advice=Sentence("jobs.name_profile_with_ledger"),
        )
    require_private(job.work)
    from pipeline.executors.helping import HelpWanted, help_with_runs
    from pipeline.executors.shared import open_store

    secret = chosen.settings.ledger_key()
    assert secret is not None, "a profile with a shared ledger has a key"
    with opened(chosen) as profile, open_store(url, secret, surface.clock) as store:
        environment = chosen.environment
        facts = {"profile": chosen.name, "work": str(job.work), "ledger": url}
        surface.notify(Notice(Sentence("jobs.notice_helping"), facts))
        wanted = HelpWanted(job.work, profile, chosen.fingerprint, environment, job.until_idle)
        given = help_with_runs(store, wanted, surface)
    if given.ended_by is not None:
        raise given.ended_by
    if job.until_idle and not given.is_idle and surface.stop.first is None:
        raise IncompleteError(Sentence("jobs.questions_left_for_later", work=job.work))
    return given
