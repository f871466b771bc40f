"""Control totals: number and amount of payments by currency, per outcome and overall."""

from collections.abc import Iterable
from decimal import Decimal
from itertools import chain

import polars as pl

from pipeline.rules.amounts import read_amounts
from pipeline.rules.currencies import OTHER, amount_faults, completed, of_uk_accounts, read_currencies
from schemas.outcomes import Outcome
from schemas.summary import Money, OutcomeTotal

MONEY_FIELDS = ("amount", "currency", "iban", "sort_code")  # the columns of `Payments` that `money_of` reads


def money_of(payments: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Return `amount` as `frames.MONEY` and `currency` as a code, or nulls, from `MONEY_FIELDS`."""
    amounts = read_amounts(payments["amount"])
    written, given = payments["currency"], read_currencies(payments["currency"])
    currency = completed(given, amounts.mark, of_uk_accounts(payments))
    is_unreadable = given.is_null() & written.is_not_null()
    contradicts = amount_faults(amounts.money, amounts.mark, given, currency) == OTHER
    return amounts.money, currency.set(is_unreadable | contradicts.fill_null(value=False), None)


def currency_shown(payments: pl.DataFrame) -> pl.Series:
    """Return each payment's currency for people, from `MONEY_FIELDS`: the known one, else the file's text."""
    _, currency = money_of(payments)
    return currency.zip_with(currency.is_not_null(), payments["currency"])


def with_money(payments: pl.DataFrame) -> pl.DataFrame:
    """Return payments with `amount` and `currency` as from `money_of`."""
    return payments.with_columns(money_of(payments))


def outcomes_with_money(payments: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Add the payments' `payment_id`, and `amount` and `currency` as from `money_of`, to their outcomes."""
    assert payments["row"].equals(outcomes["row"])
    return outcomes.hstack([payments["payment_id"], *money_of(payments)])


def totals(rows: pl.DataFrame) -> list[Money]:
    """Add up `amount`, as `frames.MONEY`, by `currency`; rows without a readable amount are left out."""
    return [_money(*sums) for sums in _sums(rows, "currency").iter_rows()]


def outcome_totals(rows: pl.DataFrame) -> list[OutcomeTotal]:
    """Count rows and amounts of every outcome, even 0, in documented order, from `outcomes_with_money`."""
    row_counts = dict(rows["check_outcome"].value_counts().iter_rows())
    money: dict[str, list[Money]] = {}
    for outcome, *sums in _sums(rows, "check_outcome", "currency").iter_rows():
        money.setdefault(outcome, []).append(_money(*sums))
    return [
        OutcomeTotal(outcome=outcome, row_count=row_counts.get(outcome, 0), totals=money.get(outcome, []))
        for outcome in Outcome
    ]


def _sums(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return number and sum of rows with a readable amount, by these columns, `currency` included."""
    return (
        rows.select(*by, "amount")
        .filter(pl.col("amount") >= 0)
        .group_by(by)
        .agg(pl.len().alias("row_count"), pl.col("amount").sum())
        .sort("currency", nulls_last=True)
    )


def _money(currency: str | None, row_count: int, amount: Decimal) -> Money:
    return Money(currency=currency, row_count=row_count, amount=plain(amount))


def control_totals(outcomes: list[OutcomeTotal]) -> list[Money]:
    """Add up the totals of all outcomes by currency; those without a currency come last."""
    return added([total.totals for total in outcomes])


def added(parts: list[list[Money]]) -> list[Money]:
    """Return the combined totals of several sets of payments."""
    sums: dict[str | None, tuple[int, Decimal]] = {}
    for total in chain.from_iterable(parts):
        row_count, amount = sums.get(total.currency, (0, Decimal(0)))
        sums[total.currency] = row_count + total.row_count, amount + total.amount
    in_order = sorted(sums, key=lambda currency: (currency is None, currency or ""))
    return [_money(currency, *sums[currency]) for currency in in_order]


def added_outcomes(parts: Iterable[list[OutcomeTotal]]) -> list[OutcomeTotal]:
    """Combine the rows and amounts of every outcome of several sets of payments."""
    every = [total for part in parts for total in part]
    return [
        OutcomeTotal(
            outcome=outcome,
            row_count=sum(total.row_count for total in every if total.outcome is outcome),
            totals=added([total.totals for total in every if total.outcome is outcome]),
        )
        for outcome in Outcome
    ]


def plain(amount: Decimal) -> Decimal:
    """Return the amount with two decimals, or three if the third is not zero."""
    cents = amount.quantize(Decimal("0.01"))
    return cents if cents == amount else amount
