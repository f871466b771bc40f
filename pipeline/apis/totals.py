"""Control totals: how many payments, and how much money in each currency, by outcome and in all."""

from decimal import Decimal

import polars as pl

from pipeline.apis.amounts import read_amounts, read_currencies
from schemas.outcomes import Outcome
from schemas.summary import Money, OutcomeTotal


def with_money(payments: pl.DataFrame) -> pl.DataFrame:
    """Payments with `amount` as `frames.MONEY` and `currency` as a code; null where it is not one."""
    return payments.with_columns(
        read_amounts(payments["amount"]).money, read_currencies(payments["currency"])
    )


def outcomes_with_money(payments: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """The outcomes with what they are about: `payment_id`, and `amount` and `currency` as `with_money`."""
    assert payments["row"].equals(outcomes["row"])
    return outcomes.hstack(with_money(payments.select("payment_id", "amount", "currency")).get_columns())


def totals(rows: pl.DataFrame) -> list[Money]:
    """Sum money by currency; rows without a readable amount are in no total.

    Args:
        rows: with `amount` as `frames.MONEY` and `currency`, as `with_money` gives them.
    """
    sums = (
        rows.filter(pl.col("amount") >= 0)
        .group_by("currency")
        .agg(pl.len().alias("row_count"), pl.col("amount").sum())
        .sort("currency", nulls_last=True)
    )
    return [
        Money(currency=currency, row_count=row_count, amount=plain(amount))
        for currency, row_count, amount in sums.iter_rows()
    ]


def outcome_totals(rows: pl.DataFrame) -> list[OutcomeTotal]:
    """Rows and money of every outcome, in the order of the documentation; those without rows too.

    Args:
        rows: as `outcomes_with_money` gives them.
    """
    money = rows.select("check_outcome", "amount", "currency")
    by_outcome = ((outcome, money.filter(pl.col("check_outcome") == outcome)) for outcome in Outcome)
    return [
        OutcomeTotal(outcome=outcome, row_count=mine.height, totals=totals(mine))
        for outcome, mine in by_outcome
    ]


def control_totals(outcomes: list[OutcomeTotal]) -> list[Money]:
    """The totals over all outcomes, by currency; those without a currency come last."""
    return added([total.totals for total in outcomes])


def added(parts: list[list[Money]]) -> list[Money]:
    """The totals of several sets of payments together."""
    counts: dict[str | None, int] = {}
    amounts: dict[str | None, Decimal] = {}
    for total in (total for part in parts for total in part):
        counts[total.currency] = counts.get(total.currency, 0) + total.row_count
        amounts[total.currency] = amounts.get(total.currency, Decimal(0)) + total.amount
    return [
        Money(currency=currency, row_count=counts[currency], amount=plain(amounts[currency]))
        for currency in sorted(counts, key=lambda currency: (currency is None, currency or ""))
    ]


def plain(amount: Decimal) -> Decimal:
    """The amount with two decimals, or the third where it is not zero."""
    cents = amount.quantize(Decimal("0.01"))
    return cents if cents == amount else amount
