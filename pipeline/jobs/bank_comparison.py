"""Compare a check with the bank's later reports: payments that disagree get the warning BANK_DIFFERS."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import policy_today
from pipeline.executors.from_report import ReceivedReport, kept_reports, reported_outcomes
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import writing
from pipeline.formats.message import Message
from pipeline.frames import CHANGES, Changes, Outcomes, Payments
from pipeline.reports.changes import changes_of
from pipeline.reports.documents import Rows, reports
from pipeline.rules.warnings import warning_counts
from pipeline.runs.ended import EndedRun, keep_changes
from pipeline.runs.folder import keep_document
from pipeline.runs.manifest import evidence, keep_workbook, refresh_manifest
from pipeline.runs.proof import opened_to_read, sign, signer_again
from pipeline.runs.request import Notice, Surface
from pipeline.stages.compare import compare_with_bank, warnings_of
from pipeline.wording import Moment, Sentence, speaking
from schemas.changes import BankComparison, Change
from schemas.folder import CHANGES as CHANGES_NAME
from schemas.folder import SUMMARY, copy_before
from schemas.manifest import Manifest
from schemas.outcomes import ABOUT_THE_PAYEE, Environment, Outcome, WarningCode
from schemas.strict import timestamp
from schemas.summary import ROWS_LISTED_MAX, ReportUsed, Summary, WarningRow


class ComparedReports(NamedTuple):
    """A check compared with the bank's reports about the same file."""

    changes: Changes  # only changes with the code BANK_DIFFERS
    comparison: BankComparison
    notes: tuple[Sentence, ...] = ()  # what users must know about the reports

    def joined(self, earlier: Changes | None) -> Changes:
        """Add these changes to those of earlier runs; they replace an earlier comparison with the bank."""
        others = pl.DataFrame(schema=CHANGES) if earlier is None else earlier.filter(~_OF_BANK)
        return Changes(pl.concat([others, self.changes]).sort("row", "code"))


_REWRITTEN = (SUMMARY, CHANGES_NAME)
_OF_BANK = pl.col("code") == WarningCode.BANK_DIFFERS


def compares(before: Manifest | None) -> bool:
    """True if the folder contains a check by real servers, to compare a bank's report with."""
    return before is not None and not before.simulated and before.environment is not Environment.BANK


def compared_with(
    message: Message, payments: Payments, outcomes: Outcomes, received: Sequence[ReceivedReport]
) -> ComparedReports:
    """Compare the outcomes of a check, row by row, with what the reports say on their own."""
    reported, notes = reported_outcomes(message, payments, received)
    return ComparedReports(*compare_with_bank(outcomes, reported), notes)


def compared_again(
    run: EndedRun, message: Message, payments: Payments, outcomes: Outcomes
) -> ComparedReports:
    """Compare again, with the copies of the reports in a run's folder; same errors as `kept_reports`."""
    return compared_with(message, payments, outcomes, kept_reports(run, [message]))


def agrees(run: EndedRun, message: Message, rows: Rows) -> bool:
    """True if the recorded changes follow from the copies of the reports; same errors as `kept_reports`."""
    recorded = pl.DataFrame(schema=CHANGES) if rows.changes is None else rows.changes.filter(_OF_BANK)
    again = compared_again(run, message, rows.payments, rows.outcomes)
    return recorded.sort("row").equals(again.changes.sort("row"))


class Comparing(NamedTuple):
    """The input of a comparison."""

    run: EndedRun
    sign_with: Path | None
    file: ConfigurationFile  # with the policy and the usual signing key
    message: Message  # the payment file
    received: Sequence[ReceivedReport]  # all reports, those of earlier imports first
    used: Sequence[ReportUsed]  # the same reports, with the names of their copies in the folder
    language: str | None  # language of page and workbook; None keeps it


def compare_reports(job: Comparing, surface: Surface, *, now: datetime) -> tuple[Summary, Sequence[Change]]:
    """Write a comparison into the folder of a check: the summary, the reports and the evidence.

    Raises InputError if a file was changed or purged, ConfigurationError if the key cannot be read,
    LockedError if a run works there, and OutputError or DiskError if a file cannot be written.
    """
    run, folder = job.run, job.run.folder
    with opened_to_read(folder, now=timestamp(now), alone=True):
        signer = signer_again(folder, run.manifest, job.sign_with, job.file)
        _restore(run)
        rows = run.rows()
        found = compared_with(job.message, rows.payments, rows.outcomes, job.received)
        changes = found.joined(rows.changes)
        summary = _with_comparison(run.summary(), rows.outcomes, found, job.used)
        for note in (*found.notes, *_released(run.manifest, found.changes)):
            surface.notify(Notice(note, {}, is_vital=True))
        keep_workbook(folder, surface)
        rows = rows._replace(changes=changes)
        name, policy = run.outcome_file.name, policy_today(summary.profile, job.file)
        with speaking(job.language or run.manifest.language):
            documents = reports(folder, summary, rows, outcome_name=name, policy=policy)
        _keep(run)
        written = [keep_document(folder / SUMMARY, summary), keep_changes(changes, folder), *documents]
        made = refresh_manifest(
            folder,
            run.manifest,
            now=now,
            written=[*(path.name for path in written), *(report.name for report in job.used)],
            decided=None if signer is None else [],
            language=job.language,
            bank_reports=job.used,
        )
        sign(folder, signer, made)
        _drop_copies(folder)
    return summary, changes_of(summary, rows.payments, changes)


def drop_copies(run: EndedRun, *, now: datetime) -> None:
    """Drop the copies that a comparison left when it was killed after its manifest; same errors as it."""
    if any(map(Path.exists, _copies(run.folder))):
        with opened_to_read(run.folder, now=timestamp(now), alone=True):
            _drop_copies(run.folder)


def _copies(folder: Path) -> list[Path]:
    return [folder / copy_before(name) for name in _REWRITTEN]


def _drop_copies(folder: Path) -> None:
    for copy in _copies(folder):
        with writing(copy):
            copy.unlink(missing_ok=True)


def _keep(run: EndedRun) -> None:
    """Keep copies of the files that a comparison starts from until the manifest has the new ones."""
    for path in map(run.folder.joinpath, _REWRITTEN):
        if path.exists():
            content = run.content(path.name)
            with write_atomically(path.with_name(copy_before(path.name))) as file:
                file.write(content)


def _restore(run: EndedRun) -> None:
    """Undo a comparison that was killed before its manifest was written."""
    for name, copy in zip(_REWRITTEN, _copies(run.folder), strict=True):
        path = run.folder / name
        with writing(path):
            if copy.exists() and evidence(copy).sha256 == run.sha256_of(name):
                copy.replace(path)
    changes = run.folder / CHANGES_NAME
    if not run.sha256_of(CHANGES_NAME):
        with writing(changes):
            changes.unlink(missing_ok=True)  # the first comparison was killed
    _drop_copies(run.folder)


def _with_comparison(
    summary: Summary, outcomes: Outcomes, found: ComparedReports, used: Sequence[ReportUsed]
) -> Summary:
    warnings = warnings_of(found.changes)
    new = [
        WarningRow(row=row, code=code, message=message)
        for row, code, message in warnings.select("row", "code", "message").iter_rows()
    ]
    others = [warning for warning in summary.warnings if warning.code != WarningCode.BANK_DIFFERS]
    other_codes = [count for count in summary.warning_codes if count.code is not WarningCode.BANK_DIFFERS]
    codes = [*warning_counts(warnings), *other_codes]
    before_count = summary.bank_comparison.differing_count if summary.bank_comparison else 0
    about_payee = {row for code in codes if code.code in ABOUT_THE_PAYEE for row in code.every_row}
    matches = outcomes.filter(pl.col("check_outcome") == Outcome.MATCH)["row"]
    return summary.model_copy(
        update={
            "warnings": [*new, *others][:ROWS_LISTED_MAX],
            "warning_count": summary.warning_count - before_count + len(new),
            "warning_codes": codes,
            "warned_match_count": len(about_payee.intersection(matches)),
            "bank_reports": [*used],
            "bank_comparison": found.comparison,
        }
    )


def _released(manifest: Manifest, changes: Changes) -> Iterator[Sentence]:
    for last in manifest.splits[-1:]:
        if count := changes.filter(~pl.col("row").is_in(last.held_rows)).height:
            yield Sentence("jobs.differing_released", count=count, time=Moment(last.time))
