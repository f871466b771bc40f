"""Convert rows of a frame to the XML of worksheet rows, a column at a time.

Writing cell by cell takes ten times as long, and the library mistakes some text for its own markup. Here all
text is escaped, and every cell is text, a number or empty, so there are no formulas or links.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

import polars as pl
from polars import selectors
from xlsxwriter.utility import xl_col_to_name

from pipeline.reports.sheets import SheetColumn
from pipeline.reports.wording import visible
from pipeline.rules.selected_values import replaced
from pipeline.rules.totals import plain

DIGITS_MAX = 15
"""Number of digits that a spreadsheet holds exactly; longer amounts stay text."""
TEXT_CHARS_MAX = 16_000
"""A spreadsheet cell holds 32,767 UTF-16 units, and a character can take two."""
LINE_POINTS = 15
_ROWS_AT_ONCE = 5_000
"""About 10 MB of XML. A thousand rows at a time cost twice as much: each expression takes time to start."""
# The format's own escapes, such as _x0041_ for an A, are escaped in texts that contain them literally.
_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "_x": "_x005F_x",
    "\ufffe": "_xFFFE_",
    "\uffff": "_xFFFF_",
}
_ACTED_ON = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]"
_TO_LOOK_AT = "[^ -%'-;=?-~]|_x|^ | $"
"""Finds active or escapable text, and spaces at the ends. Few columns have any, so testing first takes a
third of the time of escaping them all.
"""


class Styles(NamedTuple):
    """The style numbers of the workbook."""

    text: int
    wrapped: int
    whole_number: int
    cents: int
    mills: int  # for amounts with three decimals
    long_amount: int
    to_fill_in: int
    to_fill_in_wrapped: int

    def of_text(self, column: SheetColumn) -> int:
        """Return the style of text in a column."""
        if column.is_input:
            return self.to_fill_in_wrapped if column.wraps else self.to_fill_in
        return self.wrapped if column.wraps else self.text


def rows_xml(
    rows: pl.DataFrame, columns: Sequence[SheetColumn], styles: Styles, *, first: int
) -> Iterator[str]:
    """Write rows, a few thousand at a time, with the sheet's columns from left to right.

    A cell is text, an enum, a whole number, or an amount as `frames.MONEY`. `first` is the line of the first
    row, counted from 1.
    """
    sources = {column.source for column in columns if column.source is not None}
    for start in range(0, rows.height, _ROWS_AT_ONCE):
        part = rows.slice(start, _ROWS_AT_ONCE).select(
            *sources, _line=pl.int_range(first + start, first + start + pl.len()).cast(pl.String)
        )
        part = part.cast({selectors.enum(): pl.String})
        texts = pl.col(*(column.name for column in part if column.dtype == pl.String and column.count())).str
        is_found = texts.contains(_TO_LOOK_AT).any() | (texts.len_bytes().max() > TEXT_CHARS_MAX)
        found = part.select(is_found).row(0, named=True)
        looked_at = [name for name, is_so in found.items() if is_so]
        part = part.with_columns(visible_texts(part[name]).str.head(TEXT_CHARS_MAX) for name in looked_at)
        height = pl.max_horizontal(_line_count(column) for column in columns if column.wraps) * LINE_POINTS
        written = [pl.format('<row r="{}" ht="{}" customHeight="1">', "_line", height)]
        for index, column in enumerate(columns):
            reference = pl.lit(f'<c r="{xl_col_to_name(index)}'), pl.col("_line")
            written += *reference, *_cell(part, column, styles, is_plain=column.source not in looked_at)
        yield part.select(pl.concat_str(*written, pl.lit("</row>")).str.join("")).item()


def amount_as_text(amount: Decimal) -> str:
    """Write an amount that is too long for a spreadsheet number, marked as text."""
    return f"{plain(amount):,} (as text: too long for a number)"


def visible_texts(texts: pl.Series) -> pl.Series:
    """Make active characters in texts visible, like `visible`."""
    acted_on = texts.str.contains(_ACTED_ON)
    return replaced(texts, where=acted_on, by=lambda some: some.map_elements(visible, pl.String))


def _cell(part: pl.DataFrame, column: SheetColumn, styles: Styles, *, is_plain: bool) -> Sequence[pl.Expr]:
    """Return a column's cells as XML after the reference, in pieces; empty cells get the text style."""
    if column.source is None:
        return [pl.lit(f'" s="{styles.of_text(column)}"/>')]
    values, value = part[column.source], pl.col(column.source)
    empty = styles.of_text(column) if column.is_input else styles.text
    if not values.count():
        return [pl.lit(f'" s="{empty}"/>')]
    match values.dtype:
        case pl.String():
            is_spaced = not is_plain and (values.str.strip_chars() != values).any()
            written = _text(
                value if is_plain else _escaped(value), styles.of_text(column), is_spaced=is_spaced
            )
        case pl.Decimal():
            written = [_amount(value, styles)]
        case _:
            written = _number(value.cast(pl.String), styles.whole_number)
    if not values.null_count():
        return written
    return [pl.coalesce(pl.concat_str(written), pl.lit(f'" s="{empty}"/>'))]


def _text(value: pl.Expr, style: int, *, is_spaced: bool) -> list[pl.Expr]:
    """Escape texts; spaces at the ends are kept."""
    space = ' xml:space="preserve"' if is_spaced else ""
    opening = pl.lit(f'" s="{style}" t="inlineStr"><is><t{space}>')
    return [opening, value, pl.lit("</t></is></c>")]


def _escaped(value: pl.Expr) -> pl.Expr:
    return value.str.replace_many(_ESCAPES)


def _number(digits: pl.Expr, style: int) -> list[pl.Expr]:
    return [pl.lit(f'" s="{style}"><v>'), digits, pl.lit("</v></c>")]


def _amount(value: pl.Expr, styles: Styles) -> pl.Expr:
    """Write the amount by its decimal digits, without floats; as text if a number cannot hold it."""
    digits = value.cast(pl.String).str.strip_suffix("0")
    has_mills = digits.str.contains(r"\.\d{3}$")
    is_long = digits.str.count_matches(r"\d") > DIGITS_MAX
    noted = pl.when(is_long).then(value).map_elements(amount_as_text, pl.String)
    return (
        pl.when(is_long)
        .then(pl.concat_str(_text(_escaped(noted), styles.long_amount, is_spaced=False)))
        .when(has_mills)
        .then(pl.concat_str(_number(digits, styles.mills)))
        .otherwise(pl.concat_str(_number(digits, styles.cents)))
    )


def _line_count(column: SheetColumn) -> pl.Expr:
    """Estimate the number of lines of a wrapped text, whose words seldom fill a line completely."""
    if column.source is None:
        return pl.lit(1)
    char_count, room = pl.col(column.source).str.len_chars(), column.width - 1
    lines = (char_count * 1.1 / room).ceil().cast(pl.Int64)
    return pl.when(char_count > room).then(lines).otherwise(1)
