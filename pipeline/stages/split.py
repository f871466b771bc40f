"""split: Outcomes, a policy and people's decisions -> Placements. Every payment is in one place."""

from collections.abc import Mapping

import polars as pl

from pipeline.frames import DECISIONS, OUTCOMES, PLACEMENTS
from schemas.outcomes import Outcome
from schemas.review import Decision, Verdict

RELEASABLE = (Outcome.MATCH, Outcome.CLOSE_MATCH, Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)
"""The outcomes that a bank gave. No policy and no person releases a row that no bank answered for."""
UNDECIDED = (Outcome.DEFERRED, Outcome.UNANSWERED)
DEFAULT_POLICY: Mapping[str, Verdict] = {
    outcome: Verdict.RELEASE if outcome is Outcome.MATCH else Verdict.HOLD for outcome in Outcome
}

_ANSWERED = pl.col("check_outcome").is_in(RELEASABLE)


def split(outcomes: pl.DataFrame, policy: Mapping[str, Verdict], decisions: pl.DataFrame) -> pl.DataFrame:
    """Say of every payment whether it may be paid.

    A decision to hold or to fix always holds. A decision to release counts where the policy leaves
    the row to a person, and nowhere else.

    Args:
        outcomes: `Outcomes`.
        policy: outcome or code -> verdict, on top of `DEFAULT_POLICY`; a code goes before its outcome.
        decisions: `Decisions`.

    Returns:
        `Placements`, one per payment, in row order.
    """
    assert outcomes.schema == OUTCOMES
    assert decisions.schema == DECISIONS
    rows = outcomes.join(decisions, on="row", how="left", maintain_order="left").with_columns(
        by_code=pl.when(_ANSWERED).then(_verdict("check_code", policy)),
        by_outcome=_verdict("check_outcome", {**DEFAULT_POLICY, **policy}),
    )
    verdict = pl.coalesce("by_code", "by_outcome")
    is_held_by_person = pl.col("decision").is_in([Decision.HOLD, Decision.FIX]).fill_null(value=False)
    is_released_by_person = (verdict == Verdict.REVIEW) & pl.col("decision").eq_missing(Decision.RELEASE)
    released = _ANSWERED & ~is_held_by_person & ((verdict == Verdict.RELEASE) | is_released_by_person)
    placements = rows.select(
        "row",
        place=pl.when(released).then(pl.lit(Verdict.RELEASE.value)).otherwise(pl.lit(Verdict.HOLD.value)),
        why=pl.when(~released).then(_why(verdict)),
        decided=_ANSWERED & (is_held_by_person | is_released_by_person),
    ).select(pl.col(column).cast(kind) for column, kind in PLACEMENTS.items())
    assert placements["row"].equals(outcomes["row"])
    assert (placements["why"].is_null() == (placements["place"] == Verdict.RELEASE)).all()
    return placements


def _verdict(column: str, policy: Mapping[str, Verdict]) -> pl.Expr:
    # As plain text: of members of an enum polars would make a type that no other key fits.
    keys, verdicts = [str(key) for key in policy], [str(verdict) for verdict in policy.values()]
    return pl.col(column).cast(pl.String).replace_strict(keys, verdicts, default=None, return_dtype=pl.String)


def _why(verdict: pl.Expr) -> pl.Expr:
    """Why a row is held, the first of the reasons that apply."""
    by = pl.when(pl.col("by_code").is_not_null()).then("check_code").otherwise("check_outcome")
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
