"""What was odd about some rows and changed no outcome: the warnings of a run, in words for its reports."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.reports.groups import REASON_CHARS_MAX, shown
from schemas.outcomes import WarningCode
from schemas.summary import Summary, WarningRow

ODDITIES_MAX = 20
ROWS_NAMED_MAX = 10


class Oddity(NamedTuple):
    """What was odd about some rows."""

    message: str
    rows: str
    """The numbers of the first of them."""


def oddities(warnings: Iterable[WarningRow]) -> list[Oddity]:
    """Each thing that was odd, once, with its rows; not more than a person reads."""
    rows: dict[str, list[int]] = {}
    for warning in warnings:
        rows.setdefault(warning.message, []).append(warning.row)
    return [
        Oddity(shown(message, REASON_CHARS_MAX), _numbers(numbers))
        for message, numbers in list(rows.items())[:ODDITIES_MAX]
    ]


def repeated_count(summary: Summary) -> int:
    """Payments that say the same as an earlier one, which may be paid twice."""
    return sum(
        count.row_count for count in summary.warning_codes if count.code is WarningCode.PAYMENT_REPEATED
    )


def _numbers(rows: Sequence[int]) -> str:
    """Row numbers, the first of them where they are many."""
    named = ", ".join(f"{row:,}" for row in rows[:ROWS_NAMED_MAX])
    return named if len(rows) <= ROWS_NAMED_MAX else f"{named} and {len(rows) - ROWS_NAMED_MAX:,} more"
