"""split: Outcomes, Warned, a policy and people's decisions -> Placements. Every payment is in one place."""

from collections.abc import Mapping

import polars as pl

from pipeline.frames import DECISIONS, OUTCOMES, PLACEMENTS, WARNED
from schemas.outcomes import Outcome, WarningCode
from schemas.review import Decision, Verdict

RELEASABLE = (Outcome.MATCH, Outcome.CLOSE_MATCH, Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)
"""The outcomes that a bank gave. No policy and no person releases a row that no bank answered for."""
UNDECIDED = (Outcome.DEFERRED, Outcome.UNANSWERED)
DEFAULT_POLICY: Mapping[str, Verdict] = {
    outcome: Verdict.RELEASE if outcome is Outcome.MATCH else Verdict.HOLD for outcome in Outcome
}

_BY_STRICTNESS = (Verdict.RELEASE, Verdict.REVIEW, Verdict.HOLD)
_ANSWERED = pl.col("check_outcome").is_in(RELEASABLE)


def split(
    outcomes: pl.DataFrame, warned: pl.DataFrame, policy: Mapping[str, Verdict], decisions: pl.DataFrame
) -> pl.DataFrame:
    """Say of every payment whether it may be paid.

    Of what the policy says of the answer and of the warnings, the strictest counts. A decision to hold or
    to fix always holds. A decision to release counts where the policy leaves the row to a person, and
    nowhere else.

    Args:
        outcomes: `Outcomes`.
        warned: `Warned`.
        policy: outcome or code -> verdict, on top of `DEFAULT_POLICY`; a code goes before its outcome.
        decisions: `Decisions`.

    Returns:
        `Placements`, one per payment, in row order.
    """
    assert outcomes.schema == OUTCOMES
    assert warned.schema == WARNED
    assert decisions.schema == DECISIONS
    rows = (
        outcomes.join(decisions, on="row", how="left", maintain_order="left")
        .join(_strictest(warned, policy), on="row", how="left", maintain_order="left")
        .with_columns(
            by_code=pl.when(_ANSWERED).then(_verdict("check_code", policy)),
            by_outcome=_verdict("check_outcome", {**DEFAULT_POLICY, **policy}),
        )
        .with_columns(by_answer=pl.coalesce("by_code", "by_outcome"))
    )
    warning_decides = _strictness("by_warning") > _strictness("by_answer")
    rows = rows.with_columns(
        verdict=pl.when(warning_decides).then("by_warning").otherwise("by_answer"),
        decided_by=pl.when(warning_decides)
        .then("warning")
        .when(pl.col("by_code").is_not_null())
        .then("check_code")
        .otherwise("check_outcome"),
    )
    verdict = pl.col("verdict")
    is_held_by_person = pl.col("decision").is_in([Decision.HOLD, Decision.FIX]).fill_null(value=False)
    is_released_by_person = (verdict == Verdict.REVIEW) & pl.col("decision").eq_missing(Decision.RELEASE)
    released = _ANSWERED & ~is_held_by_person & ((verdict == Verdict.RELEASE) | is_released_by_person)
    placements = rows.select(
        "row",
        place=pl.when(released).then(pl.lit(Verdict.RELEASE.value)).otherwise(pl.lit(Verdict.HOLD.value)),
        why=pl.when(~released).then(_why()),
        decided=_ANSWERED & (is_held_by_person | is_released_by_person),
    ).select(pl.col(column).cast(kind) for column, kind in PLACEMENTS.items())
    assert placements["row"].equals(outcomes["row"])
    assert (placements["why"].is_null() == (placements["place"] == Verdict.RELEASE)).all()
    return placements


def _verdict(column: str, policy: Mapping[str, Verdict]) -> pl.Expr:
    # As plain text: of members of an enum polars would make a type that no other key fits.
    keys, verdicts = [str(key) for key in policy], [str(verdict) for verdict in policy.values()]
    return pl.col(column).cast(pl.String).replace_strict(keys, verdicts, default=None, return_dtype=pl.String)


def _strictest(warned: pl.DataFrame, policy: Mapping[str, Verdict]) -> pl.DataFrame:
    """Of each row with a warning that the policy names: the strictest verdict, and the first code with it."""
    named = {key: verdict for key, verdict in policy.items() if key in set(WarningCode)}
    found = warned.select("row", warning="code", by_warning=_verdict("code", named))
    return (
        found.drop_nulls()
        .sort(_strictness("by_warning"), descending=True, maintain_order=True)
        .unique("row", keep="first", maintain_order=True)
    )


def _strictness(column: str) -> pl.Expr:
    """0 for the mildest verdict, also where there is none."""
    ranks = {verdict.value: rank for rank, verdict in enumerate(_BY_STRICTNESS)}
    return pl.col(column).replace_strict(ranks, default=0, return_dtype=pl.Int8)


def _why() -> pl.Expr:
    """Why a row is held, the first of the reasons that apply."""
    by, verdict = "decided_by", pl.col("verdict")
    return (
        pl.when(pl.col("check_outcome") == Outcome.REJECTED)
        .then(pl.lit("The row breaks a rule and was not checked."))
        .when(pl.col("check_outcome").is_in(UNDECIDED))
        .then(pl.lit("The row is not decided yet."))
        .when(pl.col("decision") == Decision.HOLD)
        .then(pl.lit("A person decided to hold it."))
        .when(pl.col("decision") == Decision.FIX)
        .then(pl.lit("A person decided to correct it first."))
        .when(verdict == Verdict.REVIEW)
        .then(pl.format("The policy leaves {} to a person, and nobody decided to release it.", by))
        .when(pl.col("decision") == Decision.RELEASE)
        .then(pl.format("The policy holds {}, and does not leave it to a person.", by))
        .otherwise(pl.format("The policy holds {}.", by))
    )
