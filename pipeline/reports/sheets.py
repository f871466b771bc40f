"""The sheets of the workbook: their headers and widths, and their rows as XML."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

import polars as pl
from polars import selectors
from xlsxwriter.utility import xl_col_to_name

from pipeline.apis.cop import ACCOUNT_TYPES_FOUND
from pipeline.formats.excel.decisions import DECIDED_BY, DECISION, REASON, ROW, key_of
from pipeline.reports.wording import say, visible
from pipeline.rules.selected_values import replaced
from pipeline.rules.totals import plain, with_money
from schemas.outcomes import Action, Outcome


class SheetColumn(NamedTuple):
    """A column of a sheet."""

    header: str  # in English; people see it translated by `header_in_words`
    source: str | None  # the source column in the rows; None if people fill it in
    width: int  # maximum width in characters; for amounts the minimum, as numbers must never be cut
    wraps: bool = False
    is_printed: bool = True
    is_input: bool = False  # true if people fill it in; the column then exists even if no row has a value


class ReportSheet(NamedTuple):
    """A sheet of rows."""

    name: str  # in English, like a column's header
    title: str  # key of its sentence
    which: pl.Expr
    columns: Sequence[SheetColumn]
    colour: str  # of the sheet's tab


def header_in_words(header: str) -> str:
    """Return a header or sheet name in the current language; its key is made from the English words."""
    return say(key_of(header))


_CORRECTED = (
    Action.FIX_NAME,
    Action.FIX_ACCOUNT_TYPE,
    Action.FIX_NAME_AND_ACCOUNT_TYPE,
    Action.ADD_SECONDARY_REFERENCE,
    Action.GET_NEW_ACCOUNT_DETAILS,
)
_WHO = (
    SheetColumn(ROW, "row", 7),
    SheetColumn("Place", "place", 28),
    SheetColumn("Payment id", "payment_id", 20, wraps=True),
    SheetColumn("Payee", "name", 24, wraps=True),
)
_BATCH = SheetColumn("Batch", "batch", 24, wraps=True)  # columns left out if the format has no batches
_MATCHED = SheetColumn("Name at the bank", "check_matched_name", 24, wraps=True)
_TYPE = SheetColumn("Account type", "account_type", 13, wraps=True)
_TYPE_FOUND = SheetColumn("Account type at the bank", "account_type_found", 18)
_MONEY = (SheetColumn("Amount", "amount", 13), SheetColumn("Currency", "currency", 11, wraps=True))
_WHY = (
    SheetColumn("Code", "check_code", 30, wraps=True),
    SheetColumn("What it means", "check_reason", 34, wraps=True),
    SheetColumn("What to do", "action", 16, wraps=True),
)
_DECIDED = (
    SheetColumn(DECISION, "decision", 11, is_input=True),
    SheetColumn(REASON, "reason", 20, wraps=True, is_input=True),
    SheetColumn("Corrected", "corrected", 24, wraps=True),
    SheetColumn(DECIDED_BY, "claimed_by", 16, is_printed=False, is_input=True),
)
_NUMBER = SheetColumn("Account", "account", 30, wraps=True)
_ACCOUNT = (_NUMBER, _TYPE)
_REVIEW = (*_WHO, *_ACCOUNT, _BATCH, *_MONEY, *_WHY, *_DECIDED)
_WITH_NAME = (*_WHO, _MATCHED, *_ACCOUNT, _BATCH, *_MONEY, *_WHY, *_DECIDED)

CHANGED = ReportSheet(
    "Changed",
    "sheet.changed_title",
    pl.lit(value=True),
    (
        *_WHO,
        SheetColumn("What changed", "changed", 18, wraps=True),
        SheetColumn("Then", "then", 24, wraps=True),
        SheetColumn("Now", "now", 24, wraps=True),
        *_MONEY,
        SheetColumn("Outcome", "outcome", 13),
        *_WHY,
        *_DECIDED,
    ),
    "#B91C1C",
)
REVIEWS = (
    ReportSheet(
        "Fix",
        "sheet.fix_title",
        pl.col("check_action").is_in(_CORRECTED),
        (*_WHO, _MATCHED, *_ACCOUNT, _TYPE_FOUND, _BATCH, *_MONEY, *_WHY, *_DECIDED),
        "#2563EB",
    ),
    *(
        ReportSheet(name, title, pl.col("check_outcome") == outcome, columns, colour)
        for name, title, outcome, columns, colour in (
            ("No match", "sheet.no_match_title", Outcome.NO_MATCH, _REVIEW, "#B91C1C"),
            ("Not possible", "sheet.not_possible_title", Outcome.NOT_POSSIBLE, _REVIEW, "#7E22CE"),
            ("Close match", "sheet.close_match_title", Outcome.CLOSE_MATCH, _WITH_NAME, "#CA8A04"),
            ("Rejected", "sheet.rejected_title", Outcome.REJECTED, _REVIEW, "#64748B"),
        )
    ),
)
ALL = ReportSheet(
    "All",
    "sheet.all_title",
    pl.lit(value=True),
    (
        *_WHO,
        _NUMBER,
        _BATCH,
        *_MONEY,
        SheetColumn("Outcome", "outcome", 15),
        *_WHY,
        _MATCHED,
        *_DECIDED,
        _TYPE._replace(wraps=False, is_printed=False),
        SheetColumn("Sort code", "sort_code", 12, is_printed=False),
        SheetColumn("Account number", "account_number", 18, is_printed=False),
        SheetColumn("IBAN", "iban", 30, is_printed=False),
        SheetColumn("Secondary reference", "secondary_reference", 24, is_printed=False),
        SheetColumn("Reference", "reference", 28, is_printed=False),
        SheetColumn("API", "check_api", 14, is_printed=False),
        SheetColumn("Answered", "check_time", 27, is_printed=False),
        SheetColumn("Correlation id", "check_id", 39, is_printed=False),
    ),
    "#334155",
)


def fitted(columns: Sequence[SheetColumn], rows: pl.DataFrame) -> list[SheetColumn]:
    """Return the columns that the rows have, as wide as their contents but no wider than screen and paper."""
    there = {None, *rows.columns}
    columns = [column for column in columns if column.is_input or column.source in there]
    columns = [column if column.source in there else column._replace(source=None) for column in columns]
    sources = [column.source for column in columns if column.source and rows[column.source].count()]
    # A column is measured in digits, and capitals are wider.
    texts = pl.col(sources).cast(pl.String).str
    longest = rows.select((texts.len_chars() + texts.count_matches(r"\p{Lu}") // 4).max()).to_dicts()
    counts, kinds = next(iter(longest), {}), rows.schema
    return [
        column
        if column.source is None or column.is_input
        else column._replace(width=_width(column, counts.get(column.source, 0), kinds[column.source]))
        for column in columns
    ]


def _header_width(header: str) -> int:
    """Return the width of a header in two lines, with the filter button."""
    words = header.split()
    cuts = ((" ".join(words[:index]), " ".join(words[index:])) for index in range(1, len(words) + 1))
    return min(max(map(len, lines)) for lines in cuts) + _FILTER_CHARS


def _width(column: SheetColumn, char_count: int, kind: pl.DataType) -> int:
    if kind == pl.Decimal:
        comma_count = max(char_count - 4, 0) // 3  # one for every three digits before the point
        return max(column.width, char_count + comma_count + _MARGIN_CHARS)
    return min(column.width, max(_header_width(header_in_words(column.header)), char_count + _MARGIN_CHARS))


_MARGIN_CHARS = 2
_FILTER_CHARS = 4  # width of the filter button next to a header


def shown(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows as the sheets show them: exact amounts, the account as one text, enums as words."""
    return with_money(rows).with_columns(
        account=pl.concat_str("sort_code", "account_number", "iban", separator=" ", ignore_nulls=True),
        account_type_found=pl.col("check_code")
        .cast(pl.String)
        .replace_strict(ACCOUNT_TYPES_FOUND, default=None, return_dtype=pl.String),
        outcome=pl.col("check_outcome").cast(pl.String).replace(_spoken("outcome", Outcome)),
        action=pl.col("check_action").cast(pl.String).replace(_spoken("action", Action)),
    )


def _spoken(room: str, words: Iterable[str]) -> dict[str, str]:
    return {word: say(f"{room}.{word}") for word in words}


DIGITS_MAX = 15  # number of digits that a spreadsheet holds exactly; longer amounts stay text
TEXT_CHARS_MAX = 16_000  # a spreadsheet cell holds 32,767 UTF-16 units, and a character can take two
LINE_POINTS = 15
_ROWS_AT_ONCE = 5_000
"""About 10 MB of XML. A thousand rows at a time cost twice as much: each expression takes time to start."""
# The format's own escapes, such as _x0041_ for an A, are escaped in texts that contain them literally.
_ESCAPES = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", "_x": "_x005F_x", "\ufffe": "_xFFFE_", "\uffff": "_xFFFF_"
}  # fmt: skip
_ACTED_ON = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]"
_TO_LOOK_AT = "[^ -%'-;=?-~]|_x|^ | $"
"""Finds active or escapable text, and spaces at the ends. Few columns have any, so testing first takes a
third of the time of escaping them all.
"""


_Pieces = list[pl.Expr | str]  # what a row's XML is joined from, in order


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
) -> Iterator[bytes]:
    """Write rows, a few thousand at a time, with the sheet's columns from left to right.

    Cell by cell, this would take ten times as long, and the library mistakes some text for its own markup.
    Here all text is escaped, and every cell is text, a number or empty, so there are no formulas or links. A
    source is text, an enum, a whole number, or `frames.MONEY`; `first` is the line of the first row, from 1.
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
        height = pl.max_horizontal(1, *(_line_count(each) for each in columns if each.wraps)) * LINE_POINTS
        line = pl.col("_line")
        written: _Pieces = ['<row r="', line, '" ht="', height.cast(pl.String), '" customHeight="1">']
        for index, column in enumerate(columns):
            cell = _cell(part, column, styles, is_plain=column.source not in looked_at)
            written += f'<c r="{xl_col_to_name(index)}', line, *cell
        yield part.select(_joined([*written, "</row>"]).str.join("").cast(pl.Binary)).item()


def _joined(pieces: _Pieces) -> pl.Expr:
    """Join pieces of XML in each row; adjacent texts become one, as every piece takes time."""
    joined, text = [], ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
        else:
            joined += [pl.lit(text), piece]
            text = ""
    return pl.concat_str(*joined, pl.lit(text))


def amount_as_text(amount: Decimal) -> str:
    """Write an amount that is too long for a spreadsheet number, marked as text."""
    return f"{plain(amount):,} (as text: too long for a number)"


def visible_texts(texts: pl.Series) -> pl.Series:
    """Make active characters in texts visible, like `visible`."""
    acted_on = texts.str.contains(_ACTED_ON)
    return replaced(texts, where=acted_on, by=lambda some: some.map_elements(visible, pl.String))


def _cell(part: pl.DataFrame, column: SheetColumn, styles: Styles, *, is_plain: bool) -> _Pieces:
    """Return a column's cells as XML after the reference, in pieces; empty cells get the text style."""
    if column.source is None:
        return [f'" s="{styles.of_text(column)}"/>']
    values, value = part[column.source], pl.col(column.source)
    empty = styles.of_text(column) if column.is_input else styles.text
    if not values.count():
        return [f'" s="{empty}"/>']
    match values.dtype:
        case pl.String():
            is_spaced = not is_plain and (values.str.strip_chars() != values).any()
            text = value if is_plain else _escaped(value)
            written = _text(text, styles.of_text(column), is_spaced=is_spaced)
        case pl.Decimal():
            written = [_amount(values, styles)]
        case _:
            written = _number(value.cast(pl.String), styles.whole_number)
    if not values.null_count():
        return written
    return [pl.coalesce(_joined(written), pl.lit(f'" s="{empty}"/>'))]


def _text(value: pl.Expr, style: int, *, is_spaced: bool) -> _Pieces:
    """Escape texts; spaces at the ends are kept."""
    space = ' xml:space="preserve"' if is_spaced else ""
    return [f'" s="{style}" t="inlineStr"><is><t{space}>', value, "</t></is></c>"]


def _escaped(value: pl.Expr) -> pl.Expr:
    return value.str.replace_many(_ESCAPES)


def _number(digits: pl.Expr, style: int) -> _Pieces:
    return [f'" s="{style}"><v>', digits, "</v></c>"]


def _amount(values: pl.Series, styles: Styles) -> pl.Expr:
    """Write the amount by its decimal digits, without floats; as text if a number cannot hold it."""
    value = pl.col(values.name)
    text = value.cast(pl.String)
    digits, has_mills = text.str.strip_suffix("0"), ~text.str.ends_with("0")
    mills, cents = (_joined(_number(digits, style)) for style in (styles.mills, styles.cents))
    number = pl.when(has_mills).then(mills).otherwise(cents)
    if (values.cast(pl.String).str.len_bytes() <= DIGITS_MAX).all():
        return number  # the usual case
    is_long = digits.str.count_matches(r"\d") > DIGITS_MAX
    noted = pl.when(is_long).then(value).map_elements(amount_as_text, pl.String)
    as_text = _joined(_text(_escaped(noted), styles.long_amount, is_spaced=False))
    return pl.when(is_long).then(as_text).otherwise(number)


def _line_count(column: SheetColumn) -> pl.Expr:
    """Estimate the number of lines of a wrapped text, whose words seldom fill a line completely."""
    if column.source is None:
        return pl.lit(1)
    char_count, room = pl.col(column.source).str.len_chars(), column.width - 1
    lines = (char_count * 1.1 / room).ceil().cast(pl.Int64)
    return pl.when(char_count > room).then(lines).otherwise(1)
