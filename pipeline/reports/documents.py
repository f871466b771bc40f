"""The reports of a run that are files: one call writes them all, at its end and at any time after."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from pipeline.files.atomic import write_atomically
from pipeline.formats import pain001
from pipeline.formats.batches import masked_batches
from pipeline.formats.message import Message
from pipeline.frames import Changes, Original, Outcomes, Payments
from pipeline.headers.parties import is_list_of_payees, payee_key
from pipeline.reports import safe_csv as spreadsheet
from pipeline.reports.changes import changes_of
from pipeline.reports.reasons import SaidReasons, sentences_of
from pipeline.reports.wording import in_words
from pipeline.rules.row_positions import position_texts
from pipeline.wording import ENGLISH, language
from schemas.folder import ATTENTION, OTHER_NAMES, REPORT_HTML, pain002_name
from schemas.outcomes import COLUMNS, PLACE_COLUMNS, Outcome
from schemas.review import Verdict
from schemas.summary import Summary

NEEDS_A_PERSON = (Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)


class Rows(NamedTuple):
    """Every payment of a file, in order; three frames of the same height."""

    payments: Payments
    """`frames.PAYMENTS`: the fields, as they were read."""
    outcomes: Outcomes
    """`frames.OUTCOMES`: what became of each."""
    original: Original
    """The columns of the file, untouched."""
    changes: Changes | None = None
    """`frames.CHANGES`; None if there are none, or none any more."""
    reasons: SaidReasons = MappingProxyType({})
    """What stands behind the reasons of the outcomes; empty if an earlier version decided them."""


def reports(
    folder: Path,
    summary: Summary,
    rows: Rows,
    *,
    outcome_name: str,
    policy: Mapping[str, Verdict] | None = None,
) -> list[Path]:
    """Write every report of a run, one file for each of `schemas.folder.REPORTS`, into a folder that exists.

    A policy that is known says what may be paid.

    Raises:
        OutputError: a file cannot be created.
        DiskError: the disk is full or failed.
    """
    # Only here: a run that is refused, or was finished before, starts without what these need.
    from pipeline.reports.page import page
    from pipeline.reports.workbook import Payments, write_workbook

    changes = changes_of(summary, rows.payments, rows.changes)
    in_english = rows
    summary, spoken = reasons_in_words(summary, rows.outcomes, rows.reasons)
    rows = rows._replace(outcomes=Outcomes(spoken))
    shown = rows.payments.hstack([*rows.outcomes.drop("row").get_columns(), *_batches(summary, rows)])
    return [
        _page(folder / REPORT_HTML, page(summary, shown, changes)),
        write_workbook(summary, Payments(shown, changes, policy), folder, outcome_name=outcome_name),
        _attention(folder / ATTENTION, summary, in_english),
        *_other_names(folder / OTHER_NAMES, summary, in_english),
    ]


def reasons_in_words(
    summary: Summary, rows: pl.DataFrame, reasons: SaidReasons
) -> tuple[Summary, pl.DataFrame]:
    """The same with reasons in the current language; a reason without a recorded sentence stays English."""
    if language() == ENGLISH or not reasons:
        return summary, rows
    positions = summary.input.places
    spoken = {text: " ".join(map(in_words, sentences_of(text, reasons, positions))) for text in reasons}
    codes = [
        code.model_copy(update={"reason": spoken.get(code.reason, code.reason)}) for code in summary.codes
    ]
    rows = rows.with_columns(pl.col("check_reason").replace(spoken))
    return summary.model_copy(update={"codes": codes}), rows


def _batches(summary: Summary, rows: Rows) -> list[pl.Series]:
    """The column `batch` of a payment format that has batches, as people are shown it; of others none."""
    if not summary.batches:
        return []
    are_ids = summary.input.format == pain001.NAME
    return [masked_batches(rows.original["batch"], are_ids=are_ids).alias("batch")]


def bank_report(
    folder: Path, summary: Summary, message: Message, outcomes: Outcomes, *, now: datetime
) -> Path:
    """Write the report that bank software reads on a pain.001; run and time say which report it is."""
    from pipeline.reports.pain002 import ID_CHARS_MAX, ReportHeading, report

    unique = sha256(f"{summary.run_id} {now.isoformat()}".encode()).hexdigest()
    heading = ReportHeading(
        f"PRECHECK-{unique}"[:ID_CHARS_MAX],
        f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        simulated=summary.simulated,
    )
    path = folder / pain002_name(simulated=summary.simulated)
    with write_atomically(path) as file:
        file.writelines(report(message, outcomes, heading))
    return path


def _page(path: Path, text: str) -> Path:
    """Write the report as a page."""
    with write_atomically(path) as file:
        file.write(text.encode())
    return path


def _attention(path: Path, summary: Summary, rows: Rows) -> Path:
    """Write the payments that a person must look at; cells that a spreadsheet would run are escaped."""
    ours = [*place_columns(rows.outcomes["row"], summary), *rows.outcomes.select(COLUMNS).get_columns()]
    table = rows.original.hstack(ours).filter(pl.col("check_outcome").is_in(NEEDS_A_PERSON))
    with write_atomically(path) as file:
        spreadsheet.write(table, file, delimiter=summary.input.delimiter)
    return path


def _other_names(path: Path, summary: Summary, rows: Rows) -> list[Path]:
    """Write what a list of payees has to change: the names that differ at the bank."""
    if not is_list_of_payees(rows.payments, rows.original):
        return []
    names = rows.payments.select(
        payee_key(rows.original),
        pl.coalesce("iban", "account_number").alias("account"),
        "sort_code",
        name_now="name",
        name_at_bank=rows.outcomes["check_matched_name"],
        check_environment=pl.lit(summary.environment.value),
    )
    with write_atomically(path) as file:
        differ = names.filter(pl.col("name_at_bank") != pl.col("name_now"))
        spreadsheet.write(differ, file, delimiter=summary.input.delimiter)
    return [path]


def place_columns(rows: pl.Series, summary: Summary) -> list[pl.Series]:
    """`PLACE_COLUMNS` of these rows."""
    located = (rows, position_texts(rows, summary.input.places))
    return [column.alias(name) for column, name in zip(located, PLACE_COLUMNS, strict=True)]
