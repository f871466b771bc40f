"""A figure, its goal, and the table of them."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "dev" / "performance.md"
WORSE_MAX = 1.10
"""A figure as a multiple of its last one, the speed of the machine taken out: above that it is worse."""
MARK, END = "<!-- figures -->", "<!-- end -->"


class Figure(NamedTuple):
    """What was measured."""

    what: str
    measured: str
    goal: str
    """Empty for a figure that only gives the others their scale."""
    holds: bool = True


def spread(values, unit, *, decimals=0):
    """The median of several values, and the least and the largest of them."""
    low, middle, high = (f"{value:,.{decimals}f}" for value in (min(values), median(values), max(values)))
    return f"{middle} {unit}" + (f" ({low} to {high})" if len(values) > 1 else "")


HEADERS = ("figure", "measured", "goal", "", "of the last")


def _rows(compared):
    for figure, ratio in compared:
        verdict = "" if not figure.goal else "ok" if figure.holds else "SHORT"
        beside = "" if ratio is None else f"{ratio:.2f}" + (" WORSE" if ratio > WORSE_MAX else "")
        yield figure.what, figure.measured, figure.goal, verdict, beside


def printed(compared):
    """The table as text.

    Args:
        compared: each figure with its ratio to the last one, as `history.against_last` gives them.
    """
    rows = [HEADERS, *_rows(compared)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def write_page(compared):
    """Put the table into the page, in the place of the last one."""
    head, _, rest = PAGE.read_text("utf-8").partition(MARK)
    _, _, tail = rest.partition(END)
    made = (
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, client and server on the same machine."
    )
    table = ["| " + " | ".join(HEADERS) + " |", "| --- | --- | --- | --- | --- |"]
    table += ["| " + " | ".join(row) + " |" for row in _rows(compared)]
    PAGE.write_text(f"{head}{MARK}\n\n{made}\n\n" + "\n".join(table) + f"\n\n{END}{tail}", "utf-8")
