"""Payments that may be paid twice, each beside the earlier one that it repeats."""

from typing import NamedTuple

import polars as pl

from pipeline.reports.groups import Row, numbered
from pipeline.rules.warnings import earlier_row
from schemas.outcomes import WarningCode
from schemas.summary import Summary

PAIRS_MAX = 50


class Pair(NamedTuple):
    """Two payments that are equal."""

    earlier: Row
    again: Row


def pairs(summary: Summary, rows: pl.DataFrame) -> list[Pair]:
    """The repeated payments, in row order, each with the first equal one; at most `PAIRS_MAX`.

    Args:
        summary: of the run.
        rows: as `groups.pending` takes them.
    """
    found = [
        (earlier, warning.row)
        for warning in summary.warnings
        if warning.code == WarningCode.PAYMENT_REPEATED
        and (earlier := earlier_row(warning.message)) is not None
    ][:PAIRS_MAX]
    shown = numbered(rows, [number for pair in found for number in pair], summary.input.places)
    return [Pair(*pair) for pair in zip(shown[::2], shown[1::2], strict=True)]


def repeated_count(summary: Summary) -> int:
    """Payments that repeat an earlier one and may be paid twice."""
    return sum(
        count.row_count for count in summary.warning_codes if count.code is WarningCode.PAYMENT_REPEATED
    )
