"""The file of a simulated run: payments, the questions that they come to, and the outcome of each."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import polars as pl

from pipeline.apis import cop
from pipeline.frames import (
    ACCEPTED,
    REJECTS,
    WARNINGS,
    Accepted,
    Answers,
    Assignments,
    Bases,
    Check,
    Findings,
    Questions,
    Rejects,
    RouteReason,
    Warnings,
)
from pipeline.stages.plan import Plan, bases, plan
from pipeline.stages.resolve import resolve
from schemas.outcomes import ApiName, Environment

REPEATED_EVERY = 7
"""Every seventh question is asked for two payments."""


class PaymentFile(NamedTuple):
    """A file, read and planned."""

    planned: Plan
    checks: list[Check]
    """The questions, one by one."""
    question_of: dict[int, int]
    """Payment -> its question, by the file's own count."""


@cache
def payment_file(question_count: int) -> PaymentFile:
    """A file with so many questions for CoP, at five banks; some are asked for two payments."""
    asked = [*range(1, question_count + 1), *range(1, question_count + 1, REPEATED_EVERY)]
    rows = [
        {
            "row": row,
            "api": "cop",
            "account": f"{question % 5:06d}{question:08d}",
            "name": f"Payee {question}",
            "account_type": "Personal",
            "route_reason": RouteReason.SORT_CODE,
        }
        for row, question in enumerate(asked, start=1)
    ]
    planned = plan(Accepted(pl.DataFrame(rows, schema=ACCEPTED)))
    assert planned.checks.height == question_count
    checks = [Check(number, ApiName(api), *said) for number, api, *said in planned.checks.iter_rows()]
    return PaymentFile(planned, checks, dict(enumerate(asked, start=1)))


def outcomes_of(question_count: int, answers: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Decide every payment of each run, as a run does once it has asked: all in one, as if of one large file.

    Args:
        question_count: of the file of each.
        answers: `Answers` of some runs, each with one per question.

    Returns:
        `Outcomes`: the payments of the first run, and then those of the next, numbered on.
    """
    findings = Findings(Rejects(pl.DataFrame(schema=REJECTS)), Warnings(pl.DataFrame(schema=WARNINGS)))
    checks, assignments = payment_file(question_count).planned
    asked = Questions(
        Bases(_numbered_on(bases(checks), len(answers), check=question_count)),
        Assignments(
            _numbered_on(assignments, len(answers), row=assignments.height, check=question_count),
        ),
    )
    said = pl.concat(answers).with_columns(pl.col("check") + _run_of_each(question_count) * question_count)
    return resolve(findings, asked, Answers(said), [cop.API], Environment.PRODUCTION)


def _numbered_on(frame: pl.DataFrame, times: int, **counts: int) -> pl.DataFrame:
    """A frame so many times over, its numbers higher each time by these counts."""
    run = _run_of_each(frame.height)
    return pl.concat([frame] * times).with_columns(
        pl.col(column) + run * count for column, count in counts.items()
    )


def _run_of_each(count: int) -> pl.Expr:
    """Of each row of a frame the run that it is of, where each has so many: 0 for the first."""
    return pl.int_range(pl.len(), dtype=pl.UInt32) // count
