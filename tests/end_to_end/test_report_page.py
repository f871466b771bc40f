"""What a person does with the report page: reads, searches, filters, sorts, copies, goes without scripts."""

import csv
import re
from decimal import Decimal
from unicodedata import normalize

import pytest
from readers import SAMPLE
from refusals import said

from pipeline.reports.page import ROWS_AT_ONCE
from pipeline.reports.wording import visible

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

NO_MATCH = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee", "reason": "Another name."}
CLOSE_MATCH = {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "reason": "Nearly."}


def test_report_of_a_run_opens_without_a_complaint_and_without_a_request(sample_run, reading):
    file = sample_run / "report.html"
    assert file.stat().st_mode & 0o777 == 0o600
    with reading(file) as reader:
        assert reader.page.title() == "SIMULATED: " + said("page.title", "page", file="payments_mixed.csv")
        first_screen = reader.page.locator(".banner, header, .first").all_inner_texts()
        for shown in (
            "SIMULATED",
            "payments_mixed.csv",
            "16 of 24 payments",
            "38,702.44",
            "75,585.10",
            "Sandbox",
        ):
            assert shown in " ".join(first_screen)
        assert reader.status == said("page.rows_grouped", "page", shown=16, all=16)
        assert len(reader.texts(1)) == 16


def test_report_masks_every_account_of_the_file(sample_run):
    text = (sample_run / "report.html").read_text("utf-8")
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


def test_page_may_run_and_load_nothing_but_its_own_style_and_script(sample_run, reading):
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
    with reading(sample_run / "report.html", complains=True) as reader:
        hit, sent, refused = reader.page.evaluate(tries)
        assert (hit, sent) == (None, "refused")
        assert refused == ["connect-src", "img-src", "script-src-elem", "style-src-elem"]
        assert reader.page.locator("h1").is_visible()


def test_search_by_keyboard_finds_names_with_and_without_accents(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
        reader.tab_to("#search")
        reader.page.keyboard.type("solene montf")
        assert reader.texts(1) == ["16", "23"]
        assert reader.status == said("page.rows_grouped", "page", shown=2, all=24)
        reader.page.keyboard.type("zzz")
        assert reader.texts(1) == []
        assert reader.status.startswith("0 of 24 rows")
        reader.tab_to("#reset")
        reader.press("Enter")
        assert len(reader.texts(1)) == 16


@pytest.mark.parametrize(
    "written",
    [
        "4,991.76",
        *(
            pytest.param(amount, marks=pytest.mark.nightly)
            for amount in ("4991.76", "4.991,76", "4991,76", "4'991.76", "4 991.76")
        ),
    ],
)
def test_search_finds_an_amount_however_its_thousands_are_written(report_of, reading, written):
    amounts = ["4991.76", "1234991.76", "49917.60"]
    payments = [{"name": "Quillon", "amount": amount, "currency": "GBP"} for amount in amounts]
    with reading(report_of(payments, [NO_MATCH] * 3)) as reader:
        reader.page.locator("#search").fill(written)
        assert reader.texts(5) == ["1,234,991.76", "4,991.76"]


def test_search_finds_a_matching_row_and_nothing_else_shows_it(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
        assert "1" not in reader.texts(1)
        assert said("page.search_has_matches", "page") in reader.page.locator(".tools").inner_text()
        reader.page.locator("#search").fill("PAY-0001")
        assert reader.texts(1) == ["1"]
        assert reader.status == said("page.rows_grouped", "page", shown=1, all=24)
        assert reader.page.locator("tr.group").inner_text().startswith("Pay.")
        reader.page.locator("#reset").click()
        assert len(reader.texts(1)) == 16
        reader.page.locator("#outcome").select_option("match")
        assert len(reader.texts(1)) == 8
        assert reader.status == said("page.rows_grouped", "page", shown=8, all=24)


def test_file_of_matches_alone_can_be_searched(report_of, reading):
    with reading(report_of([{"name": "Quillon"}, {"name": "Another"}], [{}, {}])) as reader:
        assert reader.texts(1) == []
        none = said("page.rows_to_review", "page") + "\n\n" + said("page.no_row", "page")
        assert none in reader.page.locator("main").inner_text()
        reader.page.locator("#search").fill("quillon")
        assert reader.texts(2) == ["Quillon"]


def test_what_to_do_is_said_once_above_its_rows_and_in_each_row_that_stands_alone(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
        advice = "Change the account type."
        rows = reader.page.locator("#payments tbody")
        assert rows.all_inner_texts()[1].count(advice) == 1
        reader.page.locator("thead th:nth-child(1) button").click()
        assert "".join(rows.all_inner_texts()).count(advice) == 2


def test_filters_by_keyboard_leave_the_rows_of_one_action_and_one_outcome(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
        reader.tab_to("#action")
        reader.page.keyboard.type("Call")
        assert (
            reader.page.locator("tr.group")
            .all_inner_texts()[0]
            .startswith(said("explain.step_ask_payee", "page"))
        )
        assert len(reader.texts(1)) == 4
        reader.tab_to("#outcome")
        reader.page.keyboard.type("Not")
        assert reader.texts(6) == ["NOAP"]


def test_next_step_by_keyboard_leads_to_its_rows(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
        reader.tab_to(".steps a[data-action=fix_account_type]")
        reader.press("Enter")
        assert reader.texts(1) == ["7", "12"]
        assert reader.page.locator("#do-fix_account_type").is_visible()


def test_sort_by_keyboard_goes_up_then_down_then_back_to_the_groups(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
        grouped = reader.texts(1)
        reader.tab_to("#payments thead th:nth-child(5) button")
        amount = reader.page.locator("#payments thead th:nth-child(5)")
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


def test_copied_row_says_that_it_is_simulated(sample_run, reading):
    with reading(sample_run / "report.html", permissions=["clipboard-read", "clipboard-write"]) as reader:
        reader.tab_to("td button[aria-label='Copy row 16']")
        reader.press("Enter")
        reader.page.locator("#status", has_text="Row 16 is copied.").wait_for()
        fields = reader.page.evaluate("navigator.clipboard.readText()").split("\t")
        assert fields[:5] == ["16", "line 17", "Solene Montferand", "PAY-0016", "Sol\u00e8ne Montferrand"]
        assert fields[6:9] == ["FR**0733", "1,980.00", "EUR"]
        assert fields[-2].startswith(said("todo.fix_name", "page"))
        assert fields[-1] == "SIMULATED"


def test_copying_answers_beside_the_row_and_aloud(sample_run, reading):
    with reading(sample_run / "report.html", permissions=["clipboard-read", "clipboard-write"]) as reader:
        rows = (16, 10)
        buttons = [reader.page.locator(f"#payments tr:has(th b:text-is('{row}')) button") for row in rows]
        for row, button in zip(rows, buttons, strict=True):
            button.click()
            reader.page.get_by_role("status").get_by_text(f"Row {row} is copied.", exact=True).wait_for()
        assert [button.inner_text() for button in buttons] == ["Copy", "Copied"]
        names = [button.get_attribute("aria-label") for button in buttons]
        assert names == ["Copy row 16", "Copied row 10"]
        status = reader.page.get_by_role("status")
        assert status.inner_text() == said("page.row_copied", "page", row=10)


@pytest.mark.nightly
def test_where_the_browser_does_not_copy_that_is_said_and_the_keyboard_copies_as_harmlessly(
    report_of, reading
):
    file = report_of([{"name": "=1+1"}], [NO_MATCH])
    with reading(file, permissions=[]) as reader:  # a kind of page that no other test reads
        refuse_the_clipboard(reader.page)
        button = reader.page.locator("#payments td button")
        button.click()
        reader.page.get_by_text("Not copied", exact=True).wait_for()
        assert button.get_attribute("aria-label") == said("page.not_copied", "page") + " row 1"
        assert reader.status == said("page.row_selected", "page", row=1)
        reader.press("Control+c")
        reader.page.locator("#search").focus()
        reader.press("Control+v")
        pasted = reader.page.locator("#search").input_value()
        assert pasted.split("\t")[:2] == ["1", "'=1+1"]


def refuse_the_clipboard(page):
    """Take the right to write to the clipboard from the page, as a browser with strict settings does."""
    target = page.context.new_cdp_session(page).send("Target.getTargetInfo")["targetInfo"]
    setting = {
        "permission": {"name": "clipboard-write"},
        "setting": "denied",
        "browserContextId": target["browserContextId"],
    }
    page.context.browser.new_browser_cdp_session().send("Browser.setPermission", setting)


def test_copied_row_runs_nothing_in_a_spreadsheet(report_of, reading):
    names = ["=1+1", "+1", "-1", "@x", "\uff1d1", "  =1", '"=1+1"', '" +1"', "Quillon = Co"]
    file = report_of([{"name": name} for name in names], [NO_MATCH] * len(names))
    copied = {}
    with reading(file, permissions=["clipboard-read", "clipboard-write"]) as reader:
        for number, name in enumerate(names, start=1):
            reader.page.locator(f"[aria-label='Copy row {number}']").click()
            reader.page.locator("#status", has_text=f"Row {number} is copied.").wait_for()
            copied[name] = reader.page.evaluate("navigator.clipboard.readText()").split("\t")[1]
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


@pytest.mark.nightly
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
        assert reader.status == said(
            "page.rows_grouped_here", "page", shown="5,001", all="5,001", first="5,001", last="5,001"
        )
        reader.page.locator("#search").fill("payee x4999")
        assert reader.texts(2) == ["Payee x4999"]


def test_without_scripts_rows_are_there_and_no_dead_control_is(sample_run, reading):
    with reading(sample_run / "report.html", java_script_enabled=False) as reader:
        rows = reader.page.locator("#payments tbody tr:not(.group)")
        assert rows.count() == 16
        assert reader.page.get_by_role("button").count() == 0
        assert reader.page.get_by_role("searchbox").count() == 0


@pytest.mark.nightly
def test_without_scripts_a_large_report_says_that_it_shows_some_of_its_rows(report_of, reading):
    count = ROWS_AT_ONCE + 1
    with reading(
        report_of([{"name": "Quillon"}] * count, [NO_MATCH] * count), java_script_enabled=False
    ) as reader:
        assert reader.page.locator("#payments tbody tr:not(.group)").count() == ROWS_AT_ONCE
        assert said("page.without_scripts", "page") in reader.page.locator("body").inner_text()
