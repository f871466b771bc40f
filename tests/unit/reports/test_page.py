"""The report page as text: its policy, what it says, and that nothing from data becomes markup."""

import re
from base64 import b64encode
from collections import Counter
from decimal import Decimal
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from refusals import said

from pipeline.reports import page as pages
from pipeline.reports.page import PAIRS_MAX, page
from pipeline.wording import Sentence
from schemas.changes import Change, Comparison, EarlierRun
from schemas.outcomes import Environment, Outcome
from schemas.summary import InputFile, Money, OutcomeTotal, WarningCount, WarningRow

NO_MATCH = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee", "reason": "Another name."}
CLOSE_MATCH = {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "matched_name": "Quilon"}
MARKUP = "<b onclick=x>'\"</td></template></style></script><script>alert(1)</script>{{ 1 }}{% if %}"
SIZE_MAX = 16_000_000
"""Bytes of the fullest page: it must go through a mail."""
SCRIPT_LINES_MAX = 132
JANUARY = EarlierRun(folder="january.precheck", input_name="january.csv", input_sha256="0", finished="2030")


class Elements(HTMLParser):
    """The start tags of a page, with their attributes, and the text of its style and script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.own = [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and (tag := self.tags[-1][0]) in {"style", "script"} and tag not in self.own:
            self.own[tag] = data


@pytest.fixture
def page_of(summary_of, payments_of, outcomes_of):
    """Payments, outcomes and what the summary says -> the text of a page."""

    def build(
        payments=({"name": "Quillon"},), outcomes=(NO_MATCH,), file_name="payroll.csv", changes=(), **said
    ):
        counts = Counter(outcome.get("outcome", "match") for outcome in outcomes)
        totals = said.pop(
            "totals",
            [
                OutcomeTotal(outcome=outcome, row_count=counts[outcome], totals=[])
                for outcome in Outcome
                if counts[outcome]
            ],
        )
        source = InputFile(
            name=file_name, sha256="ab" * 32, byte_count=1, row_count=len(payments), format="csv",
            encoding="utf-8", columns={},
        )  # fmt: skip
        rows = payments_of(*payments).hstack(outcomes_of(*outcomes).drop("row").get_columns())
        summary = summary_of(
            **{
                "warnings": [],
                "warning_count": 0,
                "warning_codes": [],
                "input": source,
                "outcomes": totals,
                **said,
            }
        )
        return page(summary, rows, changes)

    return build


def test_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else(page_of):
    found = Elements(page_of())
    [policy] = [
        said["content"] for tag, said in found.tags if said.get("http-equiv") == "Content-Security-Policy"
    ]
    hashes = {tag: b64encode(sha256(text.encode()).digest()).decode() for tag, text in found.own.items()}
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_page_refers_to_nothing_outside_itself(page_of):
    text = page_of()
    for _, part in Elements(text).tags:
        assert part.get("href", "#").startswith("#")
        assert not part.keys() & {"src", "srcset", "action", "style", "background", "poster", "data"}
        assert not any(name.startswith("on") for name in part)
    assert "://" not in text


def test_data_never_becomes_an_element_or_an_attribute(page_of):
    def shape(text):
        payment = dict.fromkeys(("name", "payment_id", "amount", "currency", "iban", "lei"), text)
        outcome = {**NO_MATCH, "reason": text, "code": text, "matched_name": text}
        warning = WarningRow(row=1, code="X", message=text)
        said = {"profile": text, "next_step": text, "complete": False, "many_names_reason": text}
        total = Money(currency=text, row_count=1, amount=Decimal(1))
        said |= {"totals": [OutcomeTotal(outcome=Outcome.NO_MATCH, row_count=1, totals=[total])]}
        said |= {"warnings": [warning], "file_name": text}
        tags = [tag for tag, _ in Elements(page_of([payment], [outcome], **said)).tags]
        return [tag for tag in tags if tag != "wbr"]  # where an id may be broken

    harmless, hostile = shape("x"), shape(MARKUP)
    assert hostile == harmless


def test_control_characters_of_a_file_or_a_bank_mark_nothing_and_shift_nothing(page_of):
    text = "\1Quillon\2 \0Ltd"
    payment = dict.fromkeys(("name", "payment_id", "amount", "currency"), text)
    page = page_of([payment], [{**NO_MATCH, "reason": text, "code": text}])
    assert "<mark>" not in page.partition("</style>")[2]
    assert page.count(r"\x01Quillon\x02 \x00Ltd") == 5


def test_letters_that_differ_are_marked_and_escaped(page_of):
    page = page_of([{"name": "A<Quillon"}], [{**CLOSE_MATCH, "matched_name": "A&Quillon"}])
    assert "<bdi>A<mark>&lt;</mark>Quillon</bdi>" in page
    assert "<bdi>A<mark>&amp;</mark>Quillon</bdi>" in page


def test_outcome_without_money_in_a_currency_has_no_bar_there(page_of):
    total = Money(currency="GBP", row_count=1, amount=Decimal(1))
    totals = [
        OutcomeTotal(outcome=Outcome.MATCH, row_count=1, totals=[]),
        OutcomeTotal(outcome=Outcome.NO_MATCH, row_count=1, totals=[total]),
    ]
    text = page_of([{"name": "Quillon"}] * 2, [{}, NO_MATCH], totals=totals)
    [match] = re.findall(r'<tr class="match">.*?</tr>', text, re.DOTALL)
    assert match.count("<td") == 2
    assert match.count("<svg") == 1
    assert match.endswith('<td data-of="GBP"></td></tr>')


def test_codes_and_ids_may_be_broken_after_a_sign(page_of):
    outcome = {"outcome": "rejected", "code": "ACCOUNT_NUMBER_DAMAGED", "action": "correct_row"}
    text = page_of([{"name": "Quillon", "payment_id": "<b>_1/2"}], [outcome])
    assert "<b>ACCOUNT_<wbr>NUMBER_<wbr>DAMAGED</b>" in text
    assert '<small class="id">&lt;b&gt;_<wbr>1/<wbr>2</small>' in text


def test_script_stays_short_enough_to_be_read_whole():
    lines = files("pipeline.reports").joinpath("templates", "report.js").read_text("utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= SCRIPT_LINES_MAX
    assert max(map(len, lines)) <= 120


def test_simulated_answers_are_announced_and_real_ones_are_not(page_of):
    simulated = page_of(simulated=True, environment=Environment.SANDBOX)
    assert simulated.count("SIMULATED") >= 3  # the title, the banner, and on each sheet of paper
    assert "<title>SIMULATED: payroll.csv" in simulated
    body = page_of().partition("</style>")[2].partition("<script>")[0]
    assert "SIMULATED" not in body
    assert "Production" in body


@pytest.mark.parametrize(
    ("outcome", "is_answer"), [("no_match", True), ("rejected", False), ("deferred", False)]
)
def test_a_table_of_rows_that_nobody_answered_claims_no_simulated_answers(page_of, outcome, is_answer):
    row = {"outcome": outcome, "code": "X", "action": "retry_later"}
    text = page_of(outcomes=[row], simulated=True, environment=Environment.SANDBOX)
    assert ("Simulated answers. " in text) is is_answer


def test_page_says_what_the_file_is(page_of):
    total = Money(currency="GBP", row_count=1, amount=Decimal("1234567.80"))
    totals = [OutcomeTotal(outcome=Outcome.NO_MATCH, row_count=1, totals=[total])]
    text = page_of(totals=totals)
    for part in ("payroll.csv", "ab" * 32, "abababababab…", "2030-01-02 03:04 UTC", "1,234,567.80"):
        assert part in text


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (NO_MATCH, said("page.needs_review", "page", count=1, payments="<b>1</b>", all=1)),
        ({}, said("page.every_name_belongs", "page")),
    ],
)
def test_verdict_is_the_first_sentence(page_of, outcome, verdict):
    assert verdict in " ".join(page_of(outcomes=[outcome]).split())


def test_unfinished_run_says_so_and_how_to_go_on(page_of):
    step = said("todo.run_again_later")
    text = page_of(complete=False, next_step=step)
    assert f"<strong>{said('page.not_finished', 'page')}</strong> {step}" in text


def test_repeated_payments_are_among_what_to_do_and_not_among_the_odd(page_of):
    text = page_of([{"name": "Quillon"}] * 3, [{}] * 3, **repeated(2, 3))
    assert said("page.repeats_earlier", count=2) in text
    assert said("page.unusual_but_no_obstacle") not in text
    assert said("page.nothing_left_to_review") not in text


def repeated(*rows):
    """What a summary says of these rows, which repeat row 1."""
    message = said("rule.payment_repeated", row="row 1")
    warnings = [WarningRow(row=row, code="PAYMENT_REPEATED", message=message, repeats=1) for row in rows]
    codes = [WarningCount(code="PAYMENT_REPEATED", row_count=len(rows), rows=list(rows)[:10])]
    return {"warnings": warnings, "warning_count": len(rows), "warning_codes": codes}


def test_a_repeated_payment_stands_beside_the_earlier_one(page_of):
    paid = {"account_number": "00112233", "amount": "4991.76", "currency": "GBP"}
    payments = [
        {**paid, "name": "Quillon", "payment_id": "A-1"},
        {**paid, "name": "Another", "amount": "5"},
        {**paid, "name": "QUILLON", "payment_id": "B_7"},
    ]
    text = page_of(payments, [{}, NO_MATCH, CLOSE_MATCH], **repeated(3))
    [[earlier, again]] = [
        [" ".join(re.sub(r"<[^>]*>", "", cell).split()) for cell in re.findall(r"<td>(.*?)</td>", row)]
        for row in re.findall(r"<tr><td>.*?</tr>", text.partition("Paid twice?</h2>")[2], re.DOTALL)
    ]
    assert earlier == "Row 1 A-1 Quillon **2233 4,991.76 GBP"
    assert again == "Row 3 B_7 QUILLON **2233 4,991.76 GBP"
    assert "00112233" not in text


def test_many_repeated_payments_are_shown_in_part_and_that_is_said(page_of):
    count = PAIRS_MAX + 2
    text = page_of([{"name": "Quillon"}] * count, [{}] * count, **repeated(*range(2, count + 1)))
    assert text.count("<tr><td><b>Row 1</b>") == PAIRS_MAX
    assert said("page.first_pairs", shown=PAIRS_MAX) in text


def test_matching_rows_are_there_for_a_search_up_to_a_number_of_rows(page_of):
    count = pages.ROWS_SEARCHED_MAX
    payments = [{"name": f"Brackenfell Joinery {number}", "amount": "1.00"} for number in range(count + 1)]
    text = page_of(payments[:-1], [NO_MATCH] + [{}] * (count - 1))
    assert text.count('<tr class="match" data-rank') == count - 1
    assert said("page.search_has_matches") in text
    assert len(text.encode()) < SIZE_MAX / 8
    text = page_of(payments, [NO_MATCH] + [{}] * count)
    assert '<tr class="match" data-rank' not in text
    assert said("page.search_without_matches", rows_max=5000) in text


def test_every_currency_of_a_file_and_of_a_next_step_is_on_the_page(page_of):
    codes = [f"{first}{second}X" for first in "ABCDEFGHIJ" for second in "KLMNOPQRST"]
    payments = [
        {"name": "Quillon", "amount": f"{100 + at}.00", "currency": code} for at, code in enumerate(codes)
    ]
    totals = [Money(currency=code, row_count=1, amount=Decimal(100 + at)) for at, code in enumerate(codes)]
    text = page_of(
        payments,
        [NO_MATCH] * len(codes),
        totals=[OutcomeTotal(outcome=Outcome.NO_MATCH, row_count=len(codes), totals=totals)],
    )
    body = text.partition('id="payments"')
    heading = re.search(r'<tr class="group">.*?</tr>', body[2], re.DOTALL)[0]
    for at, code in enumerate(codes):
        assert f"{100 + at}.00 {code}" in heading
        assert re.search(rf"Total {code}<|</span> {code}[ <]", body[0])
    assert "more currencies" not in heading
    assert "<span>and 97 more currencies</span>" in body[0]


def test_rows_that_lack_an_api_are_told_apart_from_rows_to_correct(page_of):
    rejected = {"outcome": "rejected", "action": "correct_row"}
    text = page_of(
        [{"name": "Quillon"}] * 2, [{**rejected, "code": "NO_API"}, {**rejected, "code": "NAME_MISSING"}]
    )
    assert re.search(rf'id="do-correct_row-NO_API".*\n.*{said("todo.add_section")}', text)
    assert re.search(rf'id="do-correct_row".*\n.*{said("todo.correct_row")}', text)


def test_odd_rows_are_named_once_for_each_oddity(page_of):
    warnings = [WarningRow(row=7, code="X", message="odd alone")]
    warnings += [WarningRow(row=row, code="X", message="paid twice") for row in range(1, 13)]
    text = page_of(warnings=warnings, warning_count=40)
    first = Sentence("places.rows", count=12, rows=list(map(str, range(1, 11))))
    assert f"paid twice: {said('places.rows_and_more', rows=first, more_count=2)}." in text
    assert f"odd alone: {said('places.rows', count=1, rows='7')}." in text
    assert said("page.first_warnings", shown=13, warnings=40) in text


@pytest.mark.nightly
def test_page_of_a_million_rows_would_be_bounded_and_says_what_it_leaves_out(page_of):
    count = pages.ROWS_MAX + 1
    reason = "A reason of some length, as they are found in practice, so that the size is a fair one."
    payments = [{"name": f"Brakenfell Joinery {number}", "amount": "12345.67"} for number in range(count)]
    outcome = {
        **NO_MATCH,
        "outcome": "close_match",
        "matched_name": "Brackenfell Joinery Ltd",
        "reason": reason,
    }
    text = page_of(payments, [outcome] * count)
    rows = Sentence("counted.row", count=count)
    assert said("page.lists_some", listed=pages.ROWS_MAX, rows=rows) in text
    assert len(re.findall(r"<tr class=\"close_match\" data-rank", text)) == pages.ROWS_MAX
    assert len(text.encode()) < SIZE_MAX


def test_rows_beyond_the_first_are_kept_out_of_the_document(page_of):
    count = pages.ROWS_AT_ONCE + 2
    text = page_of([{"name": "Quillon"}] * count, [NO_MATCH] * count)
    before, _, after = text.partition("<template>")
    assert before.count('<tr class="no_match" data-rank') == pages.ROWS_AT_ONCE
    assert after.count('<tr class="no_match" data-rank') == 2


def test_what_changed_stands_before_what_came_back_and_beyond_twenty_unfolds(page_of):
    compared = Comparison(requested="x", runs=[JANUARY], payee_count=30, new_count=0)
    changes = [
        Change(row=1, code="ACCOUNT_CHANGED", then="**1111", now=f"**{number:04}", earlier="january.precheck")
        for number in range(25)
    ]
    text = page_of(compared=compared, changes=changes)
    assert text.index(said("page.changed_since")) < text.index(said("page.came_back"))
    seen, unfolds = text[: text.index("<details>")], text[text.index("<details>") :]
    assert (seen.count("**1111"), unfolds.count("**1111")) == (20, 5)
    assert said("page.more_changes", number=5) in unfolds
    assert said("page.changed_since") not in page_of()
