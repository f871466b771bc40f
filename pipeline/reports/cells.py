"""Rows of a frame -> the rows of a worksheet, in the XML of a workbook, a column at a time.

A cell at a time costs ten times as much, and the library takes text that looks like its markup for markup.
Here all text is escaped, and no cell is anything but text, a number or empty: nothing is run or followed.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

import polars as pl
from polars import selectors
from xlsxwriter.utility import xl_col_to_name

from pipeline.reports.sheets import Column
from pipeline.reports.terminal import visible
from pipeline.rules.columnwise import mended
from pipeline.rules.totals import plain

DIGITS_MAX = 15
"""A spreadsheet's numbers hold so many digits exactly; a longer amount stays text."""
TEXT_CHARS_MAX = 16_000
"""A spreadsheet's cells hold 32,767 units of UTF-16, of which a character can take two."""
LINE_POINTS = 15
_ROWS_AT_ONCE = 1_000
# Of the format's own escapes, such as _x0041_ for an A, none may be found in a text that has it literally.
_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "_x": "_x005F_x",
    "\ufffe": "_xFFFE_",
    "\uffff": "_xFFFF_",
}
_ACTED_ON = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]"


class Styles(NamedTuple):
    """The numbers by which a workbook knows its styles."""

    text: int
    wrapped: int
    whole_number: int
    cents: int
    mills: int
    """Of an amount with a third decimal."""
    long_amount: int
    to_fill_in: int


def rows_xml(rows: pl.DataFrame, columns: Sequence[Column], styles: Styles, *, first: int) -> Iterator[str]:
    """Write rows, a thousand at a time.

    Args:
        rows: with the columns that `columns` name: text, words of a closed set, whole numbers, or amounts as
            `frames.MONEY`.
        columns: of the sheet, left to right.
        styles: of the workbook.
        first: the line of the first row, counted from 1.
    """
    sources = {column.source for column in columns if column.source is not None}
    for start in range(0, rows.height, _ROWS_AT_ONCE):
        part = rows.slice(start, _ROWS_AT_ONCE).select(
            *sources, _line=pl.int_range(first + start, first + start + pl.len())
        )
        part = part.cast({selectors.enum(): pl.String})
        part = _harmless(part).with_columns(pl.col(pl.String).str.head(TEXT_CHARS_MAX))
        cells = [_cell(part, column, xl_col_to_name(at), styles) for at, column in enumerate(columns)]
        height = pl.max_horizontal(_line_count(column) for column in columns if column.wraps) * LINE_POINTS
        opening = pl.format('<row r="{}" ht="{}" customHeight="1">', "_line", height)
        yield part.select(pl.concat_str(opening, *cells, pl.lit("</row>")).str.join("")).item()


def amount_as_text(amount: Decimal) -> str:
    """An amount that is too long for a number of a spreadsheet, and that it is.

    >>> amount_as_text(Decimal("12345678901234.560"))
    '12,345,678,901,234.56 (as text: too long for a number)'
    """
    return f"{plain(amount):,} (as text: too long for a number)"


def visible_texts(texts: pl.Series) -> pl.Series:
    """Texts with everything that would be acted on made visible, as `visible` does."""
    acted_on = texts.str.contains(_ACTED_ON)
    return mended(texts, where=acted_on, by=lambda some: some.map_elements(visible, pl.String))


def _harmless(part: pl.DataFrame) -> pl.DataFrame:
    """The rows with `visible_texts`; few columns have one that it changes."""
    acted_on = part.select(pl.col(pl.String).str.contains(_ACTED_ON).any()).row(0, named=True)
    return part.with_columns(visible_texts(part[name]) for name, is_found in acted_on.items() if is_found)


def _cell(part: pl.DataFrame, column: Column, letter: str, styles: Styles) -> pl.Expr:
    """The cells of a column; an empty one has the style of a text."""
    reference = pl.format(f'<c r="{letter}{{}}" s="', "_line")
    if column.source is None:
        return pl.concat_str(reference, pl.lit(f'{styles.to_fill_in}"/>'))
    value = pl.col(column.source)
    match part[column.source].dtype:
        case pl.String():
            written = _text(value, styles.wrapped if column.wraps else styles.text)
        case pl.Decimal():
            written = _amount(value, styles)
        case _:
            written = _number(value.cast(pl.String), styles.whole_number)
    return pl.concat_str(reference, pl.coalesce(written, pl.lit(f'{styles.text}"/>')))


def _text(value: pl.Expr, style: int) -> pl.Expr:
    written = f'{style}" t="inlineStr"><is><t xml:space="preserve">{{}}</t></is></c>'
    return pl.format(written, value.str.replace_many(_ESCAPES))


def _number(digits: pl.Expr, style: int) -> pl.Expr:
    return pl.format(f'{style}"><v>{{}}</v></c>', digits)


def _amount(value: pl.Expr, styles: Styles) -> pl.Expr:
    """The amount by its decimal digits, as no float comes near it; as text where a number cannot hold it."""
    digits = value.cast(pl.String).str.strip_suffix("0")
    has_mills = digits.str.contains(r"\.\d{3}$")
    is_long = digits.str.count_matches(r"\d") > DIGITS_MAX
    told = pl.when(is_long).then(value).map_elements(amount_as_text, pl.String)
    return (
        pl.when(is_long)
        .then(_text(told, styles.long_amount))
        .when(has_mills)
        .then(_number(digits, styles.mills))
        .otherwise(_number(digits, styles.cents))
    )


def _line_count(column: Column) -> pl.Expr:
    """How many lines a wrapped text takes, within its margins; words seldom fill a line to its end."""
    if column.source is None:
        return pl.lit(1)
    char_count, room = pl.col(column.source).str.len_chars(), column.width - 1
    lines = (char_count * 1.1 / room).ceil().cast(pl.Int64)
    return pl.when(char_count > room).then(lines).otherwise(1)
