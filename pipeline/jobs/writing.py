"""Write the output of a run, finished or not: summary, reports and evidence."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline.apis import Api, ReportDeclaration
from pipeline.apis.vop import BANK_REPORT
from pipeline.config import Profile
from pipeline.config.profiles import Chosen
from pipeline.connections import api_of
from pipeline.errors import PrecheckError
from pipeline.executors.asking import AskingResult, QuestionsLeft, calls_of, next_step
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import with_own_errors
from pipeline.formats.batches import batch_places
from pipeline.formats.message import message_fields
from pipeline.frames import Bases, Outcomes, Reasons, Warnings, question_counts
from pipeline.jobs.comparing import keep
from pipeline.jobs.prepare import VERSION, PreparedFile, country_of
from pipeline.reports.changes import changes_of
from pipeline.reports.documents import Rows, bank_report, reports
from pipeline.reports.wording import said_reasons
from pipeline.runs.ended import EndedRun, keep_changes
from pipeline.runs.families import made_of
from pipeline.runs.folder import keep_document
from pipeline.runs.manifest import LedgerSummary, RunSettings, keep_workbook, write_manifest
from pipeline.runs.proof import sign
from pipeline.runs.request import CheckJob, Clock, Surface
from pipeline.runs.starting import remove_stale
from pipeline.stages.compare import and_differences, warnings_of
from pipeline.stages.read import PaymentSource
from pipeline.stages.resolve import Resolved
from pipeline.stages.summarise import summarise
from pipeline.stages.write import WrittenOutcomes, write
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.wording import Moment, Sentence, speaking
from schemas.changes import Change
from schemas.folder import REASONS, SUMMARY
from schemas.localized import LocalizedText
from schemas.manifest import Manifest
from schemas.outcomes import ApiName, Environment
from schemas.strict import timestamp
from schemas.summary import ApiCalls, InputFile, ReportUsed, Summary

if TYPE_CHECKING:
    from pipeline.executors.from_report import ComparedReports


class ReportedRun(NamedTuple):
    """A bank's reports, which a run reads instead of asking."""

    reports: Sequence[ReportUsed]  # the reports, whose copies are in the folder
    next_step: Sentence  # how to continue if rows are left
    notes: Sequence[Sentence]  # what users must know about the reports


class OpenRun(NamedTuple):
    """A run that sends no more questions."""

    job: CheckJob
    chosen: Chosen
    profile: Profile  # the chosen profile, with its servers running
    ledger: SqliteLedger
    before: Manifest | None  # the manifest that the run found at its start
    started: datetime
    language: str  # language of page and workbook
    asked: AskingResult
    reported: ReportedRun | None = None  # None if servers were asked

    def next_step(self, left: QuestionsLeft) -> Sentence:
        """Return the sentence about what is left: questions, or unusable parts."""
        if self.reported is not None:
            return self.reported.next_step
        return next_step(left, self.asked) if left.open_count else Sentence("jobs.correct_unusable_parts")

    def header(self, left: QuestionsLeft, clock: Clock) -> dict[str, Any]:
        """Return the fields of the run's summary that are not about its input, as for `of_run`."""
        return {
            "tool_version": VERSION,
            "profile": self.chosen.name,
            "environment": self.chosen.environment,
            "started": timestamp(self.started),
            "finished": timestamp(clock()),
            "next_step": str(self.next_step(left)),
            "given_up": left.is_given_up,
            "many_names_reason": self.job.many_names_reason,
            "bank_reports": [*self.bank_reports],
        }

    @property
    def apis(self) -> Iterable[Api | ReportDeclaration]:
        """The sources of the answers."""
        return map(api_of, self.profile.servers) if self.reported is None else [BANK_REPORT]

    @property
    def notes(self) -> list[LocalizedText]:
        """Who provided the bank's reports that answered this run, and what users must know about them."""
        if self.reported is None:
            return []
        provided = [
            Sentence(
                "jobs.report_provided", name=one.provided_by, file=one.given_as, time=Moment(one.provided)
            )
            for one in self.reported.reports
        ]
        return [note.recorded() for note in (*provided, *self.reported.notes)]

    def calls(self, counts: Mapping[ApiName, int]) -> list[ApiCalls]:
        """Return the calls for questions, by their counts; a bank's reports need none."""
        return [] if self.reported is not None else calls_of(counts, self.asked.tally)

    @property
    def compares_with_bank(self) -> bool:
        """True if its outcomes are compared with the bank's reports of an earlier import."""
        return self.reported is None and bool(self.bank_reports)

    @property
    def bank_reports(self) -> Sequence[ReportUsed]:
        """The bank's reports that answered this run, or that this check was compared with."""
        if self.reported is not None:
            return self.reported.reports
        before = self.before
        return () if before is None or before.environment is Environment.BANK else before.bank_reports


class DecidedRun(NamedTuple):
    """A run that is decided and reported."""

    summary: Summary
    written: WrittenOutcomes
    files: Sequence[Path]  # all other files that the run wrote
    question_count: int
    changes: Sequence[Change] = ()  # changes since earlier runs that people review
    work: Sequence[Path] = ()  # folders to remove when the run ends
    ended_by: PrecheckError | None = None  # why some payments are undecided although all questions were asked


def leave(run: OpenRun, decided: DecidedRun, left: QuestionsLeft, clock: Clock) -> None:
    """Record the end of a run, and write its manifest last of all; same errors as `write_atomically`."""
    job, ledger, signer = run.job, run.ledger, run.chosen.signer
    files = [decided.written.path, *decided.files]
    files += [job.out / report.name for report in run.bank_reports]
    remove_stale(job.out, files)
    finish = ledger.finish(
        timestamp(clock()),
        question_count=decided.question_count,
        unanswered_count=left.open_count,
        outcome_sha256=decided.written.sha256,
    )
    count, known_by = ledger.finish_count, ledger.run.input_sha256
    recorded = LedgerSummary(finish, ledger.counts, ledger.created_at, count, ledger.digests(count), known_by)
    settings = RunSettings(run.chosen.name, run.profile, run.chosen.fingerprint, job.mapping, run.language)
    signs = signer is not None
    made = write_manifest(job.out, decided.summary, settings, recorded, files, before=run.before, signs=signs)
    sign(job.out, signer, made)
    for folder in decided.work:
        rmtree(folder, ignore_errors=True)


def write_results(  # noqa: PLR0913, PLR0917 (everything known about a file)
    run: OpenRun,
    left: QuestionsLeft,
    source: PaymentSource,
    prepared: PreparedFile,
    decided: Resolved,
    bases: Bases,
    surface: Surface,
) -> DecidedRun:
    """Write the outcome file, and the summary and reports beside it; same errors as `leave`."""
    job, compared, clock = run.job, prepared.compared, surface.clock
    outcomes, reasons = decided
    format_name = job.format or source.outcome_format
    written = write(source.original, outcomes, job.out, format_name=format_name, dialect=source.dialect)
    bank = _compared_with_bank(run, source, outcomes)
    warnings = prepared.findings.warnings
    if bank is not None:
        warnings = Warnings(pl.concat([warnings, warnings_of(bank.changes)]))
    header = run.header(left, clock) | {
        "input": _input(run, source, prepared),
        "routes": prepared.routes,
        "compared": None if compared is None else compared.comparison,
        "modulus": prepared.modulus,
        "bank_comparison": None if bank is None else bank.comparison,
    }
    calls = run.calls(question_counts(bases))
    batches = batch_places(source.message)
    summary = summarise(header, source.payments, outcomes, warnings, calls, batches=batches)
    keep_workbook(job.out, surface)
    changes = None if compared is None else compared.changes
    if bank is not None:
        changes = and_differences(changes, bank.changes)
    rows = Rows(source.payments, outcomes, source.original, changes, said_reasons(reasons))
    with speaking(run.language):
        policy, outcome_name = run.chosen.settings.policy, written.path.name
        documents = reports(job.out, summary, rows, outcome_name=outcome_name, policy=policy)
    files = [keep_document(job.out / SUMMARY, summary), keep_reasons([reasons], job.out), *documents]
    if compared is not None:  # the next run compares with this one
        files.append(keep(compared, lambda _: outcomes, run.ledger.payee_key, job.out))
    if changes is not None:
        files.append(keep_changes(changes, job.out))
    if job.pain002 and source.message is not None:
        files.append(bank_report(job.out, summary, source.message, outcomes, now=clock()))
    question_count = sum(call.question_count for call in calls)
    return DecidedRun(summary, written, files, question_count, changes_of(summary, source.payments, changes))


def _compared_with_bank(run: OpenRun, source: PaymentSource, outcomes: Outcomes) -> "ComparedReports | None":
    if not run.compares_with_bank:
        return None
    from pipeline.executors.from_report import compared_with, kept_reports

    assert run.before is not None
    message = source.as_message()
    reports = kept_reports(EndedRun(run.job.out, run.before), [message])
    return compared_with(message, source.payments, outcomes, reports)


def keep_reasons(parts: Iterable[Reasons], folder: Path) -> Path:
    """Write the sentences that explain the reasons in the outcome files, once for all parts."""
    path, written = folder / REASONS, pl.Series("reason", [], pl.String)
    names_row = pl.col("sentence").str.contains('"row":', literal=True)  # and so is of one row only
    with write_atomically(path) as file, with_own_errors(file) as through:
        for reasons in parts:
            new = reasons.filter(~pl.col("reason").is_in(written.implode()))
            new.write_ndjson(through)
            written = pl.concat([written, new.filter(~names_row)["reason"]])
    return path


def _input(run: OpenRun, source: PaymentSource, prepared: PreparedFile) -> InputFile:
    job, facts, layout = run.job, prepared.facts(source), source.layout
    return InputFile(
        name=job.file.name,
        sha256=source.sha256,
        byte_count=source.byte_count,
        row_count=source.payments.height,
        made_of=made_of(job.file, source.sha256, job.out),
        format=source.format,
        format_said=job.input_format is not None,
        layout=None if layout is None else layout.model_dump(mode="json", exclude_defaults=True),
        sheet=job.sheet,
        country=country_of(job, run.chosen),
        columns=source.read_as,
        mapping=dict(job.mapping),
        decision=dict(source.decision),
        **source.dialect_fields,
        positions=source.positions,
        **facts | {"notes": [*facts["notes"], *run.notes]},
        **message_fields(source.message),
    )
