"""The report page in a real browser, as opened from a mail: a file, no network, no mouse needed."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from unicodedata import normalize

import polars as pl
import pytest

from pipeline.frames import PAYMENTS
from pipeline.reports.page import ROWS_AT_ONCE, ROWS_ON_PAPER, page
from pipeline.reports.terminal import visible
from schemas.outcomes import COLUMNS, Outcome
from schemas.strict import parse
from schemas.summary import InputFile, OutcomeTotal, Summary

playwright = pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_data" / "payments_mixed.csv"
AXE = ROOT / ".cache" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium")
COMMAND = Path(sys.executable).with_name("precheck")
COMMAND_MAX_S = 60
WAIT_MAX_MS = 10_000
PICTURE_BYTES_MAX = 300_000
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

HOSTILE = (
    "<script>window.hit = 1</script>",
    "<img src=x onerror=window.hit=1>",
    "</td></tr></table><iframe src=https://x.example></iframe>",
    "</template><script>window.hit = 1</script>",
    "</style><style>body { display: none }</style>",
    "{{ 7 * 7 }}{% raw %}",
    "' onmouseover=window.hit=1 x='",
    '" autofocus onfocus=window.hit=1 x="',
    "&lt;b&gt; &amp;#x3c;script&amp;#x3e;",
    "javascript:window.hit=1",
    "\u202egnp.exe\u2066",
    "a\x00b\x1b[31mc\u2028d\ufeff",
    "=HYPERLINK(0)",
    "\u05d0\u05d1\u05d2 (Ltd) \u0627\u0628",
    "e" + "\u0301" * 100,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH; `make tools` installs it")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM)
        yield running
        running.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder that the real command leaves after a run over the sample file."""
    here = tmp_path_factory.mktemp("run")
    environment = {"PATH": os.environ["PATH"], "HOME": str(here), "XDG_STATE_HOME": str(here / "state")}
    words = [COMMAND, "run", SAMPLE, "--out", here / "out", "--quiet"]
    subprocess.run(words, env=environment, cwd=here, check=True, timeout=COMMAND_MAX_S, capture_output=True)
    return here / "out"


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


@pytest.fixture
def report_of(tmp_path, payments_of, outcomes_of):
    """Payments and outcomes -> the file of a report page."""

    def build(payments, outcomes):
        rows = payments_of(*payments).hstack(outcomes_of(*outcomes).drop("row").get_columns())
        said = parse(Summary, SUMMARY.encode()).model_copy(
            update={"input": InputFile(**(INPUT | {"row_count": rows.height}))}
        )
        counts = [OutcomeTotal(outcome=Outcome.NO_MATCH, row_count=rows.height, totals=[])]
        file = tmp_path / "report.html"
        file.write_text(page(said.model_copy(update={"outcomes": counts}), rows), encoding="utf-8")
        return file

    return build


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
NO_MATCH = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee", "reason": "Another name."}
CLOSE_MATCH = {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "reason": "Nearly."}


def test_report_of_a_run_opens_without_a_complaint_and_without_a_request(folder, reading):
    file = folder / "report.html"
    assert file.stat().st_mode & 0o777 == 0o600
    with reading(file) as reader:
        assert reader.page.title() == "SIMULATED: payments_mixed.csv: payee name check"
        first_screen = reader.page.locator(".banner, header, .first").all_inner_texts()
        for said in (
            "SIMULATED",
            "payments_mixed.csv",
            "16 payments of 24",
            "38,702.44",
            "75,585.10",
            "Sandbox",
        ):
            assert said in " ".join(first_screen)
        assert reader.status == "16 of 16 rows, grouped by what to do."
        assert len(reader.texts(1)) == 16


def test_report_masks_every_account_of_the_file(folder):
    text = (folder / "report.html").read_text("utf-8")
    with SAMPLE.open(newline="", encoding="utf-8") as lines:
        accounts = {row[field] for row in csv.DictReader(lines) for field in ("account_number", "iban")} - {
            ""
        }
    assert len(accounts) > 10
    assert [account for account in accounts if account in text] == []


def test_report_of_somebody_else_is_not_replaced(desk, sandbox):
    folder = desk.folder / "payments.precheck"
    folder.mkdir()
    (folder / "report.html").write_text("a novel")
    finished = desk("run", desk.payments([{"name": "Quillon"}]), *sandbox.using("sandbox"))
    assert finished.status == 73
    assert (folder / "report.html").read_text() == "a novel"


def test_page_may_run_and_load_nothing_but_its_own_style_and_script(folder, reading):
    tries = """async () => {
        const refused = [];
        const note = (event) => refused.push(event.effectiveDirective);
        document.addEventListener("securitypolicyviolation", note);
        const script = document.createElement("script");
        script.textContent = "window.hit = 1";
        const image = new Image();
        image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";
        const style = document.createElement("style");
        style.textContent = "body { display: none }";
        document.body.append(script, image, style);
        const sent = await fetch("https://x.example/").catch(() => "refused");
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        return [window.hit ?? null, sent, [...new Set(refused)].sort()];
    }"""
    with reading(folder / "report.html", complains=True) as reader:
        hit, sent, refused = reader.page.evaluate(tries)
        assert (hit, sent) == (None, "refused")
        assert refused == ["connect-src", "img-src", "script-src-elem", "style-src-elem"]
        assert reader.page.locator("h1").is_visible()


def test_search_by_keyboard_finds_names_with_and_without_accents(folder, reading):
    with reading(folder / "report.html") as reader:
        reader.tab_to("#search")
        reader.page.keyboard.type("solene montf")
        assert reader.texts(1) == ["16", "23"]
        assert reader.status == "2 of 16 rows, grouped by what to do."
        reader.page.keyboard.type("zzz")
        assert reader.texts(1) == []
        assert reader.status.startswith("0 of 16 rows")
        reader.tab_to("#reset")
        reader.press("Enter")
        assert len(reader.texts(1)) == 16


def test_filters_by_keyboard_leave_the_rows_of_one_action_and_one_outcome(folder, reading):
    with reading(folder / "report.html") as reader:
        reader.tab_to("#action")
        reader.page.keyboard.type("Ask")
        assert set(reader.texts(7)) == {"Ask the payee, by a known contact."}
        assert len(reader.texts(1)) == 4
        reader.tab_to("#outcome")
        reader.page.keyboard.type("Not")
        assert reader.texts(6) == ["NOAP"]


def test_next_step_by_keyboard_leads_to_its_rows(folder, reading):
    with reading(folder / "report.html") as reader:
        reader.tab_to(".steps a[data-action=fix_account_type]")
        reader.press("Enter")
        assert reader.texts(1) == ["7", "12"]
        assert reader.page.locator("#do-fix_account_type").is_visible()


def test_sort_by_keyboard_goes_up_then_down_then_back_to_the_groups(folder, reading):
    with reading(folder / "report.html") as reader:
        grouped = reader.texts(1)
        reader.tab_to("thead th:nth-child(5) button")
        amount = reader.page.locator("thead th:nth-child(5)")
        for way in ("ascending", "descending"):
            reader.press("Enter")
            assert amount.get_attribute("aria-sort") == way
            amounts = [Decimal(text.replace(",", "")) for text in reader.texts(5)]
            assert amounts == sorted(amounts, reverse=way == "descending")
            assert reader.page.locator("tr.group").count() == 0
        reader.press("Enter")
        assert amount.get_attribute("aria-sort") is None
        assert reader.texts(1) == grouped
        reader.page.locator("thead th:nth-child(1) button").click()
        assert reader.texts(1) == sorted(grouped, key=int)


def test_copied_row_says_that_it_is_simulated(folder, reading):
    with reading(folder / "report.html", permissions=["clipboard-read", "clipboard-write"]) as reader:
        reader.tab_to("td button[aria-label='Copy row 16']")
        reader.press("Enter")
        reader.page.locator("#status", has_text="Row 16 is copied.").wait_for()
        fields = reader.page.evaluate("navigator.clipboard.readText()").split("\t")
        assert fields[:4] == ["16", "PAY-0016", "Solene Montferand", "Sol\u00e8ne Montferrand"]
        assert fields[5:8] == ["FR**0733", "1,980.00", "EUR"]
        assert fields[-1] == "SIMULATED"


def test_copied_row_runs_nothing_in_a_spreadsheet(report_of, reading):
    names = ["=1+1", "+1", "-1", "@x", "\uff1d1", "  =1", "Quillon = Co"]
    file = report_of([{"name": name} for name in names], [NO_MATCH] * len(names))
    copied = {}
    with reading(file, permissions=["clipboard-read", "clipboard-write"]) as reader:
        for number, name in enumerate(names, start=1):
            reader.page.locator(f"[aria-label='Copy row {number}']").click()
            reader.page.locator("#status", has_text=f"Row {number} is copied.").wait_for()
            copied[name] = reader.page.evaluate("navigator.clipboard.readText()").split("\t")[2]
    assert copied == {name: name if name[0] == "Q" else f"'{name}'"[:-1] for name in names}


def test_hostile_text_stays_text(report_of, reading):
    payments = [
        {
            "name": text,
            "payment_id": text,
            "reference": text,
            "amount": text,
            "currency": text,
            "account_number": text,
        }
        for text in HOSTILE
    ]
    outcomes = [
        {**CLOSE_MATCH, "matched_name": text, "reason": text, "code": text} for text in reversed(HOSTILE)
    ]
    with reading(report_of(payments, outcomes)) as reader:
        shown = dict(
            zip(map(int, reader.texts(1)), zip(reader.texts(2), reader.texts(3), strict=True), strict=True)
        )
        expected = zip(HOSTILE, reversed(HOSTILE), strict=True)
        for number, names in enumerate(expected, start=1):
            assert shown[number] == tuple(visible(normalize("NFC", name)) for name in names)
        assert reader.page.evaluate("window.hit ?? null") is None
        strange = "iframe, img, object, link, form, [onerror], [onfocus], [onmouseover], [href^=javascript]"
        assert reader.page.locator(strange).count() == 0
        assert reader.page.locator("script").count() == 1
        assert reader.page.locator("style").count() == 1
        assert reader.page.locator("h1").is_visible()
        assert reader.page.evaluate("document.documentElement.scrollWidth") == 1280
        text = reader.page.content()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\ufeff]", text)


def test_past_five_thousand_rows_the_document_holds_a_page_of_them(report_of, reading):
    count = 5_001
    payments = [
        {"name": f"Payee x{number}", "amount": f"{number}.00", "currency": "GBP"} for number in range(count)
    ]
    with reading(report_of(payments, [NO_MATCH] * count)) as reader:
        seen = []
        while True:
            rows = reader.texts(1)
            assert len(rows) <= ROWS_AT_ONCE
            seen += rows
            on = reader.page.get_by_role("button", name="Next rows")
            if on.is_disabled():
                break
            on.focus()
            reader.press("Enter")
        assert seen == [str(number) for number in range(count, 0, -1)]  # the largest amounts first
        assert reader.status == "5,001 of 5,001 rows, grouped by what to do; here 5,001 to 5,001."
        reader.page.locator("#search").fill("payee x4999")
        assert reader.texts(2) == ["Payee x4999"]


def test_without_scripts_rows_are_there_and_no_dead_control_is(report_of, folder, reading):
    with reading(folder / "report.html", java_script_enabled=False) as reader:
        rows = reader.page.locator("#payments tbody tr:not(.group)")
        assert rows.count() == 16
        assert reader.page.get_by_role("button").count() == 0
        assert reader.page.get_by_role("searchbox").count() == 0
    count = ROWS_AT_ONCE + 1
    with reading(
        report_of([{"name": "Quillon"}] * count, [NO_MATCH] * count), java_script_enabled=False
    ) as reader:
        assert reader.page.locator("#payments tbody tr:not(.group)").count() == ROWS_AT_ONCE
        assert (
            "Without scripts, this page shows some of its rows only"
            in reader.page.locator("body").inner_text()
        )


def test_on_paper_there_are_rows_and_no_controls(folder, reading):
    with reading(folder / "report.html") as reader:
        reader.page.emulate_media(media="print")
        assert reader.page.locator("#payments tbody tr:not(.group)").first.is_visible()
        for control in ("#search", "td button"):
            assert not reader.page.locator(control).first.is_visible()
        assert reader.page.locator(".banner").is_visible()


@pytest.fixture
def printed():
    """A reader -> how many rows are printed, what is said of them, and how many sheets they take."""

    def prints(reader):
        reader.page.evaluate("""() => addEventListener("beforeprint", () => { window.paper = [
            document.querySelectorAll("#payments tbody tr:not(.group)").length,
            document.getElementById("status").textContent,
        ]; })""")
        sheets = len(re.findall(rb"/Type /Page\b", reader.page.pdf(prefer_css_page_size=True)))
        return *reader.page.evaluate("window.paper"), sheets

    return prints


def test_paper_has_the_rows_of_all_pages_and_the_screen_is_as_before(report_of, reading, printed):
    count = ROWS_AT_ONCE * 2 + 1
    with reading(report_of([{"name": "Quillon"}] * count, [NO_MATCH] * count)) as reader:
        reader.page.get_by_role("button", name="Next rows").click()
        before = reader.status, reader.texts(1)
        assert printed(reader)[:2] == (count, "1,001 of 1,001 rows, grouped by what to do.")
        assert (reader.status, reader.texts(1)) == before
        reader.page.locator("#search").fill("nobody")
        assert printed(reader)[:2] == (0, "0 of 1,001 rows, grouped by what to do.")


def test_paper_says_what_it_leaves_out_and_where_all_is(report_of, reading, printed):
    count = ROWS_ON_PAPER + 1
    with reading(report_of([{"name": "Quillon"}] * count, [NO_MATCH] * count)) as reader:
        row_count, said, sheet_count = printed(reader)
        assert row_count == ROWS_ON_PAPER
        assert said == (
            "2,001 of 2,001 rows, grouped by what to do; here 1 to 2,000. "
            "All of them are in the outcome file."
        )
        assert ROWS_ON_PAPER / 50 < sheet_count < ROWS_ON_PAPER / 10
        assert "outcome file" not in reader.status


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(folder, reading, width):
    with reading(folder / "report.html", viewport={"width": width, "height": 800}) as reader:
        assert reader.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core; `make tools` fetches it")
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_check_finds_no_violation(folder, reading, scheme, width):
    with reading(
        folder / "report.html", color_scheme=scheme, viewport={"width": width, "height": 800}
    ) as reader:
        reader.page.evaluate(AXE.read_text("utf-8"))
        found = reader.page.evaluate("tags => axe.run({ runOnly: tags })", STANDARDS)
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found["violations"]] == []
        checked = {rule["id"] for rule in found["passes"]}
        assert checked >= {"color-contrast", "target-size", "label", "td-headers-attr", "landmark-one-main"}


def test_pictures_of_the_readme_are_small_and_of_the_sample_file(folder, reading, tmp_path, pytestconfig):
    summary = parse(Summary, (folder / "summary.json").read_bytes())
    with (folder / "outcomes.csv").open(newline="", encoding="utf-8") as lines:
        cells = [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(lines)]
    absent = dict.fromkeys([*PAYMENTS, *COLUMNS])
    rows = [
        absent | {summary.input.columns.get(name, name): cell for name, cell in row.items()} | {"row": number}
        for number, row in enumerate(cells, start=1)
    ]
    always = summary.model_copy(update={"finished": "2026-11-20T18:00:00.000Z"})
    file = tmp_path / "report.html"
    file.write_text(page(always, pl.DataFrame(rows)), encoding="utf-8")
    pictures = [tmp_path / "report.png", tmp_path / "report-names.png"]
    with reading(file, viewport={"width": 1280, "height": 780}) as reader:
        reader.page.screenshot(path=pictures[0])
        reader.page.locator("#do-fix_name").screenshot(path=pictures[1])
    assert sum(picture.stat().st_size for picture in pictures) < PICTURE_BYTES_MAX
    if pytestconfig.getoption("--write-pictures"):
        for picture in pictures:
            shutil.copyfile(picture, ROOT / "docs" / "images" / picture.name)
