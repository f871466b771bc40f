"""The file of a simulated run: payments, the questions that they come to, and the outcome of each."""

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
    Findings,
    Outcomes,
    Questions,
    Rejects,
    RouteReason,
    Warnings,
)
from pipeline.stages.plan import Plan, bases, plan
from pipeline.stages.resolve import resolve
from schemas.outcomes import Environment

REPEATED_EVERY = 7
"""Every seventh question is asked for two payments."""


class PaymentFile(NamedTuple):
    """A file, read and planned."""

    planned: Plan
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
    return PaymentFile(planned, dict(enumerate(asked, start=1)))


def outcomes_of(file: PaymentFile, answers: pl.DataFrame) -> Outcomes:
    """Decide every payment, as a run does once it has asked.

    Args:
        file: of `payment_file`.
        answers: `Answers`, one per question.
    """
    findings = Findings(Rejects(pl.DataFrame(schema=REJECTS)), Warnings(pl.DataFrame(schema=WARNINGS)))
    checks, assignments = file.planned
    return resolve(
        findings, Questions(bases(checks), assignments), Answers(answers), [cop.API], Environment.PRODUCTION
    )
