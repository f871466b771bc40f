"""The reports of a data set, made of what each of its parts gives them."""

from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.files.atomic import write_atomically
from pipeline.formats.table import as_text
from pipeline.frames import Original, Outcomes, Payments
from pipeline.reports import safe_csv as spreadsheet
from pipeline.reports.documents import NEEDS_A_PERSON, place_columns, reasons_in_words
from pipeline.reports.groups import PARTS_ROWS_MAX, added_sums, listable, sums_of
from pipeline.reports.reasons import SaidReasons
from pipeline.rules.totals import money_of
from schemas.folder import ATTENTION, REPORT_HTML
from schemas.outcomes import COLUMNS
from schemas.summary import Summary

ATTENTION_MAX = 100_000
"""Payments in the attention file, the largest of all parts: what a spreadsheet opens at once."""
_SIZE = "_size"


class PartReport(NamedTuple):
    """What the reports of a data set need of one part, or of several."""

    attention: pl.DataFrame
    """The payments that a person must look at, the largest, as text; with their size."""
    shown: pl.DataFrame
    """The payments that may be on the page."""
    sums: pl.DataFrame
    """Rows and money by what a person does next, as `groups.sums_of`."""


def part_report(original: Original, payments: Payments, outcomes: Outcomes) -> PartReport:
    """The report of one part, by the rows of the data set."""
    size, _ = money_of(payments)
    needed = outcomes["check_outcome"].is_in(list(NEEDS_A_PERSON))
    chosen = pl.DataFrame({_SIZE: size, "row": outcomes["row"]}).with_row_index("position").filter(needed)
    chosen = _largest(chosen)
    table = original.hstack(outcomes.select(COLUMNS).get_columns())[chosen["position"]]
    attention = chosen.drop("position").hstack(as_text(table).get_columns())
    rows = payments.hstack(outcomes.drop("row").get_columns())
    return PartReport(attention, listable(rows, PARTS_ROWS_MAX), sums_of(rows))


def of_all(parts: Iterable[PartReport]) -> PartReport:
    """The report of all parts together, with as little as possible in memory."""
    return reduce(_of_both, parts)


def _of_both(some: PartReport, part: PartReport) -> PartReport:
    return PartReport(
        _largest(pl.concat([some.attention, part.attention], how="diagonal")),
        listable(pl.concat([some.shown, part.shown]), PARTS_ROWS_MAX),
        added_sums([some.sums, part.sums]),
    )


def data_set_reports(
    folder: Path, summary: Summary, parts: Iterable[PartReport], reasons: SaidReasons
) -> list[Path]:
    """Write the page and the attention file of a data set into its folder; return what was written.

    Raises:
        OutputError, DiskError: as `write_atomically`.
    """
    from pipeline.reports.page import page  # with its templates, which no part needs

    path, every = folder / REPORT_HTML, of_all(parts)
    with write_atomically(path) as file:
        file.write(page(*reasons_in_words(summary, every.shown, reasons), sums=every.sums).encode())
    return [path, _write_attention(folder / ATTENTION, summary, every.attention)]


def _write_attention(path: Path, summary: Summary, table: pl.DataFrame) -> Path:
    """The largest payments to look at, with the part and the row of each."""
    own = [name for name in table.columns if name not in {_SIZE, "row", *COLUMNS}]
    ours = [*place_columns(table["row"], summary), *table.select(COLUMNS).get_columns()]
    with write_atomically(path) as file:
        spreadsheet.write(table.select(own).hstack(ours), file, delimiter=summary.input.delimiter)
    return path


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    largest = rows.sort(_SIZE, "row", descending=[True, False], nulls_last=True)
    return largest.head(ATTENTION_MAX)
