"""What the decisions on a run would come to, found before anything is written."""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from pipeline.frames import Outcomes, Payments, Warned
from pipeline.review.placements import IS_RELEASED
from pipeline.rules.policy import verdicts
from pipeline.rules.totals import MONEY_FIELDS, totals, with_money
from schemas.review import ControlTotal, Decision, Verdict


class Preview(NamedTuple):
    """What would be released and held."""

    release: ControlTotal
    hold: ControlTotal
    refused: pl.Series
    """Rows that a person decided to release, and that stay held."""


def judged(
    payments: Payments, outcomes: Outcomes, warned: Warned, policy: Mapping[str, Verdict]
) -> pl.DataFrame:
    """What a preview needs to know of each payment, and no decision changes.

    Args:
        payments: `Payments`.
        outcomes: `Outcomes`, row by row the same.
        warned: `Warned`.
        policy: as `split` takes it.

    Returns:
        `row`, `check_outcome`, `verdict`, and `amount` and `currency` as `money_of`.
    """
    found = verdicts(outcomes, warned, policy).select("row", "check_outcome", "verdict")
    return found.hstack(with_money(payments.select(MONEY_FIELDS)).select("amount", "currency").get_columns())


def preview(rows: pl.DataFrame, said: pl.DataFrame) -> Preview:
    """Find how much would be released and held by what people decided so far.

    Args:
        rows: as `judged` gives them.
        said: `row` and `decision` of `Decisions`.
    """
    placed = rows.join(said, on="row", how="left", maintain_order="left").with_columns(released=IS_RELEASED)
    release, hold = placed.filter("released"), placed.filter(~pl.col("released"))
    return Preview(
        release=_total(release),
        hold=_total(hold),
        refused=hold.filter(decision=Decision.RELEASE)["row"],
    )


def _total(mine: pl.DataFrame) -> ControlTotal:
    return ControlTotal(row_count=mine.height, totals=totals(mine))
