"""plan: Accepted -> Checks. Each distinct question once, with the payments that it covers."""

from typing import Literal, NamedTuple

import polars as pl

from pipeline import frames
from schemas.outcomes import ApiName


class Plan(NamedTuple):
    """The checks in the order of the requests."""

    checks: frames.Checks
    assignments: frames.Assignments


def plan(accepted: frames.Accepted, order: Literal["file", "amount"] = "file") -> Plan:
    """Find the distinct questions, and the question of each accepted payment.

    Questions are ordered by their first payment, or by their largest single payment, regardless of currency
    and last without an amount. `Checks` are numbered from 1 by first appearance in the file, in either order.
    """
    assert accepted.schema == frames.ACCEPTED
    numbers = accepted.select(list(frames.QUESTION)).with_row_index("position")
    first = _first_alike(numbers)
    is_first = first == numbers["position"]
    check = is_first.cum_sum().cast(pl.UInt32).alias("check")
    assignments = accepted.select("row", check.gather(first))
    checks = accepted.select(check, *frames.QUESTION).filter(is_first)
    if order == "amount":
        amounts = accepted.select("amount", assignments["check"])
        largest = amounts.group_by("check").agg(largest=pl.col("amount").max())
        largest = largest.sort("largest", "check", descending=[True, False], nulls_last=True)
        checks = largest.select("check").join(checks, on="check", maintain_order="left")
    assert checks.schema == frames.CHECKS
    assert assignments.schema == frames.ASSIGNMENTS
    assert assignments["check"].null_count() == 0
    assert assignments["check"].n_unique() == checks.height
    return Plan(frames.Checks(checks), frames.Assignments(assignments))


def bases(checks: frames.Checks) -> frames.Bases:
    """Return the `Bases` of some `Checks`, a tenth of their size."""
    assert checks.schema == frames.CHECKS
    return frames.Bases(checks.select("check", "api", by_name=pl.col("name").is_not_null()))


def _first_alike(questions: pl.DataFrame) -> pl.Series:
    """Return the `position` of the first equal question for each; for bank reports, its own."""
    # Most accounts are paid once, so the other texts of their questions need no comparison.
    is_asked = pl.col("api") != ApiName.BANK_REPORT
    alike = questions.filter(frames.recurring(questions["account"].hash()), is_asked)
    first = alike.select(pl.col("position").first().over(list(frames.QUESTION))).to_series()
    return questions["position"].scatter(alike["position"], first)
