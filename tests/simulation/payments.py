"""The file of a simulated run: payments, the questions that they come to, and the outcome of each."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import polars as pl

from pipeline.apis import cop, vop
from pipeline.executors.asking import AskingResult, calls_of, next_step, questions_left
from pipeline.frames import (
    ACCEPTED,
    PAYMENTS,
    REJECTS,
    WARNINGS,
    Accepted,
    Answers,
    Assignments,
    Bases,
    Check,
    Findings,
    Outcomes,
    Payments,
    Questions,
    Reasons,
    Rejects,
    RouteReason,
    Warnings,
    question_counts,
)
from pipeline.rules import totals
from pipeline.stages.plan import Plan, bases, plan
from pipeline.stages.resolve import resolve
from pipeline.stages.summarise import summarise
from schemas.outcomes import ApiName, Environment
from schemas.summary import InputFile, Summary

_TIME = "2030-01-01T09:00:00.000Z"
REPEATED_EVERY = 7
"""Every seventh question is asked for two payments."""
ACCOUNT_TYPE = "Personal"
VOP_EVERY = 3
"""Every third question is for VoP, in a file that has questions for both APIs."""


class PaymentFile(NamedTuple):
    """A file, read and planned."""

    planned: Plan
    checks: list[Check]
    """The questions, one by one."""
    question_of: dict[int, int]
    """Payment -> its question, by the file's own count."""
    payments: Payments
    bases: Bases
    question_counts: dict[ApiName, int]
    """How many questions each API is asked."""


_NO_REASONS = Reasons(pl.DataFrame())
_NO_WARNINGS = Warnings(pl.DataFrame(schema=WARNINGS))
_MONEY: dict[int, tuple[pl.Series, pl.Series]] = {}
"""Money of the payments of a file, by their id: they are kept for good, and the same in all histories."""
_money_of = totals.money_of
totals.money_of = lambda payments: _MONEY.get(id(payments)) or _money_of(payments)


@cache
def payment_file(question_count: int, version: int = 1, *, with_vop: bool = False) -> PaymentFile:
    """A file with so many questions for CoP, at five banks; some are asked for two payments.

    Another version has the same accounts, of payees with other names. With VoP, some of them are by IBAN.
    """
    asked = [*range(1, question_count + 1), *range(1, question_count + 1, REPEATED_EVERY)]
    rows = [
        {
            "row": row,
            "name": payee_of(question, version),
            **_asked_of(question, by_iban=with_vop and question % VOP_EVERY == 0),
        }
        for row, question in enumerate(asked, start=1)
    ]
    planned = plan(Accepted(pl.DataFrame(rows, schema=ACCEPTED)))
    assert planned.checks.height == question_count
    checks = [Check(number, ApiName(api), *said) for number, api, *said in planned.checks.iter_rows()]
    payments = pl.DataFrame([{"row": row["row"]} for row in rows], schema=PAYMENTS)
    _MONEY[id(payments)] = totals.money_of(payments)
    question_of = dict(enumerate(asked, start=1))
    counts = question_counts(planned.checks)
    return PaymentFile(planned, checks, question_of, Payments(payments), bases(planned.checks), counts)


def payee_of(question: int, version: int) -> str:
    """The name of the payee that a question is about, in this version of the file."""
    return f"Payee {question}" if version == 1 else f"Payee {question} as of file {version}"


def _asked_of(question: int, *, by_iban: bool) -> dict[str, object]:
    """The API of a question, and what it asks it about."""
    if by_iban:
        iban = f"DE00{question % 5:04d}{question:014d}"
        return {"api": ApiName.VOP_GATEWAY, "account": iban, "route_reason": RouteReason.IBAN}
    return {
        "api": ApiName.COP,
        "account": f"{question % 5:06d}{question:08d}",
        "account_type": ACCOUNT_TYPE,
        "route_reason": RouteReason.SORT_CODE,
    }


def row_of(account: str) -> int:
    """The question that asks about an account: its last digits, whatever is before them."""
    return int(account[-8:])


def outcomes_of(file: PaymentFile, answers: Sequence[pl.DataFrame]) -> list[Outcomes]:
    """Decide every payment of each run, as a run does once it has asked: all in one, as if of one large file.

    Args:
        file: of each; of any version.
        answers: `Answers` of some runs, each with one per question.

    Returns:
        Of each run the outcomes of its payments.
    """
    findings = Findings(Rejects(pl.DataFrame(schema=REJECTS)), _NO_WARNINGS)
    assignments, question_count = file.planned.assignments, file.planned.checks.height
    asked = Questions(
        Bases(_numbered_on(file.bases, len(answers), check=question_count)),
        Assignments(
            _numbered_on(assignments, len(answers), row=assignments.height, check=question_count),
        ),
    )
    said = pl.concat(answers).with_columns(pl.col("check") + _run_of_each(question_count) * question_count)
    every, count = (
        resolve(findings, asked, Answers(said), [cop.API, vop.GATEWAY], Environment.PRODUCTION).outcomes,
        assignments.height,
    )
    return [
        Outcomes(every.slice(start, count).with_columns(pl.col("row") - start))
        for start in range(0, len(answers) * count, count)
    ]


def _numbered_on(frame: pl.DataFrame, times: int, **counts: int) -> pl.DataFrame:
    """A frame so many times over, its numbers higher each time by these counts."""
    run = _run_of_each(frame.height)
    return pl.concat([frame] * times).with_columns(
        pl.col(column) + run * count for column, count in counts.items()
    )


def _run_of_each(count: int) -> pl.Expr:
    """Of each row of a frame the run that it is of, where each has so many: 0 for the first."""
    return pl.int_range(pl.len(), dtype=pl.UInt32) // count


def summary_of(file: PaymentFile, outcomes: Outcomes, asked: AskingResult, answers: Answers) -> Summary:
    """The summary of a run, as the job makes it of what came of the asking."""
    left = questions_left(answers, file.bases, asked)
    header = {
        "tool_version": "1",
        "profile": "test",
        "environment": Environment.PRODUCTION,
        "started": _TIME,
        "finished": _TIME,
        "input": InputFile(
            name="payments.csv",
            sha256="0" * 64,
            byte_count=1,
            row_count=file.payments.height,
            format="csv",
            encoding="utf-8",
            columns={},
        ),
        "routes": [],
        "next_step": str(next_step(left, asked)),
        "given_up": left.is_given_up,
    }
    calls = calls_of(file.question_counts, asked.tally)
    return summarise(header, file.payments, outcomes, _NO_WARNINGS, calls)
