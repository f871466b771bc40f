"""Turn a bank's reports on a payment file into the folder of a run. Sends nothing.

The steps are those of `jobs.check`, but the executor reads reports instead of asking. The reports are copied
into the folder, so that outcomes can be derived again from the copies.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipeline.config.file import IMPORTED, ConfigurationFile
from pipeline.config.profiles import choose, of_bank, signed_with, without_servers
from pipeline.errors import InputError, UsageError
from pipeline.executors.asking import AskingResult, QuestionsLeft
from pipeline.executors.from_report import (
    ReceivedReport,
    ReportedAnswers,
    decided_by_reports,
    kept_reports,
    read_report,
)
from pipeline.files.atomic import write_atomically
from pipeline.files.compressed import Compression, sniff
from pipeline.formats import pain001
from pipeline.formats.message import Message
from pipeline.frames import AnswerState
from pipeline.jobs.bank_comparison import Comparing, compare_reports, compares, drop_copies
from pipeline.jobs.check import RunResult, begin
from pipeline.jobs.prepare import RunTime, as_configured, identity_of, prepare, read_file
from pipeline.jobs.writing import OpenRun, ReportedRun, leave, write_results
from pipeline.runs.ended import EndedRun
from pipeline.runs.folder import decider, has_begun, read_summary
from pipeline.runs.manifest import replaced_manifest
from pipeline.runs.proof import open_ledger, refuse_changed_copy
from pipeline.runs.request import CheckJob, Notice, Phase, Surface
from pipeline.runs.starting import refuse_foreign_files
from pipeline.stages.ask.values import AskingTally
from pipeline.stages.plan import Plan, bases
from pipeline.stages.read import PaymentSource
from pipeline.wording import Moment, Sentence
from schemas.folder import bank_report_name
from schemas.manifest import Manifest
from schemas.outcomes import Environment
from schemas.strict import timestamp
from schemas.summary import ReportUsed

_SUFFIXES = {None: ".xml", Compression.GZIP: ".xml.gz", Compression.ZIP: ".zip"}
_BATCHES_NAMED_MAX = 5
_REMARKS_MAX = 20


@dataclass(frozen=True, slots=True)
class ImportJob:
    """The arguments of `precheck import`: a payment file, and the bank's reports on it."""

    check: CheckJob
    reports: Sequence[Path]
    by: str | None  # the person who provides the reports; None if unknown


def import_report(job: ImportJob, surface: Surface) -> RunResult:
    """Match the reports with the payments, and write a new run's folder or extend an existing one.

    Raises:
        PrecheckError: nothing was written; the exit code says why.
    """
    check, clock = job.check, surface.clock
    started, by = clock(), decider(job.by)
    now = timestamp(started)
    surface.watch.enter(Phase.READING)
    file, unused = ConfigurationFile(check.config).for_profile(check.profile or IMPORTED)
    if unused is not None:
        surface.notify(Notice(unused, {}))
    check = as_configured(check, file)
    source, message = _read(check, file)
    before = None if check.fresh else replaced_manifest(check.out)
    if before is not None and compares(before) and before.input.sha256 == source.sha256:
        return _compared(job, EndedRun(check.out, before), message, by, surface)
    if before is not None:
        _refuse_other(check.out, before, source.sha256)
    chosen = of_bank(signed_with(choose(check.profile or IMPORTED, file), check.sign_with))
    refuse_changed_copy(check.file, source.sha256, chosen.signer, own=check.out)
    refuse_foreign_files(check.out, chosen.environment, now=now, fresh=check.fresh)
    identity = identity_of(source.sha256, chosen)
    with ExitStack() as opens:
        ledger = None
        if has_begun(check.out) and not check.fresh:
            ledger = opens.enter_context(open_ledger(check.out, identity, chosen, now=now, before=before))
        kept, reports, new = _received(job, None if before is None else EndedRun(check.out, before), message)
        if kept and not new:
            return _known(check.out, surface)
        profile = without_servers(chosen)
        time = RunTime(started, begun=now if ledger is None else ledger.created_at)
        prepared, checks = prepare(check, source, chosen, profile, time)
        if ledger is None:
            over = surface.notify if check.fresh else None
            ledger = opens.enter_context(
                open_ledger(check.out, identity, chosen, now=now, before=before, over=over)
            )
        language = begin(check, ledger, now=timestamp(clock()))
        surface.watch.enter(Phase.WRITING)
        used = [*kept, *_copied(new, check.out, first=len(kept) + 1, by=by, now=now)]
        planned = Plan(checks, prepared.assignments)
        reports += [report._replace(data=b"") for report in new]  # they have been copied
        del new
        found, resolved = decided_by_reports(message, prepared.findings, planned, reports)
        provided = [
            Sentence(
                "jobs.report_provided",
                name=report.provided_by,
                file=report.given_as,
                time=Moment(report.provided),
            )
            for report in used
        ]
        prepared = prepared._replace(notes=(*prepared.notes, *provided, *found.notes))
        for note in found.notes:
            surface.notify(Notice(note, {}, is_vital=True))
        asked, left = AskingResult({}, AskingTally(), 0, None), QuestionsLeft(0, 0, {})
        reported = ReportedRun(used, _next_step(found))
        run = OpenRun(check, chosen, profile, ledger, before, started, language, asked, reported)
        decided = write_results(run, left, source, prepared, resolved, bases(checks), surface)
        leave(run, decided, left, clock)
        next_step = reported.next_step if decided.summary.next_step else None
        return RunResult(
            decided.summary, already_finished=False, changes=decided.changes, next_step=next_step
        )


def _read(check: CheckJob, file: ConfigurationFile) -> tuple[PaymentSource, Message]:
    if check.file.is_dir():
        raise UsageError(Sentence("jobs.import_one_file", file=check.file))
    source = read_file(check, file)
    if source.format != pain001.NAME or source.message is None:
        raise InputError(Sentence("jobs.import_needs_pain001", file=check.file.name))
    return source, source.message


def _refuse_other(folder: Path, before: Manifest, sha256: str) -> None:
    """Refuse a folder with results of another file, or with a check that reports cannot be compared with."""
    advice = Sentence("advice.other_folder")
    if before.input.sha256 != sha256:
        raise UsageError(Sentence("jobs.import_other_file", folder=folder), advice=advice)
    if before.environment is not Environment.BANK:
        raise UsageError(Sentence("jobs.import_simulated", folder=folder), advice=advice)


def _received(
    job: ImportJob, run: EndedRun | None, message: Message
) -> tuple[list[ReportUsed], list[ReceivedReport], list[ReceivedReport]]:
    """Return the recorded reports, their contents read from the copies, and the reports that are new."""
    kept = [] if run is None else run.manifest.bank_reports
    reports = [] if run is None else kept_reports(run, message)
    given = {report.sha256: report for report in (read_report(path, message) for path in job.reports)}
    return kept, reports, [given[sha256] for sha256 in given if sha256 not in {one.sha256 for one in kept}]


def _known(folder: Path, surface: Surface) -> RunResult:
    surface.notify(Notice(Sentence("jobs.import_known", folder=folder), {}))
    return RunResult(read_summary(folder), already_finished=True)


def _compared(job: ImportJob, run: EndedRun, message: Message, by: str, surface: Surface) -> RunResult:
    """Compare the check in a folder with the reports, and keep both; outcomes stay unchanged."""
    now = surface.clock()
    kept, reports, new = _received(job, run, message)
    if not new:
        drop_copies(run, now=now)
        return _known(run.folder, surface)
    surface.watch.enter(Phase.WRITING)
    used = [*kept, *_copied(new, run.folder, first=len(kept) + 1, by=by, now=timestamp(now))]
    comparing = Comparing(run, job.check.sign_with, message, [*reports, *new], used, job.check.language)
    summary, changes = compare_reports(comparing, surface, now=now)
    return RunResult(summary, already_finished=False, changes=changes)


def _next_step(found: ReportedAnswers) -> Sentence:
    """Name the batches without a report, or say that the bank's next report is needed."""
    count = found.answers.filter(state=AnswerState.UNANSWERED).height
    if not found.unnamed_batches:
        return Sentence("jobs.import_left", count=count)
    batches: list[Sentence | str] = [*found.unnamed_batches[:_BATCHES_NAMED_MAX]]
    if more_count := len(found.unnamed_batches) - len(batches):
        batches.append(Sentence("jobs.import_more_batches", count=more_count))
    return Sentence("jobs.import_unnamed", count=count, batches=batches)


def _copied(
    reports: Iterable[ReceivedReport], folder: Path, *, first: int, by: str, now: str
) -> list[ReportUsed]:
    """Copy reports unchanged into a folder."""
    used = []
    for number, report in enumerate(reports, start=first):
        name = bank_report_name(number, _SUFFIXES[sniff(report.data)])
        with write_atomically(folder / name) as file:
            file.write(report.data)
        levels = report.content.levels
        remarks = levels["notes"].explode().drop_nulls().unique(maintain_order=True).head(_REMARKS_MAX)
        used.append(
            ReportUsed(
                name=name,
                given_as=report.name,
                sha256=report.sha256,
                provided_by=by,
                provided=now,
                message_ids=levels.filter(pl.col("batch") == 0)["report_id"].drop_nulls().to_list(),
                remarks=remarks.to_list(),
            )
        )
    return used
