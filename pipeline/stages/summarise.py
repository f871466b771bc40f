"""summarise: everything -> Summary, or a plan -> Forecast. The documents that reports are made of."""

from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple

import polars as pl

from pipeline.formats.batches import batch_totals
from pipeline.formats.message import Message
from pipeline.frames import ACCEPTED, NOTE, OUTCOMES, PAYMENTS, WARNINGS, Outcomes, Payments, Warnings
from pipeline.rules.totals import outcome_totals, outcomes_with_money, plain
from pipeline.rules.unasked import UNASKED
from schemas.changes import Comparison
from schemas.outcomes import Action, ApiName, Environment, Outcome, WarningCode
from schemas.places import Places, place_text
from schemas.summary import (
    ApiCalls,
    ApiForecast,
    AttentionRow,
    BrokenRule,
    CodeCount,
    Forecast,
    InputFile,
    ModulusUsed,
    RejectedRow,
    RouteCount,
    SetAside,
    StatedControl,
    Summary,
    WarningCount,
    WarningRow,
)

ROWS_LISTED_MAX = 1000
ROWS_NAMED_MAX = 10
ATTENTION = (Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)
"""The outcomes whose rows a person must look at before anything is paid."""
UNDECIDED = (Outcome.DEFERRED, Outcome.UNANSWERED)
"""The outcomes that a later run may change."""


class SummaryHeader(NamedTuple):
    """What a summary says about the run as a whole."""

    tool_version: str
    profile: str
    environment: Environment
    started: str
    finished: str
    input: InputFile
    routes: list[RouteCount]
    """Which API was to check how many rows, and why."""
    next_step: str
    """How to go on, where rows are left for a later run."""
    given_up: bool = False
    """Whether no later run would ask about them."""
    many_names_reason: str | None = None
    """Why one account was allowed to be asked about by many names."""
    compared: Comparison | None = None
    """The earlier runs that the file was compared with."""
    modulus: ModulusUsed | None = None
    """The modulus tables that UK accounts were checked by first."""
    message: Message | None = None
    """What was read of a payment format, for its batches."""


def summarise(
    header: SummaryHeader,
    payments: Payments,
    outcomes: Outcomes,
    warnings: Warnings,
    calls: Iterable[ApiCalls],
) -> Summary:
    """Count rows and money.

    Args:
        header: what to say about the run.
        payments: `Payments`, for the amounts and the payer's ids.
        outcomes: `Outcomes`, one row per payment.
        warnings: `Warnings`.
        calls: what was asked of each API.

    Returns:
        The summary. Its totals add up to the file's: every payment is in one outcome.
    """
    assert payments.schema == PAYMENTS
    assert outcomes.schema == OUTCOMES
    assert warnings.schema == WARNINGS
    rows = outcomes_with_money(payments, outcomes)
    assert rows.height == payments.height == outcomes.height
    calls = list(calls)
    batches = batch_totals(header.message, rows)
    needs_attention = pl.col("check_outcome").is_in(list(ATTENTION))
    asked_count, undecided_count, attention_count = rows.select(
        pl.col("check_api").count(),
        pl.col("check_outcome").is_in(list(UNDECIDED)).sum(),
        needs_attention.sum().alias("attention"),
    ).row(0)
    return Summary(
        tool_version=header.tool_version,
        profile=header.profile,
        environment=header.environment,
        simulated=header.environment is Environment.SANDBOX,
        many_names_reason=header.many_names_reason,
        started=header.started,
        finished=header.finished,
        input=header.input,
        outcomes=outcome_totals(rows),
        codes=_code_counts(rows),
        batches=batches.listed,
        batch_count=batches.batch_count,
        routes=header.routes,
        calls=calls,
        saved_call_count=asked_count - sum(call.question_count for call in calls),
        attention=_attention_rows(rows.lazy().filter(needs_attention)),
        attention_count=attention_count,
        warnings=[
            WarningRow(row=row, code=code, message=message)
            for row, code, message in warnings.select("row", "code", "message")
            .head(ROWS_LISTED_MAX)
            .iter_rows()
        ],
        warning_count=warnings.height,
        warning_codes=_warning_counts(warnings),
        compared=header.compared,
        modulus=header.modulus,
        complete=undecided_count == 0,
        next_step=header.next_step if undecided_count else None,
        given_up=header.given_up,
    )


def route_counts(accepted: pl.DataFrame) -> list[RouteCount]:
    """Count the ways that payments go.

    Args:
        accepted: `Accepted`.
    """
    assert accepted.schema == ACCEPTED
    counts = accepted.group_by("api", "route_reason", "bic_source", maintain_order=True).len()
    return [
        RouteCount(api=ApiName(api), reason=reason, bic_source=bic_source, row_count=row_count)
        for api, reason, bic_source, row_count in counts.iter_rows()
    ]


class ApiLimits(NamedTuple):
    """The limits of this client at one server."""

    rate_per_s: float
    daily_cap: int | None
    used_count: int = 0
    """Of the cap, in the current window."""


class SparedChecks(NamedTuple):
    """The questions that a run would not ask, by the numbers of their checks."""

    answered: frozenset[int] = frozenset()
    """Those that have an answer in the folder of the run."""
    reused: frozenset[int] = frozenset()
    """Those that have a match in an earlier run that may be reused."""
    why_uncounted: str | None = None
    """Why the folder of the run could not be read; None where it could."""


def forecast(  # noqa: PLR0913, PLR0917 (one argument per frame or fact of the file)
    input_name: str,
    environment: Environment,
    findings: tuple[pl.DataFrame, pl.DataFrame],
    planned: tuple[pl.DataFrame, pl.DataFrame, SparedChecks],
    limits: Mapping[ApiName, ApiLimits],
    places: Places | None = None,
) -> Forecast:
    """Forecast what checking a file takes.

    Args:
        input_name: the file's name.
        environment: which kind of server would answer.
        findings: `Rejects` and `Warnings`.
        planned: `Checks` and `Assignments`, and what of the checks would not be asked.
        limits: per API that the profile has.
        places: of the rows in their file; None where they have none.
    """
    rejects, warnings = findings
    checks, assignments, spared = planned
    rows = assignments.join(checks.select("check", "api"), on="check", how="inner")
    apis = [
        _api_forecast(api, rows.filter(pl.col("api") == api), spared, limit)
        for api, limit in limits.items()
        if api in checks["api"]
    ]
    unfit = rejects.unique("row", keep="first")
    unasked_count = unfit["code"].is_in(list(UNASKED)).sum()
    return Forecast(
        environment=environment,
        input_name=input_name,
        row_count=assignments.height + unfit.height,
        accepted_count=assignments.height,
        rejected_count=unfit.height - unasked_count,
        unasked_count=unasked_count,
        apis=apis,
        saved_call_count=assignments.height - checks.height,
        rejects=[
            RejectedRow(
                row=row, place=place_text(row, places) or None, field=field, code=code, message=message
            )
            for row, field, code, message in rejects.head(ROWS_LISTED_MAX).iter_rows()
        ],
        broken_rules=_broken_rules(rejects),
        warning_count=warnings.height,
        warning_codes=_warning_counts(warnings),
        why_uncounted=spared.why_uncounted,
        places=places,
    )


def _broken_rules(rejects: pl.DataFrame) -> list[BrokenRule]:
    kinds = (
        rejects.group_by("field", "code", "message", maintain_order=True)
        .agg(pl.len().alias("row_count"), pl.col("row").head(ROWS_NAMED_MAX).alias("rows"))
        .sort("row_count", descending=True, maintain_order=True)
    )
    return [BrokenRule(**kind) for kind in kinds.iter_rows(named=True)]


def _api_forecast(api: ApiName, rows: pl.DataFrame, spared: SparedChecks, limits: ApiLimits) -> ApiForecast:
    questions = set(rows["check"])
    call_count = len(questions - spared.answered - spared.reused)
    return ApiForecast(
        api=api,
        row_count=rows.height,
        question_count=len(questions),
        answered_before_count=len(questions & spared.answered),
        reused_count=len(questions & spared.reused),
        call_count=call_count,
        rate_per_s=limits.rate_per_s,
        duration_s=call_count / limits.rate_per_s,
        daily_cap=limits.daily_cap,
        used_count=limits.used_count,
        day_count=_day_count(call_count, limits),
    )


def _day_count(call_count: int, limits: ApiLimits) -> int:
    if limits.daily_cap is None:
        return 1
    left_count = max(0, limits.daily_cap - limits.used_count)
    today = 1 if left_count else 0
    return max(1, today + ceil(max(0, call_count - left_count) / limits.daily_cap))


def _code_counts(rows: pl.DataFrame) -> list[CodeCount]:
    # The shortest reason is the one that speaks of this code alone.
    shortest = pl.col("check_reason").get(pl.col("check_reason").str.len_bytes().arg_min())
    counts = (
        rows.group_by("check_outcome", "check_code")
        .agg(
            pl.col("check_action").first(),
            shortest,
            pl.len().alias("row_count"),
            pl.col("row").head(ROWS_NAMED_MAX).alias("rows"),
        )
        .sort(
            "row_count",
            "check_code",
            pl.col("check_outcome").cast(pl.String),
            descending=[True, False, False],
        )
    )
    return [
        CodeCount(
            outcome=Outcome(outcome),
            code=code,
            action=Action(action),
            reason=reason.partition(f" {NOTE}")[0],  # which is about some of its rows
            row_count=row_count,
            rows=numbers,
        )
        for outcome, code, action, reason, row_count, numbers in counts.iter_rows()
    ]


def _warning_counts(warnings: pl.DataFrame) -> list[WarningCount]:
    counts = (
        warnings.group_by("code")
        .agg(
            pl.col("row").n_unique().alias("row_count"),
            pl.col("row").unique().sort().alias("rows"),
        )
        .iter_rows()
    )
    order = list(WarningCode)
    return sorted(
        (
            WarningCount(code=WarningCode(code), row_count=count, rows=rows[:ROWS_NAMED_MAX], every_row=rows)
            for code, count, rows in counts
        ),
        key=lambda counted: order.index(counted.code),
    )


def _attention_rows(attention: pl.LazyFrame) -> list[AttentionRow]:
    columns = ("row", "payment_id", "check_outcome", "check_code", "check_action", "check_reason")
    largest = (
        attention.select(*columns, "amount", "currency")
        .sort("amount", "row", descending=[True, False], nulls_last=True)
        .head(ROWS_LISTED_MAX)
        .collect()
    )
    return [
        AttentionRow(
            row=row,
            payment_id=payment_id,
            outcome=Outcome(outcome),
            code=code,
            action=Action(action),
            reason=reason,
            amount=None if amount is None else plain(amount),
            currency=currency,
        )
        for row, payment_id, outcome, code, action, reason, amount, currency in largest.iter_rows()
    ]


CONTROLS_MAX = 1_000


def stated_controls(message: Message) -> list[StatedControl]:
    """The control totals of a file, those that differ first; `CONTROLS_MAX` at most."""
    listed = message.controls.sort(pl.col("difference").is_null(), maintain_order=True).head(CONTROLS_MAX)
    return [StatedControl(**row) for row in listed.iter_rows(named=True)]


def set_aside(message: Message) -> list[SetAside]:
    """What a file has beside payments, by kind and code."""
    kinds = message.set_aside.group_by("kind", "code", maintain_order=True).agg("line")
    return [
        SetAside(kind=kind, code=code, row_count=len(lines), lines=lines[:ROWS_NAMED_MAX])
        for kind, code, lines in kinds.iter_rows()
    ]
