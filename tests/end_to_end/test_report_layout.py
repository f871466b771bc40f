"""The report page as it is seen: on small and large screens, on paper, by those who need it accessible."""

import re

import pytest
from readers import axe_found, needs_axe
from refusals import said

from pipeline.reports.explanations import explanations, whole
from pipeline.reports.page import ROWS_AT_ONCE, ROWS_ON_PAPER
from pipeline.rules.rules import RULES

WIDTHS = (320, 360, 400, 640, 700, 960, 1100, 1190, 1280)
"""Of screens, in pixels: those of WCAG 1.4.10, and beside each change of the layout."""
SHEETS_OF_THE_SAMPLE = 4
NO_MATCH = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee", "reason": "Another name."}
OUTCOMES = (
    {},
    NO_MATCH,
    {
        "outcome": "close_match", "code": "MBAM", "action": "fix_name", "reason": "Nearly.",
        "matched_name": "Quillon and Daughters Limited",
    },
    {"outcome": "rejected", "code": "ACCOUNT_NUMBER_DAMAGED", "action": "correct_row", "reason": "Damaged."},
)  # fmt: skip
WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
MONEY = {
    "billions": {"GBP": "1234567890.12", "EUR": "987654321.98"},
    "currencies": dict.fromkeys(("CHF", "DKK", "EUR", "GBP", "PLN", "SEK"), "4800000.00"),
    "hostile": {"\u202eGBP\u2066WWWWWW": "12345678.99", "EUR": "1" * 24},
}
NAMES = {"hostile": (WORD, "W" * 140, "\u202egnp.exe\u2066" * 8, "\u05d0\u05d1\u05d2" * 40)}
OVERLAPS = """() => {
    const seen = ".picture :is(tbody, tfoot) :is(th, td), .steps :is(a, .money, .small)";
    const boxes = [...document.querySelectorAll(seen)].map((part) => [part, part.getBoundingClientRect()]);
    return boxes.flatMap(([one, a], at) => boxes.slice(at + 1)
        .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
        .map(([other]) => `${one.textContent} / ${other.textContent}`));
}"""


@pytest.fixture
def page_file(sample_run, report_of, desk, sandbox):
    """The name of a kind of page -> the file of one."""

    def build(kind):
        if kind == "sample":
            return sample_run / "report.html"
        if kind == "network":
            desk("sandbox", "--write-payments", "net.csv", "--rows", "200")
            assert desk("run", "net.csv", *sandbox.using("sandbox"), "--quiet").status == 0
            return desk.folder / "net.precheck" / "report.html"
        names = NAMES.get(kind, ("Quillon",))
        of_each = [(currency, amount) for currency, amount in MONEY[kind].items()]
        count = len(of_each) * len(OUTCOMES) * len(names)
        payments = [
            {
                "name": names[at % len(names)],
                "payment_id": f"PAY_2026_11_{at:04}" if kind != "hostile" else "X" * 80,
                "currency": of_each[at % len(of_each)][0],
                "amount": of_each[at % len(of_each)][1],
                "account_number": "12345678",
            }
            for at in range(count)
        ]
        outcomes = [OUTCOMES[at // len(of_each) % len(OUTCOMES)] for at in range(count)]
        return report_of(payments, outcomes, name=f"{'W' * 120}.csv" if kind == "hostile" else "pay.csv")

    return build


@pytest.mark.parametrize(
    "kind",
    [
        "sample",
        "hostile",
        *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("billions", "currencies", "network")),
    ],
)
def test_nothing_is_wider_than_the_screen_and_nothing_covers_another(page_file, reading, kind):
    with reading(page_file(kind)) as reader:
        for width in WIDTHS:
            reader.page.set_viewport_size({"width": width, "height": 800})
            assert reader.page.evaluate("document.documentElement.scrollWidth") == width
            assert reader.page.evaluate(OVERLAPS) == []


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["billions", pytest.param("currencies", marks=pytest.mark.nightly)])
def test_advice_keeps_its_width_beside_much_money(page_file, reading, kind):
    with reading(page_file(kind)) as reader:
        for advice in reader.page.locator(".steps a").all():
            lines = advice.evaluate("link => link.getClientRects().length")
            assert lines < len(advice.inner_text().split()) / 2


@pytest.mark.nightly
def test_what_is_searched_by_stands_in_one_line_on_a_common_screen(page_file, reading):
    with reading(page_file("sample")) as reader:
        reader.page.set_viewport_size({"width": 1280, "height": 800})
        tools = reader.page.locator(".tools :is(input, select, button)")
        assert len({round(tool.bounding_box()["y"]) for tool in tools.all()}) == 1


@pytest.mark.nightly
def test_amounts_of_several_currencies_take_no_more_width_than_the_widest(page_file, reading):
    with reading(page_file("billions")) as reader:
        reader.page.set_viewport_size({"width": 1280, "height": 800})
        step = reader.page.locator(".steps li").first
        money, advice = (step.locator(part).bounding_box() for part in (".money", "a"))
        widest = (
            "money => Math.max(...[...money.children].map((part) => { const range = document.createRange();"
        )
        widest += " range.selectNodeContents(part); return range.getBoundingClientRect().width; }))"
        assert money["width"] < step.locator(".money").evaluate(widest) + 24
        assert advice["width"] > 180


@pytest.mark.nightly
def test_a_bar_is_as_long_as_its_share(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
        cell = reader.page.locator(".picture tr.match td").first
        assert cell.inner_text() == "8"  # of 24
        rail, bar = (cell.locator(f".{name}").bounding_box()["width"] for name in ("rail", "bar"))
        assert bar / rail == pytest.approx(1 / 3, abs=0.01)


def test_who_was_not_asked_is_not_said_to_have_been_silent(report_of, reading):
    outcomes = [NO_MATCH, OUTCOMES[3], {"outcome": "deferred", "code": "LIMIT", "action": "retry_later"}]
    says = "cell => getComputedStyle(cell.querySelector('bdi'), '::before').content"
    with reading(report_of([{"name": "Quillon"}] * 3, outcomes)) as reader:
        said = {
            outcome: reader.page.locator(f"tr.{outcome} td:nth-child(3)").evaluate(says)
            for outcome in ("no_match", "rejected", "deferred")
        }
    assert said == {"no_match": '"not given"', "rejected": '"not asked"', "deferred": '"not asked"'}


@pytest.mark.nightly
def test_a_code_is_not_broken_within_a_word(page_file, reading):
    breaks = """text => [...text.childNodes].filter((word) => {
        const range = document.createRange();
        range.selectNodeContents(word);
        return range.getClientRects().length > 1;
    }).map((word) => word.textContent)"""
    with reading(page_file("currencies")) as reader:
        for word in ("tr.rejected td:nth-child(6) b", "tr.rejected td:nth-child(2) small"):
            assert reader.page.locator(word).first.evaluate(breaks) == []


LINES_OF = """element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return new Set([...range.getClientRects()].map((box) => box.top)).size;
}"""
LONG_ID = "ENDTOEND20261122ABCDEFGHIJKLMNOPQRS"
"""As long as a payment message allows."""


@pytest.mark.nightly
@pytest.mark.parametrize("payment_id", [pytest.param("PAY-1", marks=pytest.mark.nightly), LONG_ID])
def test_the_longest_sentence_about_a_row_takes_three_lines_at_most(report_of, reading, payment_id):
    rules = [f"{rule.field}: {rule.sentence}." for rule in RULES]
    meanings = [whole(str(case.says)) for told in explanations().values() for case in told.cases]
    rejected = {"outcome": "rejected", "code": "ACCOUNT_NUMBER_DAMAGED", "action": "correct_row"}
    payment = {"payment_id": payment_id, "amount": "1234567890.12", "currency": "EUR"}
    outcomes = [{**rejected, "reason": said} for said in {*rules, *meanings}]
    names = {"name": "Brackenfell Joinery Limited", "account_number": "12345678"}
    with reading(report_of([payment | names] * len(outcomes), outcomes)) as reader:
        sentences = reader.page.locator("#payments td:nth-child(6) small")
        line_counts = sentences.evaluate_all(f"sentences => sentences.map({LINES_OF})")
        assert len(line_counts) == len(outcomes) > 60
        assert max(line_counts) <= 3
        assert reader.page.evaluate("document.documentElement.scrollWidth") == 1280


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("payment_id", "most"),
    [
        (LONG_ID, 1),
        pytest.param("PAYROLL-2026/11_0001", 1, marks=pytest.mark.nightly),
        pytest.param("7f3c9a2e-7b41-4d2e-9c1f-8a6b5d4e3f20", 2, marks=pytest.mark.nightly),
    ],
)
def test_an_id_is_not_broken_within_a_word(report_of, reading, payment_id, most):
    payment = {"name": "Quillon", "payment_id": payment_id, "amount": "1234567890.12", "currency": "EUR"}
    with reading(report_of([payment], [NO_MATCH])) as reader:
        assert reader.page.locator("#payments .id").evaluate(LINES_OF) <= most
        assert reader.page.locator("#payments td:nth-child(5) span").evaluate(LINES_OF) == 1


@pytest.mark.nightly
def test_forty_currencies_have_a_place_on_every_screen(report_of, reading):
    codes = [f"X{first}{second}" for first in "ABCDE" for second in "KLMNOPQR"]
    payments = [{"name": "Quillon", "amount": "1234567890.12", "currency": code} for code in codes]
    with reading(report_of(payments, [NO_MATCH] * len(codes))) as reader:
        for width in WIDTHS:
            reader.page.set_viewport_size({"width": width, "height": 800})
            seen = reader.page.locator(".picture, .currencies").all_inner_texts()
            assert {code for code in codes if not any(code in text for text in seen)} == set()
            assert reader.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.nightly
@pytest.mark.parametrize("width", [320, pytest.param(1280, marks=pytest.mark.nightly)])
def test_a_pair_that_may_be_paid_twice_stands_side_by_side(desk, sandbox, reading, width):
    paid = "Avery Thornwood,Personal,001122,00012345,4991.76,GBP,BONUS"
    headers = "name,account_type,sort_code,account_number,amount,currency,reference"
    file = desk.file("pay.csv", f"{headers}\n{paid}\n{paid}\n")
    assert desk("run", file, *sandbox.using("sandbox"), "--quiet").status == 0
    page = desk.folder / "pay.precheck" / "report.html"
    with reading(page, viewport={"width": width, "height": 800}) as reader:
        earlier, again = (cell.bounding_box() for cell in reader.page.locator(".pairs td").all())
        assert earlier["y"] == again["y"]
        assert earlier["x"] + earlier["width"] <= again["x"]
        texts = reader.page.locator(".pairs td").all_inner_texts()
    for row, text in enumerate(texts, start=1):
        assert text.split("\n") == [
            f"Row {row} (line {row + 1})",
            "Avery Thornwood",
            "**2345",
            "4,991.76 GBP",
        ]


@pytest.mark.nightly
@pytest.mark.parametrize("width", [400, pytest.param(1280, marks=pytest.mark.nightly)])
def test_the_footnote_of_the_rows_stands_below_them(sample_run, reading, width):
    with reading(sample_run / "report.html", viewport={"width": width, "height": 800}) as reader:
        last = reader.page.locator("#payments tbody tr").last.bounding_box()
        assert reader.page.locator("#payments caption").bounding_box()["y"] >= last["y"] + last["height"] - 1


@pytest.mark.nightly
def test_the_sample_takes_no_more_paper_than_it_fills(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
        sheets = re.findall(rb"/Type /Page\b", reader.page.pdf(prefer_css_page_size=True))
    assert len(sheets) == SHEETS_OF_THE_SAMPLE


@pytest.mark.nightly
def test_on_paper_there_are_rows_and_no_controls(sample_run, reading):
    with reading(sample_run / "report.html") as reader:
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


@pytest.mark.nightly
def test_paper_has_the_rows_of_all_pages_and_the_screen_is_as_before(report_of, reading, printed):
    count = ROWS_AT_ONCE + 1
    with reading(report_of([{"name": "Quillon"}] * count, [NO_MATCH] * count)) as reader:
        reader.page.get_by_role("button", name="Next rows").click()
        before = reader.status, reader.texts(1)
        assert printed(reader)[:2] == (count, said("page.rows_grouped", "page", shown=count, all=count))
        assert (reader.status, reader.texts(1)) == before
        reader.page.locator("#search").fill("nobody")
        assert printed(reader)[:2] == (0, said("page.rows_grouped", "page", shown=0, all=count))


@pytest.mark.nightly
def test_paper_says_what_it_leaves_out_and_where_all_is(report_of, reading, printed):
    count = ROWS_ON_PAPER + 1
    with reading(report_of([{"name": "Quillon"}] * count, [NO_MATCH] * count)) as reader:
        row_count, status, sheet_count = printed(reader)
        assert row_count == ROWS_ON_PAPER
        assert status == (
            said("page.rows_grouped_here", "page", shown="2,001", all="2,001", first=1, last="2,000")
            + " "
            + said("page.all_in_file", "page")
        )
        assert ROWS_ON_PAPER / 50 < sheet_count < ROWS_ON_PAPER / 10
        assert "outcome file" not in reader.status


@needs_axe
@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        *(pytest.param(*look, marks=pytest.mark.nightly) for look in [("dark", 390), ("light", 320)]),
    ],
)
def test_accessibility_check_finds_no_violation(sample_run, reading, scheme, width):
    with reading(
        sample_run / "report.html", color_scheme=scheme, viewport={"width": width, "height": 800}
    ) as reader:
        found = axe_found(reader.page)
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found["violations"]] == []
        checked = {rule["id"] for rule in found["passes"]}
        assert checked >= {"color-contrast", "target-size", "label", "td-headers-attr", "landmark-one-main"}
