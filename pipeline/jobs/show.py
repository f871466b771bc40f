"""tell: one row's whole story, from what the file says to what a person does next."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from pipeline.frames import ACCEPTED, ASSIGNMENTS, CHECKS, OUTCOMES, PAYMENTS, QUESTION, Check
from pipeline.rules.identifiers import masked
from pipeline.rules.totals import currency_shown
from pipeline.stores.sqlite.reader import Attempt
from schemas.outcomes import COLUMNS, ApiName, Environment, OutcomeColumns
from schemas.payments import FIELDS
from schemas.places import Places, place_text
from schemas.story import AttemptTold, FindingTold, QuestionTold, RouteTold, Story

ROWS_LISTED_MAX = 100
_ACCOUNTS = ("account_number", "iban", "account")


class Told(NamedTuple):
    """What a story is made of; the frames are those of the whole file."""

    file: str
    environment: Environment
    payments: pl.DataFrame
    """`Payments`."""
    findings: tuple[pl.DataFrame, pl.DataFrame]
    """`Rejects` and `Warnings`."""
    accepted: pl.DataFrame
    """`Accepted`, without rows that nothing was to be asked for."""
    planned: tuple[pl.DataFrame, pl.DataFrame]
    """`Checks` and `Assignments`."""
    outcomes: pl.DataFrame
    """`Outcomes`."""
    places: Places | None = None
    """Of the rows in their file; None where they have none."""


def tell(row: int, told: Told, attempts_for: Callable[[Check], Sequence[Attempt]]) -> Story:
    """Put together what is known about one row, which must exist.

    Args:
        row: its number.
        told: the whole file.
        attempts_for: every request for a question, first to last.
    """
    assert told.payments.schema == PAYMENTS
    assert told.accepted.schema == ACCEPTED
    assert told.outcomes.schema == OUTCOMES
    mine = told.payments.filter(pl.col("row") == row)
    [payment] = mine.with_columns(currency_shown(mine)).select(FIELDS).to_dicts()
    [outcome] = told.outcomes.filter(pl.col("row") == row).select(COLUMNS).to_dicts()
    check = _check_of(row, told.planned)
    attempts = [] if check is None else attempts_for(check)
    return Story(
        file=told.file,
        row=row,
        place=place_text(row, told.places) or None,
        environment=told.environment,
        simulated=told.environment is Environment.SANDBOX,
        payment=_said(payment),
        findings=_findings(row, told.findings),
        route=_route(told.accepted.filter(pl.col("row") == row)),
        question=None if check is None else _question(check, told.planned[1], told.places),
        attempts=[
            AttemptTold(
                number=attempt.number,
                request_id=attempt.request_id,
                sent=attempt.sent_at,
                ended=attempt.ended,
                code=attempt.code,
                ended_at=attempt.ended_at,
                detail=attempt.detail,
                has_hidden_detail=attempt.has_hidden_detail,
            )
            for attempt in attempts
        ],
        # An id without a request of ours: it was another run that sent it.
        answered_by_earlier_run=outcome["check_id"] is not None
        and outcome["check_id"] not in {attempt.request_id for attempt in attempts},
        outcome=OutcomeColumns(**outcome),
    )


def _said(fields: dict[str, str | None]) -> dict[str, str]:
    """The fields that say something, with accounts that nobody could pay to."""
    return {
        field: masked(value) if field in _ACCOUNTS else value
        for field, value in fields.items()
        if value is not None
    }


def _findings(row: int, findings: tuple[pl.DataFrame, pl.DataFrame]) -> list[FindingTold]:
    return [
        FindingTold(field=field, code=code, message=message, is_warning=is_warning)
        for is_warning, frame in enumerate(findings)
        for _, field, code, message in frame.filter(pl.col("row") == row).iter_rows()
    ]


def _route(accepted: pl.DataFrame) -> RouteTold | None:
    if accepted.is_empty():
        return None
    [(api, reason, bic_source)] = accepted.select("api", "route_reason", "bic_source").iter_rows()
    return RouteTold(api=ApiName(api), reason=reason, bic_source=bic_source)


def _check_of(row: int, planned: tuple[pl.DataFrame, pl.DataFrame]) -> Check | None:
    """The question that answers a row, or None where there is none."""
    checks, assignments = planned
    assert checks.schema == CHECKS
    assert assignments.schema == ASSIGNMENTS
    found = checks.join(assignments.filter(pl.col("row") == row), on="check", how="semi")
    if found.is_empty():
        return None
    number, api, *rest = found.row(0)
    return Check(number, ApiName(api), *rest)


def _question(check: Check, assignments: pl.DataFrame, places: Places | None) -> QuestionTold:
    rows = assignments.filter(pl.col("check") == check.check)["row"].sort()
    fields = {field: value for field, value in check._asdict().items() if field in QUESTION}
    listed = rows.head(ROWS_LISTED_MAX).to_list()
    return QuestionTold(
        fields=_said(fields),
        rows=listed,
        places=[place_text(row, places) for row in listed if places is not None],
        row_count=rows.len(),
    )
