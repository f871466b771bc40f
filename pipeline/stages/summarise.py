"""summarise: all results -> Summary, the source of all reports."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from pipeline import frames
from pipeline.formats.batches import batch_totals
from pipeline.rules.policy import ANSWERED, RELEASABLE
from pipeline.rules.responder_bics import bank_identifiers
from pipeline.rules.totals import outcome_totals, outcomes_with_money, plain
from pipeline.rules.warnings import warning_counts
from schemas import summary
from schemas.changes import BankOutcomes
from schemas.outcomes import ABOUT_THE_PAYEE, UNDECIDED, Action, ApiName, Environment, Outcome, WarningCode

_NEEDS_ATTENTION = pl.col("check_outcome").is_in([Outcome.NO_MATCH, Outcome.NOT_POSSIBLE])
"""True if a person must review the row before payment."""
_REPEATS = (
    pl.when(code=WarningCode.PAYMENT_REPEATED)
    .then(pl.col("sentence").str.json_path_match("$[1].row"))
    .cast(pl.Int64)
)
"""The row of the earlier payment that a warning is about; null for other warnings."""
_IS_MATCH = pl.col("check_outcome") == Outcome.MATCH
_IS_UNDECIDED = pl.col("check_outcome").is_in(list(UNDECIDED))


def of_run(header: Mapping[str, Any], *, is_left: bool) -> dict[str, Any]:
    """Return the fields of `Summary` about the whole run; `next_step` only if rows are left for later."""
    is_simulated = header["environment"] is Environment.SANDBOX
    return {**header, "simulated": is_simulated, "next_step": header["next_step"] if is_left else None}


def summarise(  # noqa: PLR0913 (parts of a data set count their banks first)
    header: Mapping[str, Any],
    payments: frames.Payments,
    outcomes: frames.Outcomes,
    warnings: frames.Warnings,
    calls: Iterable[summary.ApiCalls],
    *,
    batches: pl.DataFrame | None = None,
    banks: pl.DataFrame | None = None,
) -> summary.Summary:
    """Count rows and money by outcome and bank; `header` is as for `of_run`, `batches` by `batch_places`."""
    assert payments.schema == frames.PAYMENTS
    assert outcomes.schema == frames.OUTCOMES
    assert warnings.schema == frames.WARNINGS
    rows = outcomes_with_money(payments, outcomes)
    assert rows.height == payments.height == outcomes.height
    calls = list(calls)
    of_batches = batch_totals(pl.DataFrame() if batches is None else batches, rows)
    about_payee = warnings.filter(pl.col("code").is_in(ABOUT_THE_PAYEE))["row"]
    asked_count, undecided_count, attention_count, warned_match_count = rows.select(
        (pl.col("check_api") != ApiName.BANK_REPORT).sum(),
        _IS_UNDECIDED.sum(),
        _NEEDS_ATTENTION.sum().alias("attention"),
        _IS_MATCH.and_(frames.is_row_in(about_payee)).sum().alias("warned"),
    ).row(0)
    return summary.Summary(
        **of_run(header, is_left=undecided_count > 0),
        outcomes=outcome_totals(rows),
        codes=_code_counts(rows),
        batches=of_batches.listed,
        batch_count=of_batches.batch_count,
        **listed_banks(bank_counts(payments, outcomes) if banks is None else banks),
        calls=calls,
        saved_call_count=asked_count - sum(call.question_count for call in calls),
        attention=_attention_rows(rows.lazy().filter(_NEEDS_ATTENTION)),
        attention_count=attention_count,
        warnings=[
            summary.WarningRow(row=row, code=code, message=message, repeats=repeats)
            for row, code, message, repeats in warnings.head(summary.ROWS_LISTED_MAX)
            .select("row", "code", "message", _REPEATS)
            .iter_rows()
        ],
        warning_count=warnings.height,
        warning_codes=warning_counts(warnings),
        warned_match_count=warned_match_count,
        complete=undecided_count == 0,
    )


def route_counts(accepted: pl.DataFrame) -> list[summary.RouteCount]:
    """Count the routes of `Accepted` payments."""
    assert accepted.schema == frames.ACCEPTED
    counts = accepted.group_by("api", "route_reason", "bic_source", maintain_order=True).len()
    return [
        summary.RouteCount(api=ApiName(api), reason=reason, bic_source=bic_source, row_count=row_count)
        for api, reason, bic_source, row_count in counts.iter_rows()
    ]


def _code_counts(rows: pl.DataFrame) -> list[summary.CodeCount]:
    # The shortest reason concerns only this code.
    shortest = pl.col("check_reason").get(pl.col("check_reason").str.len_bytes().arg_min())
    counts = (
        rows.group_by("check_outcome", "check_code")
        .agg(
            pl.col("check_action").first(),
            shortest,
            row_count=pl.len(),
            rows=pl.col("row").head(summary.ROWS_NAMED_MAX),
        )
        .sort(-pl.col("row_count").cast(pl.Int64), "check_code", pl.col("check_outcome").cast(pl.String))
    )
    return [
        summary.CodeCount(
            outcome=Outcome(outcome),
            code=code,
            action=Action(action),
            reason=reason.partition(f" {frames.NOTE}")[0],  # the note concerns only some rows
            row_count=row_count,
            rows=numbers,
        )
        for outcome, code, action, reason, row_count, numbers in counts.iter_rows()
    ]


def bank_counts(payments: frames.Payments, outcomes: frames.Outcomes) -> pl.DataFrame:
    """Count the answers of each bank as in `BankOutcomes`; some banks are stricter than others."""
    rows = pl.select(bank=bank_identifiers(payments), check_outcome=outcomes["check_outcome"])
    answered = rows.filter(ANSWERED, pl.col("bank").is_not_null()).group_by("bank")
    counted = {f"{outcome}_count": (pl.col("check_outcome") == outcome).sum() for outcome in RELEASABLE}
    return answered.agg(answered_count=pl.len(), **counted)


def listed_banks(counts: pl.DataFrame) -> dict[str, Any]:
    """Return fields of `Summary`: the banks with the most answers, and the number of banks."""
    # Twenty times as fast as sorting hundreds of thousands of rows.
    most = counts.top_k(summary.ROWS_LISTED_MAX, by=["answered_count", "bank"], reverse=[False, True])
    listed = most.sort("answered_count", "bank", descending=[True, False])
    banks = [BankOutcomes(**bank) for bank in listed.iter_rows(named=True)]
    return {"banks": banks, "bank_count": counts.height}


def _attention_rows(attention: pl.LazyFrame) -> list[summary.AttentionRow]:
    columns = ("row", "payment_id", "check_outcome", "check_code", "check_action", "check_reason")
    largest = (
        attention.select(*columns, "amount", "currency")
        .sort("amount", "row", descending=[True, False], nulls_last=True)
        .head(summary.ROWS_LISTED_MAX)
        .collect()
    )
    return [
        summary.AttentionRow(
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
