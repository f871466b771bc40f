"""The day of an analyst, an approver and an auditor, in a browser, with its clicks and its reading counted.

A click is a press of a button, a link, a choice or a field; the letters of a reason are typed. Reading is
the words of each text that was not read before, at four a second.
"""

import csv
import io
import re

import pytest
from openpyxl import Workbook
from paymentfiles import pain001
from standard_18 import File, Payment
from visitors import served_desk

WORDS_A_SECOND = 4
WAIT_MAX_MS = 60_000
POLICY = (
    '[profiles.sandbox.policy]\nclose_match = "review"\nno_match = "review"\nPAYMENT_REPEATED = "review"\n'
)
FIRST = "payment_id,name,account_type,sort_code,account_number,iban,amount,currency,reference"
MATCHING = (
    ("Avery Thornwood", "Personal", "001122", "00012345", "", "GBP"),
    ("Imogen Farraday", "Personal", "20-04-15", "31926819", "", "GBP"),
    ("Rookwater & Sons Ltd", "Business", "301200", "00700700", "", "GBP"),
    ("Brackenfell Joinery Ltd", "Business", "001122", "55779911", "", "GBP"),
    ("Cobaltree Instruments GmbH", "Business", "", "", "DE35370400440084210077", "EUR"),
)
TO_LOOK_AT = (
    *[("Averi Thornwood", "Personal", "001122", "00012345", "", "GBP")] * 4,
    *[("Farraday Imogen", "Personal", "20-04-15", "31926819", "", "GBP")] * 3,
    *[("Rookwater & Sons Ltd", "Personal", "301200", "00700700", "", "GBP")] * 3,
    *[("Rowan Blackmere", "Personal", "001122", "00012345", "", "GBP")] * 2,
    ("Saltmere Catering Ltd", "Business", "001122", "55779911", "", "GBP"),
    ("Driftmoor Textil GmbH", "Business", "", "", "DE35370400440084210077", "EUR"),
    ("Imogen Farraday", "Personal", "20-04-15", "3192681", "", "GBP"),
    ("", "Business", "001122", "55779911", "", "GBP"),
    ("Avery Thornwood", "Personal", "001122", "9999999A", "", "GBP"),
)
"""With the two payments that are there twice, of which the later ones are flagged: 19."""


def mixed():
    """61 rows of a CSV file, with dirt in its cells and two payments that repeat others."""
    payees = [MATCHING[at % len(MATCHING)] for at in range(61 - len(TO_LOOK_AT) - 2)]
    rows = []
    for number, (name, kind, sort_code, account, iban, currency) in enumerate([*payees, *TO_LOOK_AT], 1):
        dirty = f" {name}\u00a0" if number % 7 == 0 and name else name
        amount = f"{number * 37 + 1200}.{number:02}"
        rows.append(
            [f"P-{number:03}", dirty, kind, sort_code, account, iban, amount, currency, f"INV {number}"]
        )
    rows += [rows[3], rows[11]]
    out = io.StringIO()
    csv.writer(out).writerows([FIRST.split(","), *rows])
    return out.getvalue().encode()


def german():
    """A German workbook whose first sheet is of notes."""
    book = Workbook()
    notes = book.active
    notes.title = "Hinweise"
    for line in ("Zahllauf November", "Bitte bis Freitag freigeben", "Rückfragen: Buchhaltung"):
        notes.append([line])
    sheet = book.create_sheet("Zahlungen")
    sheet.append(["Empfänger", "IBAN", "Betrag", "Währung", "Verwendungszweck"])
    for number in range(12):
        payee = ("Cobaltree Instruments GmbH", "DE35370400440084210077")
        sheet.append([*payee, f"{100 + number},50", "EUR", f"RE {number}"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def message():
    """A pain.001 of 40 payments."""
    payments = tuple(
        pain001.Payment(end_to_end_id=f"E2E-{number}", name="Cobaltree Instruments GmbH",
                        iban="DE35370400440084210077", amount=f"{number + 1}.00",
                        references=(f"RE {number}",))
        for number in range(40)
    )  # fmt: skip
    return pain001.document((pain001.Batch(payments),))


def standard_18():
    """A Standard 18 file of 35 payments, which has no account types."""
    return File(tuple(Payment("001122", "00012345", 1000 + number, "AVERY THORNWOOD", f"PAY {number}")
                      for number in range(35))).data()  # fmt: skip


def large():
    """5,000 rows."""
    payees = (MATCHING[number % len(MATCHING)] for number in range(5_000))
    lines = (f'P-{number},{",".join(payee[:5])},{number % 900 + 1}.00,{payee[5]},INV {number}'
             for number, payee in enumerate(payees))  # fmt: skip
    return "\n".join((FIRST, *lines, "")).encode()


TEXTS = """(everyOne) => {
  const found = [], main = document.querySelector("main");
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent.closest("select, datalist, noscript, .hidden") || !parent.checkVisibility()) continue;
    found.push((parent.closest("bdi:not(:has(mark))") || walker.currentNode).textContent.trim());
  }
  return everyOne ? found : [...new Set(found)];
}"""
"""Each text on the page once: those of buttons and headers, which every row has, are known by their look."""


class Reader:
    """Somebody at the desk, who counts."""

    def __init__(self, page):
        self.page, self.clicks, self.words, self._known = page, 0, 0, set()

    def read(self):
        """Read what is new on the page."""
        new = {*self.page.evaluate(TEXTS, False)} - self._known
        self._known.update(new)
        self.words += sum(len(line.split()) for line in new)

    def click(self, selector):
        self.clicks += 1
        self.page.click(selector)

    def type(self, selector, text):
        self.click(selector)
        self.page.keyboard.type(text)

    def go(self, selector):
        """Click, and read the page that comes."""
        with self.page.expect_navigation():
            self.click(selector)
        self.read()

    @property
    def counted(self):
        return self.clicks, self.words / WORDS_A_SECOND


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    with served_desk(tmp_path_factory.mktemp("day"), profiles=POLICY) as running:
        yield running


@pytest.fixture
def page(browser, desk):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(WAIT_MAX_MS)
    opened.goto(desk.link_for("Mara Ellery"))
    opened.wait_for_url(re.compile("/$"))
    yield opened
    context.close()


@pytest.fixture(scope="module")
def checked(desk):
    """The id of the file of the morning, checked."""
    return desk.visitor("Mara Ellery").checked(mixed(), "november.csv")


def reviewed(reader):
    """Decide about every row, group by group, and hand the file over."""
    page = reader.page
    reader.read()
    reader.go("ol.steps a")
    while page.locator("#rows tbody tr:not(.decided)").count():
        words = (
            ["fix", "release", "hold"]
            if page.locator("#rows b.code:text('MTCH')").count()
            else ["fix", "hold"]
        )
        word = next(word for word in words if page.locator(f".bulk button[value={word}]").count())
        if word != "hold":
            reader.type(".bulk input[name=reason]", "seen on the invoice")
        reader.go(f".bulk button[value={word}]")
        reader.go("main form button.primary")
    reader.click("text=Review done")
    page.wait_for_url("**/release")
    page.wait_for_function("!document.querySelector('time:not([title])')")


@pytest.mark.nightly
def test_a_review_an_approval_and_a_question_of_the_auditor_take_as_long_as_they_may(page, desk, checked):
    page.goto(f"{desk.origin}/files/{checked}/review")
    assert page.locator("#rows tbody tr").count() == 19
    analyst, approver, auditor = Reader(page), Reader(page), Reader(page)
    reviewed(analyst)
    approver.read()
    assert page.locator(".overrides tbody tr").count() == 2
    approver.click("text=Approve and write the files")
    page.wait_for_selector("text=Payments to release")
    page.goto(desk.origin)
    auditor.go("nav >> text=Search")
    page.keyboard.type("P-004")
    auditor.clicks += 1
    with page.expect_navigation():
        page.keyboard.press("Enter")
    auditor.read()
    auditor.go("main table td a >> nth=-1")
    said = page.inner_text("main")
    assert "Released in release.simulated.csv, approved by Mara Ellery" in said
    assert "to release, seen on the invoice" in said
    counted = {name: reader.counted for name, reader in
               (("analyst", analyst), ("approver", approver), ("auditor", auditor))}  # fmt: skip
    may = {"analyst": (25, 150), "approver": (2, 40), "auditor": (3, 150)}
    assert [name for name, most in may.items() if any(map(int.__gt__, map(round, counted[name]), most))] == []


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "make", "row_count", "to_look_at_count"), [
    ("zahlungen.xlsx", german, 12, 0), ("payments.xml", message, 40, 0), ("bacs.txt", standard_18, 35, 35),
    ("large.csv", large, 5_000, 0),
])  # fmt: skip
def test_the_other_files_of_the_day_are_read_and_checked(desk, name, make, row_count, to_look_at_count):
    visitor = desk.visitor("Mara Ellery")
    at = visitor.checked(make(), name)
    said = visitor.get(f"/files/{at}/progress").text
    assert f"{row_count:,} payments; {to_look_at_count} to review." in said


@pytest.mark.nightly
def test_fifty_rows_are_at_most_1200_words(page, desk):
    payee = ("Averi Thornwood", "Personal", "001122", "00012345", "")
    lines = (f"P-{number},{','.join(payee)},{number + 10}.00,GBP,INV {number}" for number in range(60))
    at = desk.visitor("Mara Ellery").checked("\n".join((FIRST, *lines, "")).encode(), "sixty.csv")
    page.goto(f"{desk.origin}/files/{at}/review")
    assert page.locator("#rows tbody tr").count() == 50
    assert sum(len(text.split()) for text in page.evaluate(TEXTS, True)) <= 1_200
