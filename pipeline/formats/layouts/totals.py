"""Totals in headers, trailers and batch lines: compare them with payments, recalculate them for copies."""

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from pipeline.formats.layouts.classified import BATCH, HEADER, TRAILER, cell
from pipeline.formats.layouts.model import BankLayout, SummaryLine
from pipeline.formats.message import THE_FILE, StatedTotal
from pipeline.wording import Sentence

_AMOUNT = r"^[0-9]{1,15}(\.[0-9]{1,2})?$"
_MINOR = r"^[0-9]{1,15}$"
_CENTS = 2


class TotalField(NamedTuple):
    """One count or sum in a line."""

    line: int
    position: int
    kind: SummaryLine
    is_sum: bool
    text: str  # the text in the line, without surrounding blanks
    found: int | None  # the count of payments, or their sum in hundredths; None if an amount is malformed


def hundredths(amount: pl.Expr, layout: BankLayout) -> pl.Expr:
    """Return amounts in hundredths; null if malformed."""
    if layout.amount_in == "minor":
        return pl.when(amount.str.contains(_MINOR)).then(amount).cast(pl.Int64)
    cents = amount.str.extract(r"\.([0-9]+)$").fill_null("").str.pad_end(_CENTS, "0")
    digits = amount.str.extract("^([0-9]+)") + cents
    return pl.when(amount.str.contains(_AMOUNT)).then(digits).cast(pl.Int64, strict=False)


def totals_of(lines: pl.DataFrame, amounts: pl.DataFrame, layout: BankLayout) -> list[TotalField]:
    """Return every stated count and sum with the actual one of its payments; a blank cell states none."""
    totals = []
    for word, kind in ((HEADER, layout.header), (BATCH, layout.batch), (TRAILER, layout.trailer)):
        fields = () if kind is None else ((kind, kind.count, False), (kind, kind.sum, True))
        for of_kind, position, is_sum in fields:
            if position is None:
                continue
            stated = lines.filter(kind=word).select("line", cell(layout, of_kind, position).fill_null(""))
            for line, text in stated.filter(pl.nth(1) != "").iter_rows():
                mine = amounts.filter(batch_line=line) if word == BATCH else amounts
                money = mine["hundredths"]
                found = (None if money.null_count() else int(money.sum())) if is_sum else mine.height
                totals.append(TotalField(line, position, of_kind, is_sum, text, found))
    return totals


def with_batch(lines: pl.DataFrame) -> pl.DataFrame:
    """Add `batch_line`, null before the first batch or if the layout has no batches."""
    return lines.with_columns(batch_line=pl.when(pl.col("kind") == BATCH).then("line").forward_fill())


def controls(totals: list[TotalField], layout: BankLayout) -> Iterator[StatedTotal]:
    """Yield the totals as control totals."""
    for total in totals:
        where = Sentence("formats.sum_in_line" if total.is_sum else "formats.count_in_line", line=total.line)
        found = None if total.found is None else _shown(total.found, is_sum=total.is_sum)
        stated = _stated(total, layout)
        wrong = Sentence("formats.stated_unreadable", file=THE_FILE, where=where) if stated is None else None
        yield StatedTotal(where, stated, found, wrong)


def _stated(total: TotalField, layout: BankLayout) -> str | None:
    """Return a count or sum in normal form; None for other text, which could be anything."""
    text = pl.lit(total.text)
    count = text.str.extract("^[0-9]{1,15}$", 0).cast(pl.Int64)
    value = pl.select(hundredths(text, layout) if total.is_sum else count).item()
    return None if value is None else _shown(value, is_sum=total.is_sum)


def _shown(value: int, *, is_sum: bool) -> str:
    return f"{Decimal(value).scaleb(-_CENTS):f}" if is_sum else str(value)


def rewritten(total: TotalField, value: int, layout: BankLayout) -> str:
    """Write a count or sum in its old format: as many decimals, and leading zeros to the same length."""
    text = str(value)
    if total.is_sum and layout.amount_in == "main":
        needed = _CENTS if value % 10 else 1 if value % 100 else 0
        decimals = max(needed, len(total.text.partition(".")[2]))
        text = f"{Decimal(value).scaleb(-_CENTS):.{decimals}f}"
    is_filled = len(total.text) > 1 and total.text.startswith("0") and not total.text.startswith("0.")
    return text.zfill(len(total.text)) if is_filled else text
