"""A summary with one row of everything, and a console that a test can read."""

import io
from decimal import Decimal

import pytest
from rich.console import Console

from schemas.outcomes import Action, ApiName, Environment, Outcome
from schemas.summary import (
    ApiCalls,
    AttentionRow,
    CodeCount,
    InputFile,
    Money,
    OutcomeTotal,
    Summary,
    WarningCount,
    WarningRow,
)

TIME = "2030-01-02T03:04:05.678Z"


@pytest.fixture
def attention_row():
    def build(row=1, payment_id="INV-1", amount="1234.50", currency="GBP", code="ANNM"):
        return AttentionRow(
            row=row,
            payment_id=payment_id,
            outcome=Outcome.NO_MATCH,
            code=code,
            action=Action.ASK_PAYEE,
            reason="The name on the account is a different one.",
            amount=None if amount is None else Decimal(amount),
            currency=currency,
        )

    return build


@pytest.fixture
def summary_of(attention_row):
    """A summary in which a test says what it is about."""

    def build(**said):
        rows = said.pop("attention", [attention_row()])
        currency = said.pop("currency", "GBP")
        total = Money(currency=currency, row_count=1, amount=Decimal("1234.50"))
        reason = said.pop("reason", "The name on the account is a different one.")
        usual = {
            "tool_version": "0",
            "profile": "main",
            "environment": Environment.PRODUCTION,
            "simulated": False,
            "started": TIME,
            "finished": TIME,
            "input": InputFile(
                name=said.pop("file_name", "payroll.csv"),
                sha256="0",
                byte_count=1,
                row_count=1500,
                format="csv",
                encoding="utf-8",
                columns={},
            ),
            "outcomes": [
                OutcomeTotal(outcome=Outcome.MATCH, row_count=0, totals=[]),
                OutcomeTotal(outcome=Outcome.NO_MATCH, row_count=1500, totals=[total]),
            ],
            "codes": [
                CodeCount(
                    outcome=Outcome.NO_MATCH,
                    code="ANNM",
                    action=Action.ASK_PAYEE,
                    reason=reason,
                    row_count=1500,
                    rows=list(range(1, 11)),
                )
            ],
            "routes": [],
            "calls": [
                ApiCalls(api=ApiName.COP, question_count=1400, answered_before_count=9, request_count=1395)
            ],
            "saved_call_count": 100,
            "attention": rows,
            "attention_count": len(rows),
            "warnings": [WarningRow(row=7, code="MIXED_SCRIPTS", message="odd")],
            "warning_count": 1,
            "warning_codes": [WarningCount(code="MIXED_SCRIPTS", row_count=1, rows=[7])],
            "complete": True,
            "next_step": None,
        }
        return Summary(**{**usual, **said})

    return build


@pytest.fixture
def shown():
    """What a console of some width shows of a renderable, or of a function that prints to it."""

    def text_of(what, *, width=80, **options):
        console = Console(file=io.StringIO(), width=width, **options)
        if callable(what):
            what(console)
        else:
            console.print(what)
        return console.file.getvalue()

    return text_of
