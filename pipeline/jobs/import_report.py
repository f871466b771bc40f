"""Turn a bank's reports into a run, by the steps of `jobs.check`. Their copies prove its outcomes later."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import polars as pl

from pipeline.config import Profile
from pipeline.config.file import IMPORTED, ConfigurationFile
from pipeline.config.profiles import choose, of_bank, signed_with, without_servers
from pipeline.errors import InputError, UsageError
from pipeline.executors.asking import AskingResult, QuestionsLeft
from pipeline.executors.from_report import (
    ReceivedReport,
    kept_reports,
    notes_on_others,
    read_report,
    reported_answers,
    reported_rows,
    rows_of_checks,
)
from pipeline.files.atomic import write_atomically
from pipeline.files.compressed import Compression, sniff
from pipeline.formats import pain001
from pipeline.formats.message import Message
from pipeline.frames import AnswerState, Assignments, Checks
from pipeline.jobs.bank_comparison import Comparing, compare_reports, compares, settle
from pipeline.jobs.check import RunResult, begin, result_of
from pipeline.jobs.data_set import CheckedSet
from pipeline.jobs.data_set_plan import in_part
from pipeline.jobs.prepare import RunTime, as_configured, identity_of
from pipeline.jobs.whole_file import WholeFile
from pipeline.jobs.writing import OpenRun, ReportedRun, leave
from pipeline.runs.data_set import DataPart
from pipeline.runs.ended import EndedRun
from pipeline.runs.folder import decider, has_begun, read_summary
from pipeline.runs.manifest import replaced_manifest
from pipeline.runs.proof import open_ledger, refuse_changed_copy
from pipeline.runs.request import CheckJob, DataSetJob, Notice, Phase, Surface
from pipeline.runs.starting import refuse_foreign_files
from pipeline.stages.ask.values import AskingTally
from pipeline.wording import Sentence
from schemas.folder import bank_report_name
from schemas.manifest import Manifest
from schemas.outcomes import Environment
from schemas.strict import timestamp
from schemas.summary import ReportUsed

_SUFFIXES = {None: ".xml", Compression.GZIP: ".xml.gz", Compression.ZIP: ".zip"}
_BATCHES_NAMED_MAX = 5
_REMARKS_MAX = 20
_ELSEWHERE = Sentence("advice.other_folder")


@dataclass(frozen=True, slots=True)
class ImportJob:
    """The arguments of `precheck import`: a payment file or a data set, and the bank's reports on it."""

    check: CheckJob
    reports: Sequence[Path]
    by: str | None  # the person who provides the reports; None if unknown
    work: Path | None = None  # the folder for intermediate files of a data set; None: the input is a file


def import_report(job: ImportJob, surface: Surface) -> RunResult:
    """Match reports with payments, and write or extend a run's folder (PrecheckError: nothing written)."""
    clock, started, by = surface.clock, surface.clock(), decider(job.by)
    now = timestamp(started)
    surface.watch.enter(Phase.READING)
    file, unused = ConfigurationFile.of(job.check.config).for_profile(job.check.profile or IMPORTED)
    if unused is not None:
        surface.notify(Notice(unused, {}))
    check = as_configured(job.check, file)
    payments = _read(check, job.work, file)
    before = None if check.fresh else replaced_manifest(check.out)
    if before is not None and compares(before) and _is_known(before, payments):
        return _compared(job, EndedRun(check.out, before), payments, by, surface)
    if before is not None:
        _refuse_other(check.out, before, payments)
    chosen = of_bank(signed_with(choose(check.profile or IMPORTED, file), check.sign_with))
    refuse_changed_copy(check.file, payments.sha256, chosen.signer, own=check.out)
    refuse_foreign_files(check.out, chosen.environment, now=now, fresh=check.fresh)
    identity = identity_of(payments.run_sha256, chosen)
    with ExitStack() as opens:
        ledger = None
        if has_begun(check.out) and not check.fresh:
            ledger = opens.enter_context(open_ledger(check.out, identity, chosen, now=now, before=before))
        profile = without_servers(chosen)
        time = RunTime(started, begun=now if ledger is None else ledger.created_at)
        payments.prepare(chosen, profile, time, surface.watch)
        messages = payments.messages()
        _refuse_alike([message for _, message in messages])
        ended = None if before is None else EndedRun(check.out, before)
        kept, reports, new = _received(job, ended, [message for _, message in messages])
        if kept and not new:
            return _known(check.out, surface)
        if ledger is None:
            over = surface.notify if check.fresh else None
            ledger = opens.enter_context(
                open_ledger(check.out, identity, chosen, now=now, before=before, over=over)
            )
        language = begin(check, ledger, now=timestamp(clock()))
        surface.watch.enter(Phase.WRITING)
        used = [*kept, *_copied(new, check.out, first=len(kept) + 1, by=by, now=now)]
        reports += [report._replace(data=b"") for report in new]  # they have been copied
        del new
        found = _Found.of(messages, reports)
        del messages
        for note in found.notes:
            surface.notify(Notice(note, {}, is_vital=True))
        unanswered_count = _answer(payments, profile, found.verdicts)
        asked, left = AskingResult({}, AskingTally(), 0, None), QuestionsLeft(0, 0, {})
        payments.left(asked)
        reported = ReportedRun(used, _next_step(unanswered_count, found.unnamed_batches), found.notes)
        run = OpenRun(check, chosen, profile, ledger, before, started, language, asked, reported)
        decided = payments.decide(run, left, surface)
        leave(run, decided, left, clock)
        return result_of(run, left, decided)


def _read(check: CheckJob, work: Path | None, file: ConfigurationFile) -> WholeFile | CheckedSet:
    if work is not None:
        data_set = CheckedSet.read(check, file, of=DataSetJob(check, work))
        if data_set.format != pain001.NAME:
            raise InputError(Sentence("jobs.import_needs_pain001", file=check.file.name))
        return data_set
    if check.file.is_dir():
        raise UsageError(Sentence("jobs.import_not_for_folders", file=check.file))
    payments = WholeFile.read(check, file)
    if not payments.messages():
        raise InputError(Sentence("jobs.import_needs_pain001", file=check.file.name))
    return payments


def _refuse_alike(messages: Sequence[Message]) -> None:
    """Refuse parts with the same id, because a report does not say which of them it is about."""
    ids = Counter(message.levels["id"][0] for message in messages)
    twice = [own_id or "" for own_id, count in ids.items() if count > 1]
    if twice:
        raise InputError(Sentence("jobs.import_message_id_repeated", own=twice[0]))


class _Found(NamedTuple):
    """What reports say about an input; its rows are numbered as in the input."""

    verdicts: pl.DataFrame
    notes: tuple[Sentence, ...]
    unnamed_batches: list[str]

    @classmethod
    def of(
        cls, messages: Sequence[tuple[DataPart | None, Message]], reports: Sequence[ReceivedReport]
    ) -> Self:
        verdicts, notes, batches, row_start = [], list[Sentence](), list[str](), 0
        for part, message in messages:
            found = reported_rows(message, reports)
            verdicts.append(found.verdicts.with_columns(pl.col("row") + row_start))
            notes += [note if part is None else in_part(note, part) for note in found.notes]
            batches += [batch if part is None else f"{part.name} {batch}" for batch in found.unnamed_batches]
            row_start += message.payments.height
        return cls(pl.concat(verdicts), (*notes, *notes_on_others(reports)), batches)


def _answer(payments: WholeFile | CheckedSet, profile: Profile, verdicts: pl.DataFrame) -> int:
    """Answer an input's questions; return how many stay unanswered."""
    planned, questions, unanswered_count = payments.planned(profile), payments.questions(), 0
    questions.forget()
    for part, (checks, assignments) in enumerate(planned.questions):
        rows = rows_of_checks(Checks(checks), Assignments(assignments))
        answers = reported_answers(Checks(checks), rows, verdicts)
        questions.keep(part, "reports", answers)
        unanswered_count += answers.filter(state=AnswerState.UNANSWERED).height
    return unanswered_count


def _is_known(before: Manifest, payments: WholeFile | CheckedSet) -> bool:
    """True if a folder has results of this input, perhaps before an unusable part was corrected."""
    return before.input.sha256 == payments.sha256 or payments.run_sha256 != payments.sha256


def _refuse_other(folder: Path, before: Manifest, payments: WholeFile | CheckedSet) -> None:
    """Refuse a folder with results of another file, or with a check that reports cannot be compared with."""
    if not _is_known(before, payments):
        raise UsageError(Sentence("jobs.import_other_file", folder=folder), advice=_ELSEWHERE)
    if before.environment is not Environment.BANK:
        raise UsageError(Sentence("jobs.import_simulated", folder=folder), advice=_ELSEWHERE)


def _received(
    job: ImportJob, run: EndedRun | None, messages: Sequence[Message]
) -> tuple[list[ReportUsed], list[ReceivedReport], list[ReceivedReport]]:
    """Return the recorded reports, their contents read from the copies, and the reports that are new."""
    kept = [] if run is None else run.manifest.bank_reports
    reports = [] if run is None else kept_reports(run, messages)
    given = {report.sha256: report for report in (read_report(path, messages) for path in job.reports)}
    return kept, reports, [given[sha256] for sha256 in given if sha256 not in {one.sha256 for one in kept}]


def _known(folder: Path, surface: Surface) -> RunResult:
    surface.notify(Notice(Sentence("jobs.import_nothing_new", folder=folder), {}))
    return RunResult(read_summary(folder), already_finished=True)


def _compared(
    job: ImportJob, run: EndedRun, payments: WholeFile | CheckedSet, by: str, surface: Surface
) -> RunResult:
    now = surface.clock()
    settle(run, now=now)
    if isinstance(payments, WholeFile):
        messages = [message for _, message in payments.messages()]
    else:  # the parts that the run checked
        messages = [run.original(part, payments.job.file).as_message() for part in run.parts()]
    _refuse_alike(messages)
    kept, reports, new = _received(job, run, messages)
    if not new:
        return _known(run.folder, surface)
    surface.watch.enter(Phase.WRITING)
    used = [*kept, *_copied(new, run.folder, first=len(kept) + 1, by=by, now=timestamp(now))]
    file, read = ConfigurationFile.of(job.check.config), [*reports, *new]
    comparing = Comparing(run, job.check.sign_with, file, messages, read, used, job.check.language)
    summary, changes = compare_reports(comparing, surface, now=now)
    return RunResult(summary, already_finished=False, changes=changes)


def _next_step(count: int, unnamed: Sequence[str]) -> Sentence:
    """Name the batches without a report, or say that the bank's next report is needed."""
    if not unnamed:
        return Sentence("jobs.import_results_missing", count=count)
    batches: list[Sentence | str] = [*unnamed[:_BATCHES_NAMED_MAX]]
    if more_count := len(unnamed) - len(batches):
        batches.append(Sentence("jobs.import_more_batches", count=more_count))
    return Sentence("jobs.import_batches_unnamed", count=count, batches=batches)


def _copied(
    reports: Iterable[ReceivedReport], folder: Path, *, first: int, by: str, now: str
) -> list[ReportUsed]:
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
