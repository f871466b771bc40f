"""The file of a simulated run: payments, the questions that they come to, and the outcome of each."""

from functools import cache
from typing import NamedTuple

import polars as pl

from pipeline.apis import cop
from pipeline.executors.asking import AskingResult
from pipeline.frames import (
    ACCEPTED,
    PAYMENTS,
    REJECTS,
    WARNINGS,
    Accepted,
    Answers,
    Findings,
    Outcomes,
    Payments,
    Questions,
    Rejects,
    RouteReason,
    Warnings,
)
from pipeline.jobs.writing import DecidedRun
from pipeline.stages.plan import Plan, bases, plan
from pipeline.stages.resolve import resolve
from pipeline.stages.summarise import SummaryHeader, summarise
from schemas.outcomes import Environment
from schemas.summary import InputFile, Summary

_TIME = "2030-01-01T09:00:00.000Z"
REPEATED_EVERY = 7
"""Every seventh question is asked for two payments."""


class PaymentFile(NamedTuple):
    """A file, read and planned."""

    planned: Plan
    question_of: dict[int, int]
    """Payment -> its question, by the file's own count."""
    payments: Payments


@cache
def payment_file(question_count: int, version: int = 1) -> PaymentFile:
    """A file with so many questions for CoP, at five banks; some are asked for two payments.

    Another version has the same accounts, of payees with other names.
    """
    asked = [*range(1, question_count + 1), *range(1, question_count + 1, REPEATED_EVERY)]
    rows = [
        {
            "row": row,
            "api": "cop",
            "account": f"{question % 5:06d}{question:08d}",
            "name": f"Payee {question}" if version == 1 else f"Payee {question} as of file {version}",
            "account_type": "Personal",
            "route_reason": RouteReason.SORT_CODE,
        }
        for row, question in enumerate(asked, start=1)
    ]
    planned = plan(Accepted(pl.DataFrame(rows, schema=ACCEPTED)))
    assert planned.checks.height == question_count
    payments = pl.DataFrame([{"row": row["row"]} for row in rows], schema=PAYMENTS)
    return PaymentFile(planned, dict(enumerate(asked, start=1)), Payments(payments))


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


def summary_of(file: PaymentFile, outcomes: Outcomes, asked: AskingResult) -> Summary:
    """The summary of a run, as the job makes it of what came of the asking."""
    warnings = Warnings(pl.DataFrame(schema=WARNINGS))
    decided = DecidedRun(outcomes, warnings, bases(file.planned.checks), asked)
    header = SummaryHeader(
        tool_version="1",
        profile="test",
        environment=Environment.PRODUCTION,
        started=_TIME,
        finished=_TIME,
        input=InputFile(
            name="payments.csv",
            sha256="0" * 64,
            byte_count=1,
            row_count=file.payments.height,
            format="csv",
            encoding="utf-8",
            columns={},
        ),
        routes=[],
        next_step=asked.next_step(decided.bases),
        given_up=decided.given_up,
    )
    return summarise(header, file.payments, outcomes, warnings, asked.calls(decided.bases))
