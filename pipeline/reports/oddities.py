"""What was odd about some rows and changed no outcome: the warnings of a run, in words for its reports."""

from collections.abc import Iterable
from typing import NamedTuple

from pipeline.reports.groups import REASON_CHARS_MAX, shown
from pipeline.reports.terminal import which_rows
from schemas.places import Places
from schemas.summary import WarningRow

ODDITIES_MAX = 20


class Oddity(NamedTuple):
    """What was odd about some rows."""

    message: str
    rows: str
    """Which: "row 2 (line 3)", or the first of them, "rows 2, 5 (lines 3, 6)"."""


def oddities(warnings: Iterable[WarningRow], places: Places | None) -> list[Oddity]:
    """Each thing that was odd, once, with its rows and their places; not more than a person reads."""
    rows: dict[str, list[int]] = {}
    for warning in warnings:
        rows.setdefault(warning.message, []).append(warning.row)
    return [
        Oddity(shown(message, REASON_CHARS_MAX), which_rows(numbers, places=places))
        for message, numbers in list(rows.items())[:ODDITIES_MAX]
    ]
