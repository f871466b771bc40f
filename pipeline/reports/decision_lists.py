"""The lists of decisions in a workbook: beside each row those that can be followed."""

from collections.abc import Sequence

from xlsxwriter.worksheet import Worksheet

from pipeline.reports.choices import OfferedDecisions, RowSpan

RANGES_MAX = 100
"""Of cells in one list, as programs are slow with one that is in thousands of places."""
_TITLE = "Decision"


def write_lists(page: Worksheet, at: int, runs: Sequence[RowSpan], *, first_line: int) -> None:
    """Offer what can be followed, in one column.

    Args:
        page: the sheet.
        at: the column, counted from 0.
        runs: the choices of its rows, in their order.
        first_line: of the first row, counted from 0.
    """
    ranges: dict[OfferedDecisions, list[list[int]]] = {}
    for run in runs:
        ranges.setdefault(run.choice, []).append([first_line + run.first, at, first_line + run.last, at])
    for choice, cells in ranges.items():
        for start in range(0, len(cells), RANGES_MAX):
            some = cells[start : start + RANGES_MAX]
            failed = page.data_validation(*some[0], {**_list(choice), "other_cells": some[1:]})
            assert not failed, "the list is longer than a spreadsheet takes"


def _list(choice: OfferedDecisions) -> dict[str, str | list[str]]:
    words = [word.value for word in choice.words]
    shown: dict[str, str | list[str]] = {
        "validate": "list",
        "source": words,
        # Who has changed the policy since may write what it can follow now.
        "error_type": "stop" if choice.is_final else "warning",
        "error_title": _TITLE,
        "error_message": choice.why or f"Choose one of {', '.join(words)}.",
    }
    if choice.why:
        shown |= {"input_title": _TITLE, "input_message": choice.why}
    return shown
