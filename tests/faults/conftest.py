"""The fault table: each test tries one row of it with real parts, and says what it saw.

`make faults` runs the short form, `make faults-long` the nightly one, and both print one line per
row: tried, survived, figure, goal. With `--write-figures` the lines go into docs/proof/faults.md.
"""

import os
import platform
import random
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from desk import WARM, Desk

PAGE = Path(__file__).parents[2] / "docs" / "proof" / "faults.md"
MARK, END = "<!-- figures -->", "<!-- end -->"


@dataclass(frozen=True)
class Line:
    """What came of one row of the table."""

    row: str  # such as A1
    what: str
    tried: int
    survived: int
    figure: str  # what was measured, in words with a number
    goal: str

    @property
    def cells(self):
        return (self.row, self.what, f"{self.tried:,}", f"{self.survived:,}", self.figure, self.goal)


HEADERS = ("row", "fault", "tried", "survived", "figure", "goal")
LINE = "line of the fault table"
"""What a report calls it on its way from the process that ran the test."""


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="the nightly form of the fault table")
    parser.addoption(
        "--write-figures", action="store_true", help="write the figures into docs/proof/faults.md"
    )


def pytest_configure(config):
    config.pluginmanager.register(Table(config), "fault-table")


def pytest_collection_modifyitems(items):
    here = str(Path(__file__).parent) + os.sep
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.faults)


@pytest.fixture(autouse=True, scope="session")
def _real_starts():
    """Every command of the table is started as users start it, and so are the children of the program."""
    Desk.is_warm = False
    os.environ["PYTHONPATH"] = WARM.inherited


@pytest.fixture
def is_long(request):
    """Whether this is the nightly form."""
    return request.config.getoption("--long")


@pytest.fixture
def chance(request):
    """A seed that is told when the test fails: run again with it by hand."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed of {request.node.name}: {seed}")  # noqa: T201 (pytest shows it for a failure)
    return random.Random(seed)


@pytest.fixture(scope="session")
def clock():
    return time.monotonic


@pytest.fixture
def tell(request):
    """Put a line into the table, then fail unless everything that was tried was survived.

    The line is kept whether it holds or not: a table without its bad rows would be a lie.
    """

    def put(row, what, *, tried, survived, figure, goal):
        line = Line(row, what, tried, survived, figure, goal)
        request.node.user_properties.append((LINE, asdict(line)))
        assert tried > 0, f"{row}: nothing was tried"
        assert survived == tried, f"{row} {what}: {survived} of {tried} survived; {figure}; goal: {goal}"

    return put


def in_order(line):
    return line.row[0], int(line.row[1:] or 0), line.what


class Table:
    """The lines of all tests, from whichever process they come, and how they are shown."""

    def __init__(self, config):
        self._config = config
        self._lines = []

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self._lines += [Line(**line) for name, line in report.user_properties if name == LINE]

    def pytest_terminal_summary(self, terminalreporter):
        if not self._lines:
            return
        lines = sorted(self._lines, key=in_order)
        rows = [HEADERS, *(line.cells for line in lines)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
        terminalreporter.section("fault table")
        for row in rows:
            terminalreporter.write_line(
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            )
        if self._config.getoption("--write-figures"):
            PAGE.write_text(page_with(lines, long=self._config.getoption("--long")), "utf-8")


def page_with(lines, *, long):
    """The page, with these lines in the place of the last ones."""
    head, _, rest = PAGE.read_text("utf-8").partition(MARK)
    _, _, tail = rest.partition(END)
    form = "nightly" if long else "short"
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    made = f"Written by `make faults` on {when}: {form} form, Python {platform.python_version()}."
    table = ["| " + " | ".join(HEADERS) + " |", "|" + " --- |" * len(HEADERS)]
    table += ["| " + " | ".join(cell.replace("|", "\\|") for cell in line.cells) + " |" for line in lines]
    return f"{head}{MARK}\n\n{made}\n\n" + "\n".join(table) + f"\n\n{END}{tail}"
