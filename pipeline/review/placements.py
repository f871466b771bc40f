"""Split a file: Outcomes, Warned, a policy and decisions -> Placements. Every payment has one place."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from pipeline import frames
from pipeline.rules.policy import ANSWERED, verdicts
from pipeline.rules.totals import MONEY_FIELDS, totals, with_money
from pipeline.wording import Sentence
from schemas.outcomes import UNDECIDED, Outcome
from schemas.review import ControlTotal, Decision, Verdict

_VERDICT = pl.col("verdict")
_IS_HELD_BY_PERSON = pl.col("decision").is_in([Decision.HOLD, Decision.FIX]).fill_null(value=False)
_WAS_RELEASED = pl.col("released_in").is_not_null()
_IS_RELEASED_BY_PERSON = (_VERDICT != Verdict.HOLD) & pl.col("decision").eq_missing(Decision.RELEASE)
IS_RELEASED = (
    ANSWERED & ~_WAS_RELEASED & ~_IS_HELD_BY_PERSON & ((_VERDICT == Verdict.RELEASE) | _IS_RELEASED_BY_PERSON)
)
"""True if a payment may be paid. Needs `verdicts` with each row's `decision`, and the file that it was
`released_in` before; both may be null.
"""
_RELEASED_IN = {"row": frames.DECISIONS["row"], "released_in": pl.String()}


def split(
    outcomes: frames.Outcomes,
    warned: frames.Warned,
    policy: Mapping[str, Verdict],
    decisions: frames.Decisions,
    released_in: Mapping[int, str] = MappingProxyType({}),
) -> frames.Placements:
    """Decide for every payment whether it may be paid: `Placements`, one per payment, in row order.

    The verdict is as in `policy.verdicts`. A decision to hold or fix always holds the payment; one to release
    counts only if the policy leaves the row to people or releases it anyway. Payments in `released_in` (row
    -> other file) are held even against people's decisions.
    """
    assert outcomes.schema == frames.OUTCOMES
    assert warned.schema == frames.WARNED
    assert decisions.schema == frames.DECISIONS
    judged = frames.Outcomes(outcomes.select("row", "check_outcome", "check_code"))
    rows = _with(verdicts(judged, warned, policy), decisions, released_in)
    of = pl.when(_WAS_RELEASED).then("released_in").otherwise("decided_by").fill_null("")
    placements = rows.select(
        "row",
        place=pl.when(IS_RELEASED).then(pl.lit(Verdict.RELEASE.value)).otherwise(pl.lit(Verdict.HOLD.value)),
        why=pl.when(~IS_RELEASED).then(_why()),
        why_of=pl.when(~IS_RELEASED).then(of),
        decided=ANSWERED & (_IS_HELD_BY_PERSON | _IS_RELEASED_BY_PERSON),
    )
    placements = frames.cast_to(placements, frames.PLACEMENTS)
    assert placements["row"].equals(outcomes["row"])
    assert (placements["why"].is_null() == (placements["place"] == Verdict.RELEASE)).all()
    return frames.Placements(placements)


def why_held(placements: frames.Placements) -> dict[tuple[str, str], tuple[Sentence, int]]:
    """Return (`why`, `why_of`) -> (sentence on why payments are held, their number), largest number first."""
    counted = placements.drop_nulls("why").group_by("why", "why_of").len().sort("len", "why", descending=True)
    return {(why, of): (Sentence(why, of=of), count) for why, of, count in counted.iter_rows()}


def _why() -> pl.Expr:
    """Why a row is held: the key of the first sentence that applies."""
    return (
        pl.when(pl.col("check_outcome") == Outcome.REJECTED)
        .then(pl.lit("review.held_rejected"))
        .when(pl.col("check_outcome").is_in(UNDECIDED))
        .then(pl.lit("review.held_undecided"))
        .when(_WAS_RELEASED)
        .then(pl.lit("review.held_released_before"))
        .when(pl.col("decision") == Decision.HOLD)
        .then(pl.lit("review.held_by_person"))
        .when(pl.col("decision") == Decision.FIX)
        .then(pl.lit("review.held_to_correct"))
        .when(_VERDICT == Verdict.REVIEW)
        .then(pl.lit("review.held_for_person"))
        .when(pl.col("decision") == Decision.RELEASE)
        .then(pl.lit("review.held_whatever_decided"))
        .otherwise(pl.lit("review.held_by_policy"))
    )


class Preview(NamedTuple):
    """The payments that would be released, and those that would be held."""

    release: ControlTotal
    hold: ControlTotal
    refused: pl.Series  # rows that a person decided to release but the policy holds
    rows: pl.Series  # the rows to release
    overridden: pl.Series  # released rows that the policy would have held without a person's decision


def judged(
    payments: frames.Payments, outcomes: frames.Outcomes, warned: frames.Warned, policy: Mapping[str, Verdict]
) -> pl.DataFrame:
    """Return the columns for a preview: `row`, `check_outcome`, `verdict`, `amount`, `currency`."""
    found = verdicts(outcomes, warned, policy).select("row", "check_outcome", "verdict")
    return found.hstack(with_money(payments.select(MONEY_FIELDS)).select("amount", "currency").get_columns())


def preview(
    rows: pl.DataFrame, decisions: pl.DataFrame, released_in: Mapping[int, str] = MappingProxyType({})
) -> Preview:
    """Return how much would be released and held by the decisions so far; `rows` come from `judged`."""
    placed = _with(rows, decisions, released_in).with_columns(released=IS_RELEASED)
    release, hold = placed.filter("released"), placed.filter(~pl.col("released"))
    return Preview(
        release=total(release),
        hold=total(hold),
        refused=hold.filter(~_WAS_RELEASED, decision=Decision.RELEASE)["row"],
        rows=release["row"],
        overridden=release.filter(_VERDICT != Verdict.RELEASE)["row"],
    )


def _with(rows: pl.DataFrame, decisions: pl.DataFrame, released_in: Mapping[int, str]) -> pl.DataFrame:
    """Add the decision and the earlier release of each row."""
    found = rows.join(decisions, on="row", how="left", maintain_order="left")
    if not released_in:
        return found.with_columns(released_in=pl.lit(None, pl.String))
    before = pl.DataFrame([[*released_in], [*released_in.values()]], _RELEASED_IN)
    return found.join(before, on="row", how="left", maintain_order="left")


def total(mine: pl.DataFrame) -> ControlTotal:
    """Return the number and amounts of rows from `judged`."""
    return ControlTotal(row_count=mine.height, totals=totals(mine))
