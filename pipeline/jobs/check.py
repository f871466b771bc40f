"""The whole road of a payment file, in order. Read this page first.

    file -read-> Payments -validate-> Accepted -plan-> Checks -ask-> Answers -resolve-> Outcomes -write-> file
                              `--------> Rejects ---------------------------'              `-report-> Summary

`check` opens the folder, the profile and the ledger, and joins the stages of `pipeline.stages`; an executor
(`pipeline.executors`) carries out the asking.
"""

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from pipeline.apis.registry import about_uk_accounts
from pipeline.config import ConfigurationFile
from pipeline.config.profiles import Chosen, choose, modulus_of, opened, signed_with
from pipeline.connections import api_of
from pipeline.errors import InputError, PrecheckError, status_of_summary
from pipeline.frames import Questions
from pipeline.jobs.prepare import (
    PreparedFile,
    RunTime,
    as_configured,
    identity_of,
    prepare,
    read_file,
    wanted,
)
from pipeline.jobs.reuse import refuse_own_folder, reuse_answers
from pipeline.reports.changes import changes_of
from pipeline.rules.enumeration import unknown_in_sequence
from pipeline.runs.ended import changes_in
from pipeline.runs.folder import has_begun
from pipeline.runs.input_file import require_pain001
from pipeline.runs.manifest import language_of_reports, replaced_manifest
from pipeline.runs.proof import is_past_signing, open_ledger, refuse_changed_copy
from pipeline.runs.request import CheckJob, Notice, Phase, Surface
from pipeline.runs.shared_folder import settled
from pipeline.runs.starting import LocalReferences, finished_before, refuse_foreign_files, remove_outdated
from pipeline.stages.plan import bases
from pipeline.stages.read import PaymentSource
from pipeline.stages.resolve import resolve
from pipeline.stages.write import write
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.wording import Sentence
from schemas.changes import Change
from schemas.outcomes import WarningCode
from schemas.row_positions import in_brackets
from schemas.strict import timestamp
from schemas.summary import ROWS_NAMED_MAX, Summary

if TYPE_CHECKING:
    from pipeline.executors.kept_open import KeptOpen


class RunResult(NamedTuple):
    """What a run leaves behind."""

    summary: Summary
    already_finished: bool
    """True where an earlier run had finished the job, and nothing was left to do."""
    changes: Sequence[Change] = ()
    """What changed since earlier runs, as far as a person looks at it."""
    next_step: Sentence | None = None
    """How to go on, where rows are left; the summary has it in English."""
    ended_by: PrecheckError | None = None
    """What ended the run early; its results are of that moment."""

    def exit_code(self, fail_on: Collection[str] = ()) -> int:
        """The exit status of its file."""
        return status_of_summary(self.summary, fail_on) if self.ended_by is None else self.ended_by.exit_code


def check(
    job: CheckJob, surface: Surface, kept: "KeptOpen | None" = None, ahead: PaymentSource | None = None
) -> RunResult:
    """Check one payment file, and say what it leaves behind; also where an error ended the asking.

    What is kept open stays so for the next file, and this one may have been read ahead.

    Raises:
        PrecheckError: the run ended before anything was asked, or its outcome file cannot be written; the
            exit code says why. Answers that came before are kept, and are not asked for again.
    """
    clock, started = surface.clock, surface.clock()
    surface.watch.enter(Phase.READING)
    now, read_once = timestamp(started), ConfigurationFile if kept is None else kept.configuration
    file, unused = read_once(job.config).for_profile(job.profile)
    job = as_configured(job, file)
    if unused is not None:
        surface.notify(Notice(unused, {}))
    source = read_file(job, file) if ahead is None else ahead
    if job.pain002:
        require_pain001(source.format, name=job.file.name)
    chosen = signed_with(choose(job.profile, file).assuming(job.account_type), job.sign_with)
    refuse_own_folder(job.reusable.folders, job.out)
    refuse_changed_copy(job.file, source.sha256, chosen.signer, own=job.out)
    refuse_foreign_files(job.out, chosen.environment, now=now, fresh=job.fresh)
    identity = identity_of(source, chosen)
    with ExitStack() as opens:
        ledger, before = None, None if job.fresh else replaced_manifest(job.out)
        if has_begun(job.out) and not job.fresh:
            ledger = opens.enter_context(open_ledger(job.out, identity, chosen, now=now, before=before))
            judged = LocalReferences(wanted(job, chosen).in_words, modulus_of(chosen, today=started.date()))
            is_settled = settled(job.out, ledger, chosen) and is_past_signing(job.out, ledger, chosen)
            if is_settled and (finished := finished_before(job, source, ledger, judged)) is not None:
                return _finished(finished, job, source, chosen, surface)
        profile = opens.enter_context(opened(chosen)) if kept is None else kept.profile(chosen)
        time = RunTime(started, begun=now if ledger is None else ledger.created_at)
        prepared, checks = prepare(job, source, chosen, profile, time)
        if prepared.refusal is not None and job.many_names_reason is None:
            raise InputError(
                prepared.refusal, advice=(Sentence("jobs.correct_rows"), Sentence("advice.allow_many_names"))
            )
        if ledger is None:  # a refused file must leave no folder behind, and delete no answers
            over = surface.notify if job.fresh else None
            ledger = opens.enter_context(
                open_ledger(job.out, identity, chosen, now=now, before=before, over=over)
            )
        language = begin(job, ledger, now=timestamp(clock()))
        _warn_before_asking(prepared, source, surface)

        # The HTTP libraries come with them, and a run that is refused needs none.
        from pipeline.jobs.sharing import ask_file, joined_run, plan_of_file
        from pipeline.jobs.writing import DecidedRun, OpenRun, leave

        apis = {server.name: api_of(server) for server in profile.servers}
        plan = plan_of_file(job, checks, chosen, profile)._replace(kept=kept)
        shared = opens.enter_context(joined_run(job, plan, identity, surface))
        reuse_answers(
            job.reusable._replace(signer=chosen.signer),
            checks,
            (ledger if shared is None else shared.shared, identity),
            apis,
            now=clock(),
        )
        asked = ask_file(job, plan, ledger, shared, surface)
        surface.watch.enter(Phase.WRITING)
        in_sequence = unknown_in_sequence(about_uk_accounts(checks), prepared.assignments, asked.answers)
        findings = prepared.findings.and_warnings(in_sequence)
        questions = Questions(bases(checks), prepared.assignments)
        del checks, plan  # the largest frame, and no longer needed
        outcomes, reasons = resolve(findings, questions, asked.answers, apis.values(), profile.environment)
        written = write(
            source.original,
            outcomes,
            job.out,
            format_name=job.format or source.outcome_format,
            dialect=source.dialect,
        )
        run = OpenRun(job, source, chosen, prepared, profile, ledger, before, started, language)
        decided = DecidedRun(outcomes, reasons, findings.warnings, questions.bases, asked)
        summary, changes = leave(run, decided, written, surface)
        return RunResult(
            summary,
            already_finished=False,
            changes=changes,
            next_step=asked.next_step(questions.bases) if summary.next_step else None,
            ended_by=asked.ended_by,
        )


def begin(job: CheckJob, ledger: SqliteLedger, *, now: str) -> str:
    """Record what was said for this run, and remove results of other answers; the language of its reports."""
    if job.many_names_reason is not None:
        ledger.allow(job.many_names_reason, time=now)
    if ledger.last_finish is None:
        remove_outdated(job.out)
    return language_of_reports(job, ledger, now=now)


def _finished(
    summary: Summary, job: CheckJob, source: PaymentSource, chosen: Chosen, surface: Surface
) -> RunResult:
    """The result of a run that had nothing left to do; notify where its manifest lacks the signature."""
    if chosen.signer is not None and not chosen.signer.has_signed(job.out):
        missing = Sentence("jobs.notice_not_signed")
        surface.notify(Notice(missing, {"folder": str(job.out)}, is_vital=True))
    changes = changes_of(summary, source.payments, changes_in(job.out))
    return RunResult(summary, already_finished=True, changes=changes)


def _warn_before_asking(prepared: PreparedFile, source: PaymentSource, surface: Surface) -> None:
    """Notify of calls that are likely to be wasted, while they can still be spared."""
    foreign = prepared.findings.warnings.filter(pl.col("code") == WarningCode.NAME_NOT_LATIN)["row"]
    if foreign.len():
        first = foreign.head(ROWS_NAMED_MAX).to_list()
        wasted = Sentence("jobs.notice_names_not_latin")
        rows = ", ".join(map(str, first)) + in_brackets(first, source.positions)
        surface.notify(Notice(wasted, {"row_count": foreign.len(), "rows": rows}))
