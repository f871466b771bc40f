"""The reports of a data set, made of what each of its parts gives them."""

from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path

import polars as pl

from pipeline.files.atomic import write_atomically
from pipeline.formats.table import as_text
from pipeline.frames import Original, Outcomes, Payments
from pipeline.reports import safe_csv as spreadsheet
from pipeline.reports.documents import NEEDS_A_PERSON, place_columns
from pipeline.reports.groups import PARTS_ROWS_MAX, added_sums, listable
from pipeline.rules.totals import money_of
from schemas.folder import ATTENTION, REPORT_HTML
from schemas.outcomes import COLUMNS
from schemas.summary import Summary

ATTENTION_MAX = 100_000
"""Payments in the attention file, the largest of all parts: what a spreadsheet opens at once."""
_SIZE = "_size"


def attention_of(original: Original, payments: Payments, outcomes: Outcomes) -> pl.DataFrame:
    """The payments of a part that a person must look at, the largest, as text; with their size."""
    size, _ = money_of(payments)
    needed = outcomes["check_outcome"].is_in(list(NEEDS_A_PERSON))
    chosen = pl.DataFrame({_SIZE: size, "row": outcomes["row"]}).with_row_index("at").filter(needed)
    chosen = _largest(chosen)
    table = original.hstack(outcomes.select(COLUMNS).get_columns())[chosen["at"]]
    return chosen.drop("at").hstack(as_text(table).get_columns())


def candidates_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The payments of a part that may be on the page; `rows` as `page` takes them."""
    return listable(rows, PARTS_ROWS_MAX)


def candidates_of_all(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The same for all parts, with as little as possible in memory."""
    return reduce(lambda kept, part: candidates_of(pl.concat([kept, part])), parts)


def attention_of_all(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The largest payments of all parts, with as little as possible in memory."""
    return reduce(lambda kept, part: _largest(pl.concat([kept, part], how="diagonal")), parts)


def data_set_reports(
    folder: Path,
    summary: Summary,
    *,
    attention: Iterable[pl.DataFrame],
    shown: Iterable[pl.DataFrame],
    sums: Sequence[pl.DataFrame],
) -> list[Path]:
    """Write the page and the attention file of a data set into its folder; return what was written.

    Of each part in turn, so that no two are held at once: what `attention_of` and `candidates_of` give. Of
    each part, as `groups.sums_of` gives them, the sums.

    Raises:
        OutputError, DiskError: as `write_atomically`.
    """
    from pipeline.reports.page import page  # with its templates, which no part needs

    path = folder / REPORT_HTML
    with write_atomically(path) as file:
        file.write(page(summary, candidates_of_all(shown), sums=added_sums(sums)).encode())
    return [path, _write_attention(folder / ATTENTION, summary, attention)]


def _write_attention(path: Path, summary: Summary, parts: Iterable[pl.DataFrame]) -> Path:
    """The largest payments to look at, with the part and the row of each."""
    table = attention_of_all(parts)
    own = [name for name in table.columns if name not in {_SIZE, "row", *COLUMNS}]
    ours = [*place_columns(table["row"], summary), *table.select(COLUMNS).get_columns()]
    with write_atomically(path) as file:
        spreadsheet.write(table.select(own).hstack(ours), file, delimiter=summary.input.delimiter)
    return path


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    largest = rows.sort(_SIZE, "row", descending=[True, False], nulls_last=True)
    return largest.head(ATTENTION_MAX)
