"""The report page in a real browser, as opened from a mail: a file, no network, no mouse needed.

A pytest plugin: tests/conftest.py loads it.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.reports.page import page
from pipeline.rules.totals import outcome_totals, outcomes_with_money
from schemas.strict import parse
from schemas.summary import InputFile, Summary

SAMPLE = Path(__file__).resolve().parents[1] / "sample_data" / "payments_mixed.csv"
CHROMIUM = shutil.which("chromium")
COMMAND = Path(sys.executable).with_name("precheck")
COMMAND_MAX_S = 60
WAIT_MAX_MS = 10_000
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


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory):
    """The folder that the real command leaves after a run over the sample file."""
    return run_of(SAMPLE, tmp_path_factory.mktemp("run"))


def run_of(file, here):
    """Run the real command over a file on its sandbox -> the folder that it leaves."""
    run_command(here, "run", file, "--out", here / "out", "--quiet")
    return here / "out"


def run_command(here, *words):
    """Run the real command in a folder that is its home too; it must succeed."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(here), "XDG_STATE_HOME": str(here / "state")}
    subprocess.run(
        [COMMAND, *words], env=environment, cwd=here, check=True, timeout=COMMAND_MAX_S, capture_output=True
    )


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
    """Chromium; a test that asks for it is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH; `make tools` installs it")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM)
        yield running
        running.close()


class Reader:
    """A person with a browser; what the browser asks for and complains of is kept."""

    def __init__(self, context, file):
        self.requests, self.complaints = [], []
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT_MAX_MS)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri())

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


@pytest.fixture
def reading(browser):
    @contextmanager
    def read(file, *, complains=False, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_offline(True)
        try:
            reader = Reader(context, file)
            yield reader
            assert reader.requests == [file.as_uri()]
            assert complains or reader.complaints == []
        finally:
            context.close()

    return read
