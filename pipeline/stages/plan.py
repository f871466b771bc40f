"""plan: Accepted -> Checks. Each distinct question once, and which payments it answers."""

from typing import Literal, NamedTuple

import polars as pl

from pipeline.frames import ACCEPTED, ASSIGNMENTS, CHECKS, QUESTION


class Plan(NamedTuple):
    """What is to be asked, in the order in which it is to be asked."""

    checks: pl.DataFrame
    assignments: pl.DataFrame


def plan(accepted: pl.DataFrame, order: Literal["file", "amount"] = "file") -> Plan:
    """Find the distinct questions.

    Args:
        accepted: an `Accepted` frame.
        order: by the first payment that asks, or by the largest single payment behind a question,
            so that scarce calls go to the largest payments. Amounts are compared as numbers,
            whatever their currency; a payment without an amount comes last.

    Returns:
        `Checks`, numbered from 1 by first appearance in the file whatever the order, and
        `Assignments`, one row per accepted payment.
    """
    assert accepted.schema == ACCEPTED
    question = list(QUESTION)
    numbered = (
        accepted.group_by(question, maintain_order=True)
        .agg(largest=pl.col("amount").max())
        .with_row_index("check", offset=1)
    )
    assignments = accepted.join(
        numbered, on=question, how="left", nulls_equal=True, maintain_order="left"
    ).select("row", "check")
    if order == "amount":
        numbered = numbered.sort("largest", descending=True, nulls_last=True, maintain_order=True)
    checks = numbered.select(list(CHECKS))
    assert checks.schema == CHECKS
    assert assignments.schema == ASSIGNMENTS
    assert assignments["check"].null_count() == 0
    assert assignments["check"].n_unique() == checks.height
    return Plan(checks, assignments)
