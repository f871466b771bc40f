"""Apply a policy to payments: release, review or hold each by its outcome, code and warnings."""

from collections.abc import Mapping

import polars as pl

from pipeline.frames import Outcomes, Warned
from schemas.outcomes import Outcome, WarningCode
from schemas.review import Verdict

RELEASABLE = (Outcome.MATCH, Outcome.CLOSE_MATCH, Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)
"""Outcomes from a bank. Neither policies nor people can release a row without a bank's answer."""
DEFAULT_POLICY: Mapping[str, Verdict] = {
    **{outcome: Verdict.RELEASE if outcome is Outcome.MATCH else Verdict.HOLD for outcome in Outcome},
    WarningCode.BANK_DIFFERS: Verdict.REVIEW,
}
ANSWERED = pl.col("check_outcome").is_in(RELEASABLE)

_AND = " and "
_BY_STRICTNESS = pl.Enum([verdict.value for verdict in (Verdict.RELEASE, Verdict.REVIEW, Verdict.HOLD)])


def verdicts(outcomes: Outcomes, warned: Warned, policy: Mapping[str, Verdict]) -> pl.DataFrame:
    """Return the verdict on each payment: the stricter one of its answer's and its warnings' verdicts.

    The outcomes, with `row`, `check_outcome` and `check_code`, get `by_answer` and `answer_key`, its outcome
    or code; `by_warning`, the strictest verdict on warnings, and these `warnings`, codes separated by spaces,
    null if the policy names none; `verdict`; and `decided_by`, its keys, joined by " and ". The policy maps
    outcome or code -> verdict, and extends `DEFAULT_POLICY`; a code outranks its outcome.
    """
    whole = {**DEFAULT_POLICY, **policy}
    by_warning = _strictest(warned, whole).lazy()
    by_code = pl.when(ANSWERED).then(_verdict("check_code", policy))
    outcome = pl.col("check_outcome").cast(pl.String)
    rows = (
        outcomes.lazy()
        .join(by_warning, on="row", how="left", maintain_order="left")
        .with_columns(by_code=by_code, by_outcome=_verdict("check_outcome", whole))
        .with_columns(
            by_answer=pl.coalesce("by_code", "by_outcome"),
            answer_key=pl.when(pl.col("by_code").is_not_null()).then("check_code").otherwise(outcome),
        )
    )
    strictness = (_strictness("by_answer"), _strictness("by_warning"))
    verdict = pl.when(strictness[1] > strictness[0]).then("by_warning").otherwise("by_answer")
    deciding = (
        pl.when(strictness[0] >= strictness[1]).then("answer_key"),
        pl.when(strictness[1] >= strictness[0]).then(pl.col("warnings").str.replace_all(" ", _AND)),
    )
    return rows.with_columns(
        verdict=verdict, decided_by=pl.concat_str(deciding, separator=_AND, ignore_nulls=True)
    ).collect()


def _verdict(column: str, policy: Mapping[str, Verdict]) -> pl.Expr:
    # Plain text: polars would turn enum members into a type that no other key fits.
    keys, chosen = [str(key) for key in policy], [str(verdict) for verdict in policy.values()]
    return pl.col(column).cast(pl.String).replace_strict(keys, chosen, default=None, return_dtype=pl.String)


def _strictest(warned: pl.DataFrame, policy: Mapping[str, Verdict]) -> pl.DataFrame:
    """Return the strictest verdict and its codes for each row with a warning that the policy names."""
    named = {key: verdict for key, verdict in policy.items() if key in set(WarningCode)}
    found = warned.select("row", warnings="code", by_warning=_verdict("code", named)).drop_nulls()
    if found.is_empty():
        return found.cast({"warnings": pl.String})
    strictness = _strictness("by_warning")
    return (
        found.filter(strictness == strictness.max().over("row"))
        .group_by("row", maintain_order=True)
        .agg(pl.col("warnings").unique(maintain_order=True).str.join(" "), pl.col("by_warning").first())
    )


def _strictness(column: str) -> pl.Expr:
    """Return the strictness of verdicts; 0 for the mildest or null."""
    return pl.col(column).cast(_BY_STRICTNESS).to_physical().fill_null(0)
