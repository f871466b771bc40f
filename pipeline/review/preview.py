"""What the decisions on a run would come to, found before anything is written."""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from pipeline.frames import Decisions, Outcomes, Payments, Placements, Warned
from pipeline.review.placements import split
from pipeline.rules.totals import totals, with_money
from schemas.review import ControlTotal, Decision, Verdict


class Preview(NamedTuple):
    """Where each payment of a run would go."""

    placements: Placements
    release: ControlTotal
    hold: ControlTotal
    refused: pl.Series
    """Rows that a person decided to release, and that stay held."""


def preview(
    payments: Payments,
    outcomes: Outcomes,
    warned: Warned,
    policy: Mapping[str, Verdict],
    decisions: Decisions,
) -> Preview:
    """Find where each payment would go by a policy and by what people decided so far.

    Args:
        payments: `Payments`.
        outcomes: `Outcomes`, row by row the same.
        warned: `Warned`.
        policy: as `split` takes it.
        decisions: `Decisions`.
    """
    placements = split(outcomes, warned, policy, decisions)
    to_release = decisions.filter(decision=Decision.RELEASE)["row"]
    held = placements.filter(place=Verdict.HOLD)["row"]
    return Preview(
        placements,
        release=_total(payments, placements, Verdict.RELEASE),
        hold=_total(payments, placements, Verdict.HOLD),
        refused=to_release.filter(to_release.is_in(held.implode())),
    )


def _total(payments: pl.DataFrame, placements: pl.DataFrame, place: Verdict) -> ControlTotal:
    mine = Payments(payments.filter(placements["place"] == place))
    return ControlTotal(row_count=mine.height, totals=totals(with_money(mine)))
