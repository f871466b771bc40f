"""forecast: a plan -> Forecast. Forecast the cost of the checks, without a call."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import ceil
from typing import NamedTuple

import polars as pl

from pipeline.rules.unasked import UNASKED
from pipeline.rules.warnings import warning_counts
from schemas.forecast import ApiForecast, BrokenRule, Forecast, RejectedRow
from schemas.localized import LocalizedText
from schemas.outcomes import ApiName, Environment
from schemas.prices import Price
from schemas.row_positions import RowPositions, position_text
from schemas.summary import ROWS_LISTED_MAX, ROWS_NAMED_MAX


class ApiLimits(NamedTuple):
    """The limits of this client at one server, and its price."""

    rate_per_s: float
    daily_cap: int | None
    used_count: int = 0  # calls counted against the cap in the current window
    price: Price | None = None  # per call; None if unknown


class SparedChecks(NamedTuple):
    """The questions that a run would skip, by check number."""

    answered: frozenset[int] = frozenset()  # checks with an answer in the run's folder
    reused: frozenset[int] = frozenset()  # checks with a reusable match of an earlier run
    why_uncounted: LocalizedText | None = None  # why the run's folder could not be read, or None


class QuestionCounts(NamedTuple):
    """The rows and questions of an API."""

    row_count: int
    question_count: int
    answered_count: int = 0  # questions with an answer in the run's folder
    reused_count: int = 0  # questions with a reusable match of an earlier run
    call_count: int | None = None  # questions left; None: all


def counts_by_api(
    checks: pl.DataFrame, assignments: pl.DataFrame, spared: SparedChecks
) -> dict[ApiName, QuestionCounts]:
    """Rows and questions of each API, from `Checks`, `Assignments`, and the checks that are not asked."""
    found = {}
    rows = assignments.join(checks.select("check", "api"), on="check", how="inner")
    for (api,), some in rows.group_by("api"):
        questions = set(some["check"])
        found[ApiName(api)] = QuestionCounts(
            some.height,
            len(questions),
            len(questions & spared.answered),
            len(questions & spared.reused),
            len(questions - spared.answered - spared.reused),
        )
    return found


def forecast(  # noqa: PLR0913 (one argument per fact about the file)
    input_name: str,
    environment: Environment,
    findings: tuple[pl.DataFrame, pl.DataFrame],
    counts: Mapping[ApiName, QuestionCounts],
    limits: Mapping[ApiName, ApiLimits],
    *,
    positions: RowPositions | None = None,
    why_uncounted: LocalizedText | None = None,
) -> Forecast:
    """Forecast what checking a file, with these `Rejects` and `Warnings`, takes under the APIs' limits."""
    rejects, warnings = findings
    unfit = rejects.unique("row", keep="first")
    unasked_count = unfit["code"].is_in(list(UNASKED)).sum()
    accepted_count = sum(count.row_count for count in counts.values())
    apis = _by_api(counts, limits)
    return Forecast(
        environment=environment,
        input_name=input_name,
        row_count=accepted_count + unfit.height,
        accepted_count=accepted_count,
        rejected_count=unfit.height - unasked_count,
        unasked_count=unasked_count,
        apis=apis,
        costs=_totals(apis),
        saved_call_count=accepted_count - sum(count.question_count for count in counts.values()),
        rejects=[
            RejectedRow(
                row=row, place=position_text(row, positions) or None, field=field, code=code, message=message
            )
            for row, field, code, message, _ in rejects.head(ROWS_LISTED_MAX).iter_rows()
        ],
        broken_rules=_broken_rules(rejects),
        warning_count=warnings.height,
        warning_codes=warning_counts(warnings),
        why_uncounted=why_uncounted,
        positions=positions,
    )


def under_limits(made: Forecast, limits: Mapping[ApiName, ApiLimits]) -> Forecast:
    """Return the same forecast under other limits."""
    same = ("row_count", "question_count", "answered_before_count", "reused_count", "call_count")
    counts = {one.api: QuestionCounts(*(getattr(one, name) for name in same)) for one in made.apis}
    apis = _by_api(counts, limits)
    return made.model_copy(update={"apis": apis, "costs": _totals(apis)})


def _by_api(
    counts: Mapping[ApiName, QuestionCounts], limits: Mapping[ApiName, ApiLimits]
) -> list[ApiForecast]:
    return [_api_forecast(api, counts[api], limit) for api, limit in limits.items() if api in counts]


def _broken_rules(rejects: pl.DataFrame) -> list[BrokenRule]:
    kinds = rejects.group_by("field", "code", "message", maintain_order=True).agg(
        pl.col("sentence").first(), row_count=pl.len(), rows=pl.col("row").head(ROWS_NAMED_MAX)
    )
    in_order = kinds.sort("row_count", descending=True, maintain_order=True).iter_rows(named=True)
    return [BrokenRule(**kind | {"sentence": json.loads(kind["sentence"])}) for kind in in_order]


def _api_forecast(api: ApiName, counts: QuestionCounts, limits: ApiLimits) -> ApiForecast:
    call_count = counts.question_count if counts.call_count is None else counts.call_count
    price = limits.price
    return ApiForecast(
        api=api,
        row_count=counts.row_count,
        question_count=counts.question_count,
        answered_before_count=counts.answered_count,
        reused_count=counts.reused_count,
        call_count=call_count,
        price_per_call=price,
        cost=None if price is None else price.model_copy(update={"amount": call_count * price.amount}),
        rate_per_s=limits.rate_per_s,
        duration_s=call_count / limits.rate_per_s,
        daily_cap=limits.daily_cap,
        used_count=limits.used_count,
        day_count=_day_count(call_count, limits),
    )


def _totals(apis: Iterable[ApiForecast]) -> list[Price]:
    """Return the total cost: one sum per currency, in order of appearance."""
    totals: dict[str, Decimal] = {}
    for cost in (api.cost for api in apis if api.cost is not None):
        totals[cost.currency] = totals.get(cost.currency, Decimal()) + cost.amount
    return [Price(amount=amount, currency=currency) for currency, amount in totals.items()]


def _day_count(call_count: int, limits: ApiLimits) -> int:
    if limits.daily_cap is None:
        return 1
    left_count = max(0, limits.daily_cap - limits.used_count)
    return max(1, bool(left_count) + ceil(max(0, call_count - left_count) / limits.daily_cap))
