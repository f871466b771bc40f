"""What was odd about some rows and changed no outcome: the warnings of a run, in words for its reports."""

from collections.abc import Iterable
from typing import NamedTuple

from pipeline.reports.groups import REASON_CHARS_MAX, shown
from pipeline.reports.wording import which_rows
from schemas.places import Places
from schemas.summary import WarningRow

LINES_MAX = 20


class WarningLine(NamedTuple):
    """What was odd about some rows."""

    message: str
    rows: str
    """Which: "row 2 (line 3)", or the first of them, "rows 2, 5 (lines 3, 6)"."""


def warning_lines(warnings: Iterable[WarningRow], places: Places | None) -> list[WarningLine]:
    """Each thing that was odd, once, with its rows and their places; not more than a person reads."""
    rows: dict[str, list[int]] = {}
    for warning in warnings:
        rows.setdefault(warning.message, []).append(warning.row)
    return [
        WarningLine(shown(message, REASON_CHARS_MAX), which_rows(numbers, places=places))
        for message, numbers in list(rows.items())[:LINES_MAX]
    ]
