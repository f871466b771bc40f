"""Rows and amounts by outcome, for the chart at the top of the report page."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

from pipeline.reports.groups import amount_text, currency_text
from pipeline.reports.wording import number, say
from schemas.outcomes import Outcome
from schemas.summary import OutcomeTotal

CURRENCIES_DRAWN_MAX = 3
DRAWN_CHARS_MAX = 36
"""Total length of the totals with bars, which must fit next to each other on half a screen."""
CURRENCIES_NAMED_MAX = 200
"""More than all currencies that exist; a hostile file can have one in every row."""


class Bar(NamedTuple):
    """A number and its bar."""

    text: str  # the number as text; empty if zero
    share: int  # percentage of the file's rows, or of its amounts in this currency; at least 1 unless zero


class OutcomeLine(NamedTuple):
    """The row of one outcome in the chart."""

    outcome: Outcome
    bars: tuple[Bar, ...]  # one for each header


class Total(NamedTuple):
    """The totals of a currency, shown as text without bars."""

    currency: str
    whole: str  # the file's total
    open: str  # total of rows that are not a match; empty without any


class Overview(NamedTuple):
    """The contents of the chart."""

    headers: tuple[str, ...]  # rows first, then as many currencies as fit, most rows first
    lines: tuple[OutcomeLine, ...]  # outcomes that have rows
    totals: tuple[str, ...]  # totals of the whole file, one for each header
    more: tuple[Total, ...]  # totals of the other currencies
    unnamed_count: int  # number of currencies that are neither drawn nor in `more`
    without_amount_count: int  # rows without a readable amount, which no sum includes


def overview(outcomes: Sequence[OutcomeTotal]) -> Overview:
    """Lay out the totals of a summary; each bar is a share of the whole, so that all are comparable."""
    found = [total for total in outcomes if total.row_count]
    row_counts: dict[str | None, int] = {}
    for money in (money for total in found for money in total.totals):
        row_counts[money.currency] = row_counts.get(money.currency, 0) + money.row_count
    currencies = sorted(row_counts, key=lambda code: (-row_counts[code], code or ""))
    drawn_count = _drawn_count([amount_text(_sum(found, code)) for code in currencies])
    drawn, rest = currencies[:drawn_count], currencies[drawn_count:]
    bars = [
        _bars([Decimal(total.row_count) for total in found], number),
        *(_bars([_amount(total, code) for total in found], amount_text) for code in drawn),
    ]
    row_count = sum(total.row_count for total in found)
    not_match = [total for total in found if total.outcome is not Outcome.MATCH]
    more = tuple(
        Total(currency_text(code), amount_text(_sum(found, code)), _text_of(_sum(not_match, code)))
        for code in rest[:CURRENCIES_NAMED_MAX]
    )
    return Overview(
        headers=(say("page.rows"), *(currency_text(code) for code in drawn)),
        lines=tuple(
            OutcomeLine(total.outcome, of_outcome)
            for total, of_outcome in zip(found, zip(*bars, strict=True), strict=True)
        ),
        totals=(number(row_count), *(amount_text(_sum(found, code)) for code in drawn)),
        more=more,
        unnamed_count=len(rest) - len(more),
        without_amount_count=row_count - sum(row_counts.values()),
    )


def _amount(total: OutcomeTotal, currency: str | None) -> Decimal:
    return sum((money.amount for money in total.totals if money.currency == currency), Decimal())


def _sum(outcomes: Sequence[OutcomeTotal], currency: str | None) -> Decimal:
    return sum((_amount(total, currency) for total in outcomes), Decimal())


def _text_of(amount: Decimal) -> str:
    return amount_text(amount) if amount else ""


def _drawn_count(totals: Sequence[str]) -> int:
    """Return how many currencies with these totals fit; at least one."""
    room = DRAWN_CHARS_MAX
    for count, total in enumerate(totals[:CURRENCIES_DRAWN_MAX]):
        room -= len(total)
        if room < 0 and count:
            return count
    return min(len(totals), CURRENCIES_DRAWN_MAX)


def _bars(numbers: Sequence[Decimal], text_of: Callable[[Decimal], str]) -> list[Bar]:
    whole = sum(numbers, Decimal())
    return [
        Bar(text_of(number), max(1, int(100 * number / whole))) if number else Bar("", 0)
        for number in numbers
    ]
