"""The figures of earlier days in one file: today's are compared with it, and `draw` makes a picture of it."""

import csv
import re
import sys
from collections import defaultdict
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import NamedTuple

from table import Figure

DEV = Path(__file__).parents[2] / "docs" / "dev"
FILE, DRAWING = DEV / "figures.csv", DEV / "figures.svg"
COLUMNS = ("date", "loop_ms", "figure", "value", "unit")
_MEASURED = re.compile(r"(?P<share>1/)?(?P<number>\d[\d,]*(?:\.\d+)?)\s*(?P<unit>%|[A-Za-z][A-Za-z ]*)?")
_GOAL = re.compile("(?:at most|under) (?P<most>.*)")
GOALS_LOOP_MS = 68
"""What the loop of `evenness` takes on the machine for which the goals of times were set."""
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "CPU s": 1.0}
_SIZES = {"KiB", "MiB", "KB", "MB"}
_RATIO = "times"
WIDTH, HEIGHT, LEFT = 900, 26, 560
STYLE = """<style>
text { fill: #333; font-size: 12px }
polyline { fill: none; stroke: #1a6; stroke-width: 1.5 } circle { fill: #1a6 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } }
</style>"""


class Value(NamedTuple):
    """A measured figure as a number. Less is better."""

    number: float
    unit: str


def value_of(figure):
    """The number of a figure, or None for one that only its goal can judge (a rate, a share, a count)."""
    found = _MEASURED.match(figure.measured)
    if found is None:
        return None
    number, unit = float(found["number"].replace(",", "")), (found["unit"] or "").strip()
    if unit in _TIMES:
        return Value(number * _TIMES[unit], "s")
    if unit in _SIZES:
        return Value(number, unit)
    if not unit and "multiple" in figure.what:
        return Value(1 / number if found["share"] else number, _RATIO)
    return None


def judged(figure, loop_ms):
    """The figure, its times held against their goals as on the machine for which these were set."""
    of_each = zip(figure.measured.split(", "), figure.goal.split(", "), strict=False)
    pairs = [(value_of(figure._replace(measured=part)), _GOAL.match(goal)) for part, goal in of_each]
    if figure.holds or not any(value and goal and value.unit == "s" for value, goal in pairs):
        return figure
    return figure._replace(holds=all(_is_within(*pair, loop_ms / GOALS_LOOP_MS) for pair in pairs))


def _is_within(value, goal, slowness):
    if value is None or goal is None:
        return False
    most = value_of(Figure("", goal["most"], ""))
    return value.number / (slowness if value.unit == "s" else 1.0) <= most.number


def names_of(figures):
    """Each figure under a name of its own: without what is in brackets; dots stand for the line above."""
    head = ""
    for figure in figures:
        what = figure.what.split(" (")[0]
        if what.startswith("... "):
            yield f"{head}: {what[4:]}", figure
        else:
            head = what
            yield what, figure


def last():
    """The latest value of each figure and the milliseconds of the loop on that day."""
    if not FILE.exists():
        return {}
    with FILE.open(newline="") as file:
        return {
            row["figure"]: (Value(float(row["value"]), row["unit"]), float(row["loop_ms"]))
            for row in csv.DictReader(file)
        }


def against_last(figures, loop_ms):
    """Each figure with how much it is of its last value, or None where there is none to compare."""
    before = last()
    for name, figure in names_of(figures):
        value, (old, old_loop_ms) = value_of(figure), before.get(name, (None, 0.0))
        if value is None or old is None or old.unit != value.unit or not old.number:
            yield figure, None
            continue
        speed = loop_ms / old_loop_ms if value.unit == "s" else 1.0
        yield figure, value.number / old.number / speed


def append(figures, loop_ms):
    """Add today's figures to the file."""
    values = ((name, value_of(figure)) for name, figure in names_of(figures))
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    is_new = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS] if is_new else [])
        writer.writerows(
            (today, f"{loop_ms:.0f}", name, f"{value.number:.6g}", value.unit)
            for name, value in values
            if value
        )


def draw():
    """Draw each figure over the days as a line, the speed of the machine taken out."""
    series = defaultdict(list)
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            scale = float(row["loop_ms"]) if row["unit"] == "s" else 1.0
            series[row["figure"]].append((float(row["value"]) / scale, row))
    size = f'width="{WIDTH}" height="{HEIGHT * len(series) + 10}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        STYLE,
    ]
    for position, (name, days) in enumerate(series.items()):
        top = HEIGHT * position + 5
        most = max(number for number, _ in days)
        points = [
            (LEFT + (WIDTH - LEFT - 110) * at / max(len(days) - 1, 1), top + HEIGHT - 6 - 16 * number / most)
            for at, (number, _) in enumerate(days)
        ]
        newest = days[-1][1]
        lines += [
            f'<text x="4" y="{top + 17}">{escape(name[:86])}</text>',
            f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>',
            f'<circle cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="2.5"/>',
            f'<text x="{WIDTH - 100}" y="{top + 17}">{float(newest["value"]):.3g} {newest["unit"]}</text>',
        ]
    DRAWING.write_text("\n".join([*lines, "</svg>"]) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(draw())
