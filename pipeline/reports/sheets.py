"""The sheets of the workbook: their rows, headers and widths."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from pipeline.apis.cop import ACCOUNT_TYPES_FOUND
from pipeline.formats.excel.decisions import DECIDED_BY, DECISION, REASON, ROW, key_of
from pipeline.reports.wording import say
from pipeline.rules.totals import with_money
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
_BATCH = SheetColumn("Batch", "batch", 24, wraps=True)
"""Columns left out if the format has no batches."""
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
    ReportSheet(
        "No match", "sheet.no_match_title", pl.col("check_outcome") == Outcome.NO_MATCH, _REVIEW, "#B91C1C"
    ),
    ReportSheet(
        "Not possible",
        "sheet.not_possible_title",
        pl.col("check_outcome") == Outcome.NOT_POSSIBLE,
        _REVIEW,
        "#7E22CE",
    ),
    ReportSheet(
        "Close match",
        "sheet.close_match_title",
        pl.col("check_outcome") == Outcome.CLOSE_MATCH,
        _WITH_NAME,
        "#CA8A04",
    ),
    ReportSheet(
        "Rejected", "sheet.rejected_title", pl.col("check_outcome") == Outcome.REJECTED, _REVIEW, "#64748B"
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
    columns = [
        column if column.source in there else column._replace(source=None)
        for column in columns
        if column.is_input or column.source in there
    ]
    sources = [column.source for column in columns if column.source and rows[column.source].count()]
    longest = rows.select(_char_count(pl.col(sources).cast(pl.String)).max()).to_dicts()
    counts, kinds = next(iter(longest), {}), rows.schema
    return [
        column
        if column.source is None or column.is_input
        else column._replace(width=_width(column, counts.get(column.source, 0), kinds[column.source]))
        for column in columns
    ]


def _char_count(text: pl.Expr) -> pl.Expr:
    """Return the width of a text in characters: a column is measured in digits, and capitals are wider."""
    return text.str.len_chars() + text.str.count_matches(r"\p{Lu}") // 4


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
_FILTER_CHARS = 4
"""Width of the filter button next to a header."""


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
