"""Write all report files of a run, at its end or any time later."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from pipeline.files.atomic import write_atomically
from pipeline.formats import pain001
from pipeline.formats.batches import masked_batches
from pipeline.formats.message import Message
from pipeline.formats.table import as_text
from pipeline.frames import CHANGES, Changes, Original, Outcomes, Payments, Warned, is_row_in
from pipeline.headers.parties import is_list_of_payees, payee_ids
from pipeline.reports import safe_csv as spreadsheet
from pipeline.reports.changes import changes_of, gravest, gravest_first, listed_changes
from pipeline.reports.choices import warned_in
from pipeline.reports.groups import PARTS_ROWS_MAX, ListedRows, added_sums, listable, sums_of
from pipeline.reports.wording import SaidReasons, in_words, sentences_of
from pipeline.rules.row_positions import position_texts
from pipeline.rules.totals import money_of
from pipeline.wording import ENGLISH, language
from schemas.changes import Change
from schemas.folder import ATTENTION, OTHER_NAMES, OUTCOMES, REPORT_HTML, pain002_name
from schemas.outcomes import COLUMNS, PLACE_COLUMNS, Outcome
from schemas.review import Verdict
from schemas.summary import Summary

NEEDS_A_PERSON = (Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)
ATTENTION_MAX = 100_000
"""Maximum number of payments in a data set's attention file (the largest), which a spreadsheet can open."""
ROW, SIZE = PLACE_COLUMNS
"""Columns added to a file's own, which never have these names, as earlier `check_` columns are left out."""


class Rows(NamedTuple):
    """Every payment of a file, in order, as three frames of the same height."""

    payments: Payments  # `frames.PAYMENTS`: the fields as read
    outcomes: Outcomes  # `frames.OUTCOMES`: each payment's outcome
    original: Original  # the columns of the file, unchanged
    changes: Changes | None = None  # `frames.CHANGES`; None if there are none, or they were deleted
    reasons: SaidReasons = MappingProxyType({})
    """The sentences of the outcomes' reasons; empty for a data set, and if they were purged."""


class PartReport(NamedTuple):
    """What the reports of a data set need from one or more parts."""

    attention: pl.DataFrame  # the largest payments that a person must review, as text, with their size
    shown: pl.DataFrame  # payments that may be on the page and in the workbook
    sums: pl.DataFrame  # rows and amounts by next step, as from `groups.sums_of`
    changed: pl.DataFrame  # the gravest changes, as from `changes.gravest`


def part_report(summary: Summary, part: Rows) -> PartReport:
    """Return the report of one part, numbered as in the data set, from its own changes and no reasons."""
    payments, outcomes, original, changes, _ = part
    size, _ = money_of(payments)
    attention = _largest(_for_a_person(original.with_columns(size.alias(SIZE)), outcomes))
    rows = _shown(summary, part)
    texts = attention.with_columns(as_text(attention.drop(SIZE, ROW)).get_columns())
    own = pl.DataFrame(schema=CHANGES) if changes is None else changes.filter(is_row_in(payments["row"]))
    changed = gravest(own, payments)
    return PartReport(texts, listable(rows, PARTS_ROWS_MAX, changed["row"]), sums_of(rows), changed)


def of_all(parts: Iterable[PartReport]) -> PartReport:
    """Join the reports of all parts, with as little as possible in memory."""
    return reduce(_of_both, parts)


def shown_reasons(summary: Summary, every: PartReport) -> set[str]:
    """Return the reasons that the reports of a data set show."""
    return {*every.shown["check_reason"], *(code.reason for code in summary.codes)}


def _of_both(some: PartReport, part: PartReport) -> PartReport:
    changed, attention = gravest_first(pl.concat([some.changed, part.changed])), part.attention
    if some.attention.height == ATTENTION_MAX and (least := some.attention[SIZE].last()) is not None:
        attention = attention.filter(pl.col(SIZE) >= least)  # most rows of another part are too small
    return PartReport(
        _largest(pl.concat([some.attention, attention], how="diagonal")),
        listable(pl.concat([some.shown, part.shown]), PARTS_ROWS_MAX, changed["row"]),
        added_sums([some.sums, part.sums]),
        changed,
    )


def _for_a_person(original: pl.DataFrame, outcomes: Outcomes) -> pl.DataFrame:
    """Return the payments that a person must review: the file's columns, `ROW` and `COLUMNS`."""
    ours = outcomes.select(pl.col("row").alias(ROW), *COLUMNS).get_columns()
    return original.hstack(ours).filter(pl.col("check_outcome").is_in(NEEDS_A_PERSON))


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort(SIZE, ROW, descending=[True, False], nulls_last=True).head(ATTENTION_MAX)


def reports(
    folder: Path,
    summary: Summary,
    rows: Rows,
    *,
    outcome_name: str,
    policy: Mapping[str, Verdict] | None = None,
) -> list[Path]:
    """Write every report of a run, the files in `schemas.folder.REPORTS`, into an existing folder.

    The policy, if known, decides which payments may be released. Same errors as `write_atomically`.
    """
    changes = changes_of(summary, rows.payments, rows.changes)
    listed = ListedRows(_shown(summary, rows), changes, policy, warned_in(summary))
    attention = _for_a_person(rows.original, rows.outcomes)
    return [
        *_written(folder, summary, listed, attention, rows.reasons, outcome_name=outcome_name),
        *_other_names(folder / OTHER_NAMES, summary, rows),
    ]


def data_set_reports(  # noqa: PLR0913 (all facts about a data set)
    folder: Path,
    summary: Summary,
    every: PartReport,
    reasons: SaidReasons,
    warned: Warned,
    *,
    policy: Mapping[str, Verdict] | None = None,
) -> tuple[list[Change], list[Path]]:
    """Write a data set's reports; also return the changes. Same errors as `reports`.

    `every` comes from `of_all`; `reasons` needs only `shown_reasons`, `warned` the rows of `every.shown`.
    """
    changes = listed_changes(every.changed, summary.compared)
    listed = ListedRows(every.shown, changes, policy, warned, every.sums)
    attention = every.attention.drop(SIZE)
    return changes, _written(folder, summary, listed, attention, reasons, outcome_name=OUTCOMES)


def _written(  # noqa: PLR0913 (the parts of the reports)
    folder: Path,
    summary: Summary,
    listed: ListedRows,
    attention: pl.DataFrame,
    reasons: SaidReasons,
    *,
    outcome_name: str,
) -> list[Path]:
    # Imported late: a refused or finished run needs none of this.
    from pipeline.reports.page import page
    from pipeline.reports.workbook import write_workbook

    in_words, rows = reasons_in_words(summary, listed.rows, reasons)
    listed = listed._replace(rows=rows)
    path = folder / REPORT_HTML
    with write_atomically(path) as file:
        file.write(page(in_words, rows, listed.changes, sums=listed.sums).encode())
    workbook = write_workbook(in_words, listed, folder, outcome_name=outcome_name)
    return [path, workbook, _attention(folder / ATTENTION, summary, attention)]


def reasons_in_words(
    summary: Summary, rows: pl.DataFrame, reasons: SaidReasons
) -> tuple[Summary, pl.DataFrame]:
    """Translate reasons to the current language; a reason without a recorded sentence stays English."""
    if language() == ENGLISH or not reasons:
        return summary, rows
    positions = summary.input.positions
    spoken = {text: " ".join(map(in_words, sentences_of(text, reasons, positions))) for text in reasons}
    updates = ((code, {"reason": spoken.get(code.reason, code.reason)}) for code in summary.codes)
    codes = [code.model_copy(update=update) for code, update in updates]
    rows = rows.with_columns(pl.col("check_reason").replace(spoken))
    return summary.model_copy(update={"codes": codes}), rows


def _shown(summary: Summary, rows: Rows) -> pl.DataFrame:
    """Return the payments with their outcomes, and their `batch` as people see it if the format has any."""
    shown = rows.payments.hstack(rows.outcomes.drop("row").get_columns())
    if not summary.batches:
        return shown
    are_ids = summary.input.format == pain001.NAME
    return shown.with_columns(masked_batches(rows.original["batch"], are_ids=are_ids).alias("batch"))


def bank_report(
    folder: Path, summary: Summary, message: Message, outcomes: Outcomes, *, now: datetime
) -> Path:
    """Write the pain.002 report for bank software; its ID is made from the run and the time."""
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


def _attention(path: Path, summary: Summary, table: pl.DataFrame) -> Path:
    """Write the payments to review; cells that a spreadsheet would run are escaped."""
    own, rows = table.drop(ROW, *COLUMNS), table[ROW]
    located = zip((rows, position_texts(rows, summary.input.positions)), PLACE_COLUMNS, strict=True)
    ours = [*(column.alias(name) for column, name in located), *table.select(COLUMNS).get_columns()]
    with write_atomically(path) as file:
        spreadsheet.write(own.hstack(ours), file, delimiter=summary.input.delimiter)
    return path


def _other_names(path: Path, summary: Summary, rows: Rows) -> list[Path]:
    """Write the changes that a list of payees needs, where the bank has other names."""
    if not is_list_of_payees(rows.payments, rows.original):
        return []
    names = rows.payments.select(
        payee_ids(rows.original).alias("payee_key"),
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
