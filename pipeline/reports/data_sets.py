"""The reports of a data set, made of what each of its parts gives them."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pipeline.files.atomic import write_atomically
from pipeline.formats.csv.writing import as_text
from pipeline.frames import Original, Outcomes, Payments
from pipeline.reports import safe_csv as spreadsheet
from pipeline.reports.groups import PARTS_ROWS_MAX, added_sums, listable
from pipeline.rules.places import place_texts
from pipeline.rules.totals import money_of
from schemas.folder import ATTENTION, REPORT_HTML
from schemas.outcomes import COLUMNS, PLACE_COLUMNS, Outcome
from schemas.summary import Summary

ATTENTION_MAX = 100_000
"""Payments in the attention file, the largest of all parts: what a spreadsheet opens at once."""
_NEEDS_A_PERSON = (Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)
_SIZE = "_size"


def attention_of(original: Original, payments: Payments, outcomes: Outcomes) -> pl.DataFrame:
    """The payments of a part that a person must look at, the largest, as text; with their size.

    Args:
        original: the columns of the part.
        payments: its payments, by the rows of the data set.
        outcomes: what became of each.
    """
    size, _ = money_of(payments)
    needed = outcomes["check_outcome"].is_in(list(_NEEDS_A_PERSON))
    chosen = pl.DataFrame({_SIZE: size, "row": outcomes["row"]}).with_row_index("at").filter(needed)
    chosen = _largest(chosen)
    table = original.hstack(outcomes.select(COLUMNS).get_columns())[chosen["at"]]
    return chosen.drop("at").hstack(as_text(table).get_columns())


def candidates_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The payments of a part that may be on the page; `rows` as `page` takes them."""
    return listable(rows, PARTS_ROWS_MAX)


def data_set_reports(
    folder: Path,
    summary: Summary,
    *,
    attention: Sequence[pl.DataFrame],
    shown: Sequence[pl.DataFrame],
    sums: Sequence[pl.DataFrame],
) -> list[Path]:
    """Write the page and the attention file of a data set.

    Args:
        folder: of the run; must exist.
        summary: of the run.
        attention: of each part, as `attention_of` gives it.
        shown: of each part, as `candidates_of` gives it.
        sums: of each part, as `groups.sums_of` gives them.

    Returns:
        What was written.

    Raises:
        OutputError, DiskError: as `write_atomically`.
    """
    from pipeline.reports.page import page  # with its templates, which no part needs

    path = folder / REPORT_HTML
    with write_atomically(path) as file:
        file.write(page(summary, pl.concat(shown), sums=added_sums(sums)).encode())
    return [path, _write_attention(folder / ATTENTION, summary, attention)]


def _write_attention(path: Path, summary: Summary, parts: Sequence[pl.DataFrame]) -> Path:
    """The largest payments to look at, with the part and the row of each."""
    table = _largest(pl.concat(parts, how="diagonal"))
    numbers = table["row"]
    located = [numbers, place_texts(numbers, summary.input.places)]
    which = [column.alias(name) for column, name in zip(located, PLACE_COLUMNS, strict=True)]
    own = [name for name in table.columns if name not in {_SIZE, "row", *COLUMNS}]
    with write_atomically(path) as file:
        spreadsheet.write(
            table.select(own).hstack([*which, *table.select(COLUMNS).get_columns()]),
            file,
            delimiter=summary.input.delimiter,
        )
    return path


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    largest = rows.sort(_SIZE, "row", descending=[True, False], nulls_last=True)
    return largest.head(ATTENTION_MAX)
