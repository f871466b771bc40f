"""Rows and money by outcome: the same sums for a run, and for whoever checks its files later."""

from decimal import Decimal

import polars as pl

from pipeline.apis.amounts import decimal_text, money
from pipeline.apis.identifiers import compact
from schemas.outcomes import Outcome
from schemas.summary import Money, OutcomeTotal


def with_money(payments: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """The outcomes with what they are about: `payment_id`, `amount` and `currency`.

    An amount is `frames.MONEY`, and null where the file gives none that can mean one amount only.
    """
    assert payments["row"].equals(outcomes["row"])
    return outcomes.with_columns(
        payments["payment_id"], decimal_text(payments["amount"]), compact(payments["currency"])
    ).with_columns(money(pl.col("amount")))


def outcome_totals(rows: pl.DataFrame) -> list[OutcomeTotal]:
    """Rows and money of every outcome, in the order of the documentation; those without rows too.

    Args:
        rows: as `with_money` gives them.
    """
    return [_outcome_total(outcome, rows) for outcome in Outcome]


def _outcome_total(outcome: Outcome, rows: pl.DataFrame) -> OutcomeTotal:
    mine = rows.filter(pl.col("check_outcome") == outcome)
    totals = (
        mine.filter(pl.col("amount") >= 0)
        .group_by("currency")
        .agg(pl.len().alias("row_count"), pl.col("amount").sum())
        .sort("currency", nulls_last=True)
    )
    return OutcomeTotal(
        outcome=outcome,
        row_count=mine.height,
        totals=[
            Money(currency=currency, row_count=row_count, amount=plain(amount))
            for currency, row_count, amount in totals.iter_rows()
        ],
    )


def plain(amount: Decimal) -> Decimal:
    """The amount with two decimals, or the third where it is not zero."""
    cents = amount.quantize(Decimal("0.01"))
    return cents if cents == amount else amount
