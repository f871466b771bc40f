"""Compare a check with the bank's later reports: payments that disagree get the warning BANK_DIFFERS."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import policy_today
from pipeline.executors import from_report
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import with_own_errors, writing
from pipeline.formats.message import Message
from pipeline.frames import CHANGES, Changes, Warned
from pipeline.reports.documents import Rows
from pipeline.rules.warnings import warning_counts
from pipeline.runs.ended import EndedRun, RunPart, changes_in, keep_changes, reports_again
from pipeline.runs.folder import keep_document
from pipeline.runs.manifest import evidence, keep_workbook, refresh_manifest
from pipeline.runs.proof import opened_to_read, sign, signer_again
from pipeline.runs.request import Notice, Surface
from pipeline.stages.compare import OF_BANK, added_comparisons, and_differences, warnings_of
from pipeline.wording import Moment, Sentence, speaking
from schemas.changes import Change
from schemas.folder import CHANGES as CHANGES_NAME
from schemas.folder import SUMMARY, WARNED, copy_before
from schemas.manifest import Manifest
from schemas.outcomes import ABOUT_THE_PAYEE, Environment, Outcome, WarningCode
from schemas.strict import timestamp
from schemas.summary import ROWS_LISTED_MAX, ReportUsed, Summary, WarningRow

_REWRITTEN = (SUMMARY, CHANGES_NAME, WARNED)


def compares(before: Manifest | None) -> bool:
    """True if the folder contains a check by real servers, to compare a bank's report with."""
    return before is not None and not before.simulated and before.environment is not Environment.BANK


def agrees(run: EndedRun, messages: Sequence[Message], rows_of: Callable[[RunPart], Rows]) -> bool:
    """True if the recorded changes follow from the copies of the reports; same errors as `kept_reports`."""
    changes = changes_in(run.folder, run.content)
    recorded = pl.DataFrame(schema=CHANGES) if changes is None else changes.filter(OF_BANK)
    again, _ = _compared(run, messages, from_report.kept_reports(run, messages), rows_of)
    return recorded.sort("row").equals(again.changes.sort("row"))


def _compared(
    run: EndedRun,
    messages: Sequence[Message],
    reports: Sequence[from_report.ReceivedReport],
    rows_of: Callable[[RunPart], Rows],
) -> tuple[from_report.ComparedReports, pl.Series]:
    """Compare every part with the reports; return the result, and the rows that the check matched."""
    found, notes, matched, parts = list[from_report.ComparedReports](), list[Sentence](), [], run.parts()
    for part, message in zip(parts, messages, strict=True):
        rows = rows_of(part)
        found.append(from_report.compared_with(message, rows.payments, rows.outcomes, reports))
        matched.append(rows.outcomes.filter(check_outcome=Outcome.MATCH)["row"])
        for note in found[-1].notes:
            notes.append(Sentence("footer.in_part", part=part.name, sentence=note) if parts[1:] else note)
    comparison = added_comparisons(one.comparison for one in found)
    assert comparison is not None
    changes = Changes(pl.concat([one.changes for one in found]))
    return from_report.ComparedReports(
        changes, comparison, (*notes, *from_report.notes_on_others(reports))
    ), pl.concat(matched)


class Comparing(NamedTuple):
    """The input of a comparison."""

    run: EndedRun
    sign_with: Path | None
    file: ConfigurationFile  # with the policy and the usual signing key
    messages: Sequence[Message]  # the payment file, or the parts of the run
    received: Sequence[from_report.ReceivedReport]  # all reports, those of earlier imports first
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
        rows_of = lru_cache(1)(run.rows)  # those of a file are read once
        found, matched = _compared(run, job.messages, job.received, rows_of)
        changes, before = and_differences(changes_in(folder, run.content), found.changes), run.summary()
        differing = found.changes.select("row", "code")
        warned = Warned(pl.concat([run.warned(before).filter(~OF_BANK), differing]))
        about_payee = warned.filter(pl.col("code").is_in(ABOUT_THE_PAYEE))["row"]
        warned_count = matched.filter(matched.is_in(about_payee.implode())).len()
        summary = _with_comparison(before, warned_count, found, job.used)
        for note in (*found.notes, *_released(run.manifest, found.changes)):
            surface.notify(Notice(note, {}, is_vital=True))
        keep_workbook(folder, surface)
        policy = policy_today(summary.profile, job.file)
        with speaking(job.language or run.manifest.language):
            listed, documents = reports_again(
                run, summary, changes=changes, warned=warned, rows_of=rows_of, policy=policy
            )
        _keep(run)
        written = [keep_document(folder / SUMMARY, summary), keep_changes(changes, folder), *documents]
        if summary.parts:
            written.append(folder / WARNED)
            with write_atomically(written[-1]) as file, with_own_errors(file) as through:
                warned.write_parquet(through)
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
    return summary, listed


def settle(run: EndedRun, *, now: datetime) -> None:
    """Undo a comparison that was killed before its manifest, or end one killed after it; same errors."""
    if any(map(Path.exists, _copies(run.folder))):
        with opened_to_read(run.folder, now=timestamp(now), alone=True):
            _restore(run)


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
    summary: Summary, warned_match_count: int, found: from_report.ComparedReports, used: Sequence[ReportUsed]
) -> Summary:
    warnings = warnings_of(found.changes)
    new = [
        WarningRow(row=row, code=code, message=message)
        for row, code, message in warnings.select("row", "code", "message").iter_rows()
    ]
    others = [warning for warning in summary.warnings if warning.code != WarningCode.BANK_DIFFERS]
    other_codes = [count for count in summary.warning_codes if count.code is not WarningCode.BANK_DIFFERS]
    codes = warning_counts(warnings)
    if summary.parts:  # their rows are in a file of their own
        codes = [count.model_copy(update={"every_row": []}) for count in codes]
    before_count = summary.bank_comparison.differing_count if summary.bank_comparison else 0
    return summary.model_copy(
        update={
            "warnings": [*new, *others][:ROWS_LISTED_MAX],
            "warning_count": summary.warning_count - before_count + len(new),
            "warning_codes": [*codes, *other_codes],
            "warned_match_count": warned_match_count,
            "bank_reports": [*used],
            "bank_comparison": found.comparison,
        }
    )


def _released(manifest: Manifest, changes: Changes) -> Iterator[Sentence]:
    for last in manifest.splits[-1:]:
        if count := changes.filter(~pl.col("row").is_in(last.held_rows)).height:
            yield Sentence("jobs.differing_released", count=count, time=Moment(last.time))
