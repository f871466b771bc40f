"""The whole path of a payment file, step by step. Read this module first.

    file -read-> Payments -validate-> Accepted -plan-> Checks -ask-> Answers -resolve-> Outcomes -write-> file
                              `--------> Rejects ---------------------------'              `-report-> Summary

`check` opens the folder, the profile and the ledger, and calls the steps of a `RunInput`: a payment file
(`pipeline.jobs.whole_file`) runs the stages of `pipeline.stages` for all of its rows, a data set
(`pipeline.jobs.data_set`) for each of its parts. An executor (`pipeline.executors`) asks the questions.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.profiles import Chosen, choose, opened, signed_with
from pipeline.connections import api_of
from pipeline.errors import InputError, PrecheckError, status_of_summary
from pipeline.jobs.prepare import PlannedInput, RunTime, as_configured, identity_of
from pipeline.jobs.reuse import refuse_own_folder, reuse_answers
from pipeline.jobs.whole_file import WholeFile
from pipeline.runs.folder import has_begun, settled
from pipeline.runs.manifest import language_of_reports, replaced_manifest
from pipeline.runs.proof import is_past_signing, open_ledger, refuse_changed_copy
from pipeline.runs.request import CheckJob, Notice, Phase, RunObserver, Surface
from pipeline.runs.starting import refuse_foreign_files, remove_outdated
from pipeline.stages.read import PaymentSource
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.wording import Sentence
from schemas.changes import Change
from schemas.strict import timestamp
from schemas.summary import Summary

if TYPE_CHECKING:
    from pipeline.executors.asking import AskingResult, QuestionsLeft, RunQuestions
    from pipeline.executors.kept_open import KeptOpen
    from pipeline.jobs.writing import DecidedRun, OpenRun


class RunInput(Protocol):
    """The input of a run, with its steps (read, plan, decide, write), which `check` calls in order."""

    job: CheckJob  # the arguments of the check
    sha256: str  # SHA-256 of the input's bytes
    run_sha256: str  # identifies the input in its folder's ledger

    def finished_before(self, ledger: SqliteLedger, chosen: Chosen, today: date) -> Summary | None:
        """Return the summary of an earlier run that finished, if its files still exist."""

    def changes(self, summary: Summary) -> Sequence[Change]:
        """Return the changes that the earlier run found when it was compared with runs before it."""

    def prepare(self, chosen: Chosen, profile: Profile, time: RunTime, watch: RunObserver) -> Sentence | None:
        """Validate the input and find its questions; if a user must allow them first, return why."""

    def planned(self, profile: Profile) -> PlannedInput:
        """Return what a forecast states about the prepared input."""

    def questions(self, surface: Surface | None = None) -> "RunQuestions":
        """Return the questions to ask, and notify `surface` of calls that will probably be wasted."""

    def left(self, asked: "AskingResult") -> "QuestionsLeft":
        """Take the answers, and count the questions that are left."""

    def decide(self, run: "OpenRun", left: "QuestionsLeft", surface: Surface) -> "DecidedRun":
        """Decide every payment, and write the outcomes and the reports."""


class RunResult(NamedTuple):
    """The result of a run."""

    summary: Summary
    already_finished: bool  # True if an earlier run had already finished
    changes: Sequence[Change] = ()  # changes since earlier runs that people review
    next_step: Sentence | None = None  # how to continue if rows are left; in English in the summary
    ended_by: PrecheckError | None = None  # the error that ended the run early; results are as of then

    def exit_code(self, fail_on: Collection[str] = ()) -> int:
        """Return the exit status for this file."""
        return status_of_summary(self.summary, fail_on) if self.ended_by is None else self.ended_by.exit_code


def check(
    job: CheckJob, surface: Surface, kept: "KeptOpen | None" = None, ahead: PaymentSource | None = None
) -> RunResult:
    """Check one payment file, and return its results even if an error ended the run.

    Resources in `kept` stay open for the next file; `ahead` is this file's payments if they were read ahead.
    PrecheckError: it ended before the first question, or cannot write its outcomes; answers so far are kept.
    """
    return check_input(job, partial(WholeFile.read, ahead=ahead), surface, kept)


def check_input(
    job: CheckJob,
    read: Callable[[CheckJob, ConfigurationFile], RunInput],
    surface: Surface,
    kept: "KeptOpen | None" = None,
    *,
    asks: bool = True,
) -> RunResult:
    """Check an input, like `check`; with `asks` False, other processes ask the questions."""
    clock, started = surface.clock, surface.clock()
    surface.watch.enter(Phase.READING)
    now = timestamp(started)
    file, unused = ConfigurationFile.of(job.config).for_profile(job.profile)
    if unused is not None:
        surface.notify(Notice(unused, {}))
    payments = read(as_configured(job, file), file)
    job = payments.job
    chosen = signed_with(choose(job.profile, file).assuming(job.account_type), job.sign_with)
    refuse_own_folder(job.reusable.folders, job.out)
    refuse_changed_copy(job.file, payments.sha256, chosen.signer, own=job.out)
    refuse_foreign_files(job.out, chosen.environment, now=now, fresh=job.fresh)
    identity = identity_of(payments.run_sha256, chosen)
    with ExitStack() as opens:
        ledger, before = None, None if job.fresh else replaced_manifest(job.out)
        if has_begun(job.out) and not job.fresh:
            ledger = opens.enter_context(open_ledger(job.out, identity, chosen, now=now, before=before))
            is_settled = settled(job.out, ledger, chosen) and is_past_signing(job.out, ledger, chosen)
            if is_settled and (found := payments.finished_before(ledger, chosen, started.date())) is not None:
                _notify_unsigned(job, chosen, surface)
                return RunResult(found, already_finished=True, changes=payments.changes(found))
        profile = opens.enter_context(opened(chosen)) if kept is None else kept.profile(chosen)
        time = RunTime(started, begun=now if ledger is None else ledger.created_at)
        refusal = payments.prepare(chosen, profile, time, surface.watch)
        if refusal is not None and job.many_names_reason is None:
            raise InputError(
                refusal, advice=(Sentence("jobs.correct_rows"), Sentence("advice.allow_many_names"))
            )
        if ledger is None:  # a refused file must neither leave a folder behind nor delete answers
            over = surface.notify if job.fresh else None
            ledger = opens.enter_context(
                open_ledger(job.out, identity, chosen, now=now, before=before, over=over)
            )
        language = begin(job, ledger, now=timestamp(clock()))

        # Imported late: they load the HTTP libraries, which a refused run does not need.
        from pipeline.jobs.sharing import AskingPlan, ask, joined_run
        from pipeline.jobs.writing import OpenRun, leave

        plan = AskingPlan(payments.questions(surface), chosen, profile, kept)
        shared = opens.enter_context(joined_run(job, plan, identity, surface))
        apis = {server.name: api_of(server) for server in profile.servers}
        known = (ledger if shared is None else shared.shared, identity)
        reuse_answers(job.reusable._replace(signer=chosen.signer), plan.questions, known, apis, now=clock())
        asked, left = ask(job, plan, (ledger, shared), payments.left, surface, asks=asks)
        del plan  # it holds the largest frame
        surface.watch.enter(Phase.WRITING)
        run = OpenRun(job, chosen, profile, ledger, before, started, language, asked)
        decided = payments.decide(run, left, surface)
        leave(run, decided, left, clock)
        return result_of(run, left, decided)


def result_of(run: "OpenRun", left: "QuestionsLeft", decided: "DecidedRun") -> RunResult:
    """Return the result of a run whose files are written."""
    return RunResult(
        decided.summary,
        already_finished=False,
        changes=decided.changes,
        next_step=run.next_step(left) if decided.summary.next_step else None,
        ended_by=run.asked.ended_by or decided.ended_by,
    )


def begin(job: CheckJob, ledger: SqliteLedger, *, now: str) -> str:
    """Record this run's settings and report language, and remove results of a different check."""
    if job.many_names_reason is not None:
        ledger.allow(job.many_names_reason, time=now)
    if ledger.last_finish is None:
        remove_outdated(job.out)
    return language_of_reports(job, ledger, now=now)


def _notify_unsigned(job: CheckJob, chosen: Chosen, surface: Surface) -> None:
    if chosen.signer is not None and not chosen.signer.has_signed(job.out):
        missing = Sentence("jobs.notice_not_signed")
        surface.notify(Notice(missing, {"folder": str(job.out)}, is_vital=True))
