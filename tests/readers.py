"""The report page in a real browser, as opened from a mail: a file, no network, no mouse needed.

A pytest plugin: tests/conftest.py loads it.
"""

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from desk import Desk

from pipeline.reports.page import page
from pipeline.rules.totals import outcome_totals, outcomes_with_money
from schemas.strict import parse
from schemas.summary import InputFile, Summary

SAMPLE = Path(__file__).resolve().parents[1] / "sample_data" / "payments_mixed.csv"
CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).resolve().parents[1] / ".cache" / "axe-core" / "axe.min.js"
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="no axe-core; `make tools` fetches it")
WAIT_MAX_MS = 10_000
SCREEN = {"width": 1280, "height": 900}
INPUT = {
    "name": "payments.csv", "sha256": "0" * 64, "byte_count": 1, "row_count": 1, "format": "csv",
    "encoding": "utf-8", "columns": {},
}  # fmt: skip
SUMMARY = json.dumps({
    "tool_version": "0", "profile": "main", "environment": "production", "simulated": False,
    "started": "2030-01-02T03:04:05.678Z", "finished": "2030-01-02T03:04:05.678Z", "input": INPUT,
    "outcomes": [], "codes": [], "routes": [], "calls": [], "saved_call_count": 0, "attention": [],
    "attention_count": 0, "warnings": [], "warning_count": 0, "complete": True, "next_step": None,
})  # fmt: skip


def axe_found(page):
    """What axe-core finds on a page, as it returns it."""
    page.evaluate(AXE.read_text("utf-8"))
    return page.evaluate("tags => axe.run({ runOnly: tags })", STANDARDS)


def axe_faults(page):
    """The rules that a page breaks, each with where it does first."""
    return [
        (one["id"], [node["target"] for node in one["nodes"]][:3]) for one in axe_found(page)["violations"]
    ]


def wider_than(page, widths):
    """Of these widths of a window, those at which a page has to be moved sideways, and by how many pixels."""
    over = {}
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        over[width] = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    return {width: by for width, by in over.items() if by > 0}


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory, sandbox):
    """The folder that the real command leaves after a run over the sample file."""
    desk = Desk(tmp_path_factory.mktemp("run"))
    assert desk("run", SAMPLE, *sandbox.using("sandbox"), "--out", "out", "--quiet").status == 0
    return desk.folder / "out"


@pytest.fixture
def report_of(tmp_path, payments_of, outcomes_of):
    """Payments and outcomes -> the file of a report page; of a file of that name, where it is told."""

    def build(payments, outcomes, *, name="payments.csv"):
        fields, decided = payments_of(*payments), outcomes_of(*outcomes)
        told = InputFile(**(INPUT | {"row_count": fields.height, "name": name}))
        totals = outcome_totals(outcomes_with_money(fields, decided))
        summary = parse(Summary, SUMMARY.encode()).model_copy(update={"input": told, "outcomes": totals})
        rows = fields.hstack(decided.drop("row").get_columns())
        file = tmp_path / "report.html"
        file.write_text(page(summary, rows), encoding="utf-8")
        return file

    return build


@pytest.fixture(scope="module")
def browser():
    """Chromium; a test that asks for it is skipped where there is none.

    It has an event loop on this thread, with which no test of another module could have its own.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH; `make tools` installs it")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM)
        yield running
        running.close()


class Reader:
    """A person with a browser; what the browser asks for and complains of is kept."""

    def __init__(self, page, file):
        self.page = page
        self.requests, self.complaints = [], []
        self._heard = {
            "request": lambda request: self.requests.append(request.url),
            "console": lambda message: self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
        }
        for event, hear in self._heard.items():
            page.on(event, hear)
        page.goto(file.as_uri())

    def leave(self):
        """Leave the page as the next reader wants to find it."""
        for event, hear in self._heard.items():
            self.page.remove_listener(event, hear)
        self.page.goto("about:blank")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, selector):
        """Move the focus with the keyboard alone."""
        for _ in range(300):
            self.press("Tab")
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        pytest.fail(f"{selector} cannot be reached with the Tab key")

    @property
    def status(self):
        return self.page.locator("#status").inner_text()

    def texts(self, column):
        """The first text of each cell of a column, in the order on the screen."""
        cells = self.page.locator(f"#payments tbody tr:not(.group) > :nth-child({column})")
        return cells.evaluate_all("cells => cells.map(cell => cell.firstElementChild.textContent)")


@pytest.fixture(scope="module")
def blank_page(browser):
    """`blank_page(options)`: an empty page without a network; each kind is opened once, as that is slow."""
    pages = {}

    def find(options):
        kind = repr(sorted(options.items()))
        if kind not in pages:
            context = browser.new_context(**options)
            context.set_offline(True)
            pages[kind] = context.new_page()
            pages[kind].set_default_timeout(WAIT_MAX_MS)
        return pages[kind]

    return find


@pytest.fixture
def reading(blank_page):
    @contextmanager
    def read(file, *, complains=False, viewport=SCREEN, **options):
        page = blank_page(options)
        page.set_viewport_size(viewport)
        page.emulate_media(media="null")
        reader = Reader(page, file)
        try:
            yield reader
            assert reader.requests == [file.as_uri()]
            assert complains or reader.complaints == []
        finally:
            reader.leave()

    return read
