"""The workbook, read back by another library and as the XML that it is."""

import re
import zipfile

import openpyxl
import pytest

from pipeline.reports import workbook
from pipeline.reports.cells import TEXT_CHARS_MAX
from pipeline.reports.workbook import write_workbook
from pipeline.stages.read import read
from schemas.outcomes import Environment

MARKUP = '<r></r></is></c><c r="Z9"><f>1+1</f></c><c r="Z10" t="inlineStr"><is><r></r>'
"""Written as it is, it would be the library's markup, and a formula."""
HOSTILE = (
    MARKUP,
    "</t></is></c></row></sheetData>",
    'A & B <Ltd> "x"',
    "=1+1",
    '=HYPERLINK("https://invented.example","x")',
    "+44 20",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "https://invented.example/",
    "mailto:a@invented.example",
    "internal:Sheet1!A1",
    "{=1}",
    "<f>1</f>",
    "001122",
    "1E5",
    "\u202egpj.exe",
    "_x0041_",
)
CLOSE = {"outcome": "close_match", "code": "MBAM", "action": "fix_name"}
ANNM = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee"}


@pytest.fixture
def book_of(tmp_path, finish_run, outcomes_of):
    """Payee and amount of each row, and outcomes -> the workbook of their run."""

    def build(rows, outcomes, **options):
        file = tmp_path / "pay.csv"
        cells = ['"{}";00112233;"{}";GBP'.format(name.replace('"', '""'), amount) for name, amount in rows]
        lines = ["name;account_number;amount;currency", *cells, ""]
        file.write_text("\n".join(lines))
        folder = finish_run(file, outcomes_of(*outcomes), **options)
        return folder / "report.xlsx"

    return build


def column(sheet, header):
    at = [cell.value for cell in sheet[3]].index(header)
    return [row[at] for row in sheet.iter_rows(min_row=4)]


def parts(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_nothing_from_a_payment_file_or_a_bank_is_a_formula_or_a_link(book_of):
    rows = [(name, "1.00") for name in HOSTILE]
    path = book_of(rows, [{**CLOSE, "matched_name": name, "reason": name, "id": name} for name in HOSTILE])
    cells = [cell for sheet in openpyxl.load_workbook(path) for row in sheet.iter_rows() for cell in row]
    assert not [cell for cell in cells if cell.data_type == "f"]
    assert not [cell for cell in cells if cell.hyperlink]
    assert len([cell for cell in cells if cell.value == "=1+1"]) > 3
    everything = parts(path)
    assert not [name for name, xml in everything.items() if re.search(r"<f[ >]|<hyperlink|<ddeLink", xml)]
    assert not [name for name in everything if "externalLink" in name or "vba" in name]
    assert not [name for name, xml in everything.items() if 'TargetMode="External"' in xml]


def test_text_is_what_it_was_whatever_it_looks_like(book_of):
    texts = [MARKUP, "=1+1", "A & B <Ltd>", "001122", "1E5", "ends with </r>"]
    sheet = openpyxl.load_workbook(book_of([(text, "1.00") for text in texts], [ANNM] * len(texts)))["All"]
    assert [cell.value for cell in column(sheet, "Payee")] == texts


@pytest.mark.parametrize("text", ["_x0041_", "_x0041_x0042_", "__x0041_"])
def test_what_looks_like_an_escape_of_the_format_is_escaped(book_of, text):
    xml = parts(book_of([(text, "1.00")], [ANNM]))["xl/worksheets/sheet7.xml"]
    assert f">{text.replace('_x', '_x005F_x')}</t>" in xml


def test_a_long_text_is_cut_where_a_spreadsheet_would_refuse_it(book_of):
    sheet = openpyxl.load_workbook(book_of([("A" * 40_000, "1.00")], [ANNM]))["All"]
    assert column(sheet, "Payee")[0].value == "A" * TEXT_CHARS_MAX


def test_markup_stays_text_on_the_summary_too(tmp_path, summary_of, payments_of, outcomes_of):
    summary = summary_of(profile=MARKUP)
    summary = summary.model_copy(update={"input": summary.input.model_copy(update={"row_count": 1})})
    path = write_workbook(
        summary, payments_of({}).join(outcomes_of(ANNM), on="row"), tmp_path, outcome_name=""
    )
    assert not [name for name, xml in parts(path).items() if re.search(r"<f[ >]", xml)]
    assert openpyxl.load_workbook(path)["Summary"]["B6"].value.strip() == MARKUP


def test_summary_has_numbers_as_numbers_the_total_of_the_file_and_no_header_without_a_word(book_of):
    rows = [("Ada", "1.10"), ("Bram", "2.20"), ("Cora", "4.40")]
    sheet = openpyxl.load_workbook(book_of(rows, [CLOSE, ANNM, ANNM]))["Summary"]
    lines = [[cell.value for cell in line] for line in sheet.iter_rows()]
    assert lines[3][:2] == ["Payments", 3]
    outcomes = lines.index(["Outcome", "Rows", "Amount", "Currency", None])
    assert [line[:4] for line in lines[outcomes + 1 : outcomes + 4]] == [
        ["close match", 1, 1.1, "GBP"],
        ["no match", 2, 6.6, "GBP"],
        ["file", 3, 7.7, "GBP"],
    ]
    assert ["Code", "Rows", "What to do", "Outcome", "What it means"] in lines


def test_sheet_fix_shows_the_account_type_that_the_bank_told(book_of):
    codes = ("BANM", "PANM", "BAMM", "MBAM")
    actions = ("fix_account_type", "fix_account_type", "fix_name_and_account_type", "fix_name")
    outcomes = [{**ANNM, "code": code, "action": action} for code, action in zip(codes, actions, strict=True)]
    sheet = openpyxl.load_workbook(book_of([("Ada", f"{9 - at}.00") for at in range(4)], outcomes))["Fix"]
    found = [cell.value for cell in column(sheet, "Account type at the bank")]
    assert found == ["Business", "Personal", "Business", None]


def test_text_that_would_turn_the_direction_of_reading_is_shown_for_what_it_is(book_of):
    sheet = openpyxl.load_workbook(book_of([("Ada\u202enolliuQ", "1.00")], [ANNM]))["No match"]
    assert column(sheet, "Payee")[0].value == r"Ada\u202enolliuQ"


def test_accounts_are_text_and_amounts_are_numbers(book_of):
    sheet = openpyxl.load_workbook(book_of([("Ada", "1234.50")], [ANNM]))["All"]
    account, amount = column(sheet, "Account number")[0], column(sheet, "Amount")[0]
    assert (account.value, account.data_type) == ("00112233", "s")
    assert (amount.value, amount.data_type, amount.number_format) == (1234.5, "n", "#,##0.00")


@pytest.mark.parametrize(
    ("amount", "written"),
    [("0.10", "0.1"), ("9999999999999.99", "9999999999999.99"), ("12345.6780", "12345.678")],
)
def test_an_amount_is_written_digit_by_digit(book_of, amount, written):
    path = book_of([("Ada", amount)], [ANNM])
    assert [xml for xml in parts(path).values() if f"<v>{written}</v>" in xml or f"<v>{written}0</v>" in xml]


def test_an_amount_that_a_number_cannot_hold_stays_text_and_says_so(book_of):
    sheet = openpyxl.load_workbook(book_of([("Ada", "12345678901234.56")], [ANNM]))["No match"]
    assert column(sheet, "Amount")[0].value == "12,345,678,901,234.56 (as text: too long for a number)"


def test_every_sheet_has_its_rows_a_filter_a_frozen_header_and_a_choice_of_decisions(book_of):
    rows = [("Ada", "1.00"), ("Bram", "2.00"), ("Cora", "3.00")]
    book = openpyxl.load_workbook(
        book_of(rows, [CLOSE, ANNM, {**ANNM, "code": "BANM", "action": "fix_account_type"}])
    )
    assert book.sheetnames == ["Summary", "Fix", "No match", "Not possible", "Close match", "Rejected", "All"]
    payees = {sheet.title: [cell.value for cell in column(sheet, "Payee")] for sheet in book.worksheets[1:]}
    assert payees["Fix"] == ["Cora", "Ada"]  # the largest first
    assert payees["No match"] == ["Cora", "Bram"]
    assert payees["Close match"] == ["Ada"]
    assert payees["All"] == ["Ada", "Bram", "Cora"]
    for sheet in book.worksheets[1:]:
        assert sheet.auto_filter.ref.startswith("A3:")
        assert sheet.freeze_panes == "D4"
    choices = [choice for choice in book["Fix"].data_validations.dataValidation if choice.type == "list"]
    assert [choice.formula1 for choice in choices] == ['"release,fix,hold"']


@pytest.mark.parametrize(("environment", "says_so"), [("sandbox", True), ("production", False)])
def test_every_sheet_says_that_the_answers_are_simulated_where_they_are(book_of, environment, says_so):
    book = openpyxl.load_workbook(book_of([("Ada", "1.00")], [ANNM], environment=environment))
    said = [any("SIMULATED" in str(cell.value) for cell in sheet["A"][:2]) for sheet in book]
    assert said == [says_so] * 7


def test_a_sheet_that_is_too_long_names_the_outcome_file(tmp_path, summary_of, finish_run, outcomes_of):
    count = workbook.ALL_ROWS_MAX + 1
    file = tmp_path / "pay.csv"
    file.write_text("name,iban,amount\n" + "".join(f"Ada,x,{number}.00\n" for number in range(1, count + 1)))
    payments = read(file, mapping={}).payments
    outcomes = outcomes_of(*[{**ANNM, "environment": "test"}] * count)
    summary = summary_of(environment=Environment.TEST)
    summary = summary.model_copy(update={"input": summary.input.model_copy(update={"row_count": count})})
    book = openpyxl.load_workbook(
        write_workbook(summary, payments.join(outcomes, on="row"), tmp_path, outcome_name="outcomes.parquet"),
        read_only=True,
    )
    assert "they are in outcomes.parquet." in book["All"]["A1"].value
    assert book["All"].max_row == 3
    assert book["No match"]["A1"].value.startswith("No match (50,001, here the largest 10,000)")
    amounts = [row[5] for row in book["No match"].iter_rows(min_row=4, values_only=True)]
    assert (len(amounts), amounts[0], amounts[-1]) == (10_000, 50_001, 40_002)


def test_the_workbook_and_nothing_else_is_left_and_only_its_owner_can_read_it(book_of):
    path = book_of([("Ada", "1.00")], [ANNM])
    assert path.stat().st_mode & 0o777 == 0o600
    assert not list(path.parent.glob(".report*"))
