"""Decide which payments make their payee's account known to the next run: those that were safe to pay.

A payment was safe to pay if the last `precheck split` released it or, without a split, if a bank answered
with a match. A changed account also needs a person's release. Known accounts stay known.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

import polars as pl

from pipeline.frames import KEPT_PAYEES, PAYEE_KEYS, is_row_in
from pipeline.rules.payees import KEYED
from schemas.outcomes import Outcome, WarningCode


class PayeeStatus(StrEnum):
    """What a run knew about a payee and its account when it ended; later decisions are applied to it."""

    BEFORE = "before"  # unchanged since an earlier run
    MATCH = "match"  # new, and a bank confirmed it
    UNMATCHED = "unmatched"  # new, and no bank confirmed it
    CHANGED = "changed"  # another account than before
    CARRIED = "carried"  # known from an earlier run, but contradicted by this payment
    CARRIED_UNSURE = "carried unsure"  # the same, but the earlier run was unsure


CARRIED = (PayeeStatus.CARRIED, PayeeStatus.CARRIED_UNSURE)
IS_CARRIED = pl.col("known").is_in(list(CARRIED))


class DecidedRows(NamedTuple):
    """Rows that were released or held after a run's end."""

    released: Collection[int] = ()  # by a person
    held: Collection[int] | None = None  # by the last `precheck split`; None if there was none


def payee_statuses(rows: pl.Series, outcomes: pl.DataFrame, changes: pl.DataFrame | None) -> pl.Series:
    """Return the `PayeeStatus` of payments, as `known`; `changes` is None if nothing could be compared."""
    is_match = is_row_in(outcomes.filter(check_outcome=Outcome.MATCH)["row"])
    known = pl.when(is_match).then(_literal(PayeeStatus.MATCH)).otherwise(_literal(PayeeStatus.UNMATCHED))
    if changes is not None:
        is_changed = is_row_in(changes.filter(code=WarningCode.ACCOUNT_CHANGED)["row"])
        as_before = pl.when(is_row_in(changes["row"])).then(known).otherwise(_literal(PayeeStatus.BEFORE))
        known = pl.when(is_changed).then(_literal(PayeeStatus.CHANGED)).otherwise(as_before)
    return pl.DataFrame({"row": rows}).select(known=known).to_series()


class Knowledge(NamedTuple):
    """The payees that a run knows after all decisions."""

    known: pl.DataFrame  # `PayeeKeys`
    unsure: pl.DataFrame  # `PayeeKeys` of payments that contradict nothing
    carried: pl.DataFrame  # `KeptPayees` of earlier runs


def knowledge(kept: pl.DataFrame, decided: DecidedRows) -> Knowledge:
    """Return what a run knows after all decisions, what is unsure, and what other runs knew."""
    assert kept.schema == KEPT_PAYEES
    known = pl.col("known")
    if decided.held is None:
        is_good_to_go = known == PayeeStatus.MATCH
    else:
        is_new = known.is_in([PayeeStatus.MATCH, PayeeStatus.UNMATCHED])
        is_good_to_go = is_new & ~is_row_in(_rows(decided.held))
    is_released = is_row_in(_rows(decided.released))
    own, carried = kept.filter(~IS_CARRIED), kept.filter(IS_CARRIED)
    is_known = (known == PayeeStatus.BEFORE) | is_good_to_go | is_released
    sure = own.filter(is_known)
    carried = carried.join(sure, on="row", how="anti")
    # Carried keys outrank the payment that contradicts them.
    unsure = own.filter(~is_known).join(carried, on="row", how="anti")
    return Knowledge(keys_once(sure), keys_once(unsure), carried)


def keys_once(kept: pl.DataFrame) -> pl.DataFrame:
    """Return `PayeeKeys` of `KeptPayees`, without those that a later row repeats."""
    return kept.select(list(PAYEE_KEYS)).unique(KEYED, keep="last", maintain_order=True)


def kept_once(kept: pl.DataFrame) -> pl.DataFrame:
    """Drop `KeptPayees` that a later row repeats, regardless of the decisions about them."""
    assert kept.schema == KEPT_PAYEES
    is_settled = pl.col("known") == PayeeStatus.BEFORE
    settled = kept.filter(is_settled).unique(KEYED, keep="last", maintain_order=True)
    return pl.concat([settled, kept.filter(~is_settled)])


def _literal(status: PayeeStatus) -> pl.Expr:
    return pl.lit(status.value)


def _rows(rows: Collection[int]) -> pl.Series:
    return pl.Series(list(rows), dtype=pl.UInt32)
