"""The workbook, read back by another library and as the XML that it is."""

import re
import textwrap
import zipfile

import openpyxl
import pytest
from openpyxl.utils import get_column_letter
from refusals import said

from pipeline.reports import workbook
from pipeline.reports.choices import RANGES_MAX, warned_in
from pipeline.reports.groups import ListedRows
from pipeline.reports.sheets import TEXT_CHARS_MAX
from pipeline.reports.workbook import write_workbook
from pipeline.stages.read import read
from schemas.outcomes import Environment
from schemas.review import Verdict
from schemas.summary import WarningCount

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
PRINTED_CHARS_MAX = 250
"""Across a page of A4, in the widths of a sheet: with more of them, print is too small to be read."""
CLOSE = {"outcome": "close_match", "code": "MBAM", "action": "fix_name"}
ANNM = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee"}


def listed(summary, rows, policy=None):
    """All payments of a run, for its workbook."""
    return ListedRows(rows, (), policy, warned_in(summary))


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


@pytest.mark.parametrize("text", [" Quillon", "Quillon "])
def test_a_space_at_an_end_is_kept(book_of, text):
    outcomes = [{**ANNM, "matched_name": name} for name in ("Averi", text)]
    xml = parts(book_of([("Averi", "1.00")] * 2, outcomes))["xl/worksheets/sheet7.xml"]
    assert f'<t xml:space="preserve">{text}</t>' in xml


def test_a_long_text_is_cut_where_a_spreadsheet_would_refuse_it(book_of):
    sheet = openpyxl.load_workbook(book_of([("A" * 40_000, "1.00")], [ANNM]))["All"]
    assert column(sheet, "Payee")[0].value == "A" * TEXT_CHARS_MAX


def test_markup_stays_text_on_the_summary_too(tmp_path, summary_of, payments_of, outcomes_of):
    summary = summary_of(profile=MARKUP)
    summary = summary.model_copy(update={"input": summary.input.model_copy(update={"row_count": 1})})
    path = write_workbook(
        summary, listed(summary, payments_of({}).join(outcomes_of(ANNM), on="row")), tmp_path, outcome_name=""
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
        book_of(
            rows,
            [
                {**CLOSE, "matched_name": "Ada Q"},
                ANNM,
                {**ANNM, "code": "BANM", "action": "fix_account_type"},
            ],
        )
    )
    assert book.sheetnames == ["Summary", "Fix", "No match", "Not possible", "Close match", "Rejected", "All"]
    payees = {sheet.title: [cell.value for cell in column(sheet, "Payee")] for sheet in book.worksheets[1:]}
    assert payees["Fix"] == ["Cora", "Ada"]  # the largest first
    assert payees["No match"] == ["Cora", "Bram"]
    assert payees["Close match"] == ["Ada"]
    assert payees["All"] == ["Ada", "Bram", "Cora"]
    for sheet in book.worksheets[1:]:
        assert sheet.auto_filter.ref.startswith("A3:")
        assert sheet.freeze_panes == "E4"
    choices = [choice for choice in book["Fix"].data_validations.dataValidation if choice.type == "list"]
    assert [choice.formula1 for choice in choices] == ['"release,fix,hold"']


def offers(sheet):
    """Row -> what its list of decisions offers, and what it says."""
    rows = {at: cell.value for at, cell in enumerate(sheet["A"][3:], start=4)}
    found = {}
    for choice in sheet.data_validations.dataValidation:
        for part in choice.sqref.ranges:
            for at in range(part.min_row, part.max_row + 1):
                found[rows[at]] = (choice.formula1.strip('"').split(","), choice.errorStyle, choice.prompt)
    return found


def test_the_list_of_a_row_offers_what_the_policy_can_follow_and_says_what_to_write_where(
    tmp_path, summary_of, payments_of, outcomes_of
):
    close = {**CLOSE, "matched_name": "Ada Q"}
    rejected = {"outcome": "rejected", "code": "NAME_MISSING", "action": "correct_row"}
    outcomes = [{}, close, {**close, "code": "CMTC"}, ANNM, rejected, {}]
    warned = [WarningCount(code="PAYMENT_REPEATED", row_count=1, rows=[6], every_row=[6])]
    policy = {"close_match": "review", "CMTC": "hold", "PAYMENT_REPEATED": "hold"}
    summary = summary_of(warning_codes=warned)
    summary = summary.model_copy(update={"input": summary.input.model_copy(update={"row_count": 6})})
    rows = payments_of(*[{"name": "Ada"}] * 6).join(outcomes_of(*outcomes), on="row")
    path = write_workbook(summary, listed(summary, rows, as_verdicts(policy)), tmp_path, outcome_name="")
    book = openpyxl.load_workbook(path)
    found = offers(book["All"])
    words = {row: offered for row, (offered, _, _) in found.items()}
    assert words == {
        1: ["release", "hold"],
        2: ["release", "fix", "hold"],
        3: ["fix", "hold"],
        4: ["hold"],
        5: ["hold"],
        6: ["hold"],
    }
    assert [found[row][2] for row in (1, 2)] == [None, None]
    for row, key in ((3, "CMTC"), (4, "no_match"), (6, "PAYMENT_REPEATED")):
        _, style, prompt = found[row]
        assert style == "warning"  # the policy may have been changed since
        table, keys = "[profiles.main.policy]", [f'{key} = "review"']
        assert prompt == said("sheet.how_to_release", held=[key], keys=keys, table=table)
    assert found[5][2].startswith(said("sheet.no_bank_was_asked"))
    summed = [[cell.value for cell in line] for line in book["Summary"].iter_rows()]
    [no_match] = [line for line in summed if line[0] == "no_match"]
    assert no_match[2:4] == ["hold", "hold"]
    assert no_match[4].endswith(said("sheet.how_to_release", keys=['no_match = "review"'], table=table))


def as_verdicts(policy):
    return {key: Verdict(verdict) for key, verdict in policy.items()}


def test_where_the_policy_is_not_known_the_list_offers_what_any_could_follow(book_of):
    book = openpyxl.load_workbook(book_of([("Ada", "1.00")] * 2, [ANNM, {"outcome": "deferred"}]))
    words = {row: offered for row, (offered, _, _) in offers(book["All"]).items()}
    assert words == {1: ["release", "hold"], 2: ["hold"]}
    last = str(book["Summary"][f"A{book['Summary'].max_row}"].value)
    assert said("sheet.policy_unknown") in last


def test_lists_of_a_long_sheet_are_in_few_places_each(tmp_path, summary_of, payments_of, outcomes_of):
    count = 2 * RANGES_MAX + 2
    summary = summary_of()
    summary = summary.model_copy(update={"input": summary.input.model_copy(update={"row_count": count})})
    rows = payments_of(*[{"name": "Ada"}] * count).join(outcomes_of(*[{}, ANNM] * (count // 2)), on="row")
    sheet = openpyxl.load_workbook(
        write_workbook(summary, listed(summary, rows, {}), tmp_path, outcome_name="")
    )["All"]
    lists = sheet.data_validations.dataValidation
    assert [len(choice.sqref.ranges) for choice in lists] == [RANGES_MAX, 1] * 2
    assert {row: words for row, (words, _, _) in offers(sheet).items()} == {
        row: ["release", "hold"] if row % 2 else ["hold"] for row in range(1, count + 1)
    }


def test_sheets_print_on_landscape_pages_of_one_width_with_their_headers_on_each(book_of):
    rows = [("Brackenfell Joinery and Daughters Limited", "1234567.89")] * 3
    close = {
        **CLOSE,
        "matched_name": "Brackenfell Joinery and Sons",
        "reason": "A sentence of some length. " * 3,
    }
    rejected = {"outcome": "rejected", "code": "ACCOUNT_NUMBER_DAMAGED", "action": "correct_row"}
    book = openpyxl.load_workbook(book_of(rows, [close, ANNM, rejected]))
    for sheet in book.worksheets:
        assert (sheet.page_setup.orientation, int(sheet.page_setup.paperSize)) == ("landscape", 9)  # A4
        assert (sheet.page_setup.fitToWidth, int(sheet.page_setup.fitToHeight)) == (None, 0)
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
    for sheet in book.worksheets[1:]:
        assert sheet.print_title_rows == "$1:$3"
        headers = [cell.value for cell in sheet[3]]
        printed = sheet[sheet.print_area.replace("$", "").partition("!")[2]][0]
        assert printed[-1].column == headers.index("Reason") + 1
        widths = [
            sheet.column_dimensions[letter].width
            for letter in map(get_column_letter, range(1, len(printed) + 1))
        ]
        assert sum(widths) < PRINTED_CHARS_MAX
    assert said("sheet.all_title") in book["All"]["A1"].value


def test_what_is_not_printed_makes_no_row_taller_and_no_code_or_header_is_cut(book_of):
    rejected = {"outcome": "rejected", "code": "ACCOUNT_NUMBER_DAMAGED", "action": "correct_row"}
    close = {**CLOSE, "code": "BAMM", "action": "fix_name_and_account_type"}
    book = openpyxl.load_workbook(book_of([("Ada", "1.00")] * 2, [rejected, close]))
    sheet = book["All"]
    at = {cell.value: cell for cell in sheet[3]}
    unprinted = [cell.column_letter for header, cell in at.items() if cell.column > at["Reason"].column]
    assert not any(sheet[f"{letter}4"].alignment.wrap_text for letter in unprinted)
    # A column is as wide as so many digits, and these capitals as 26.
    assert sheet.column_dimensions[at["Code"].column_letter].width >= 26 + 2
    for sheet in book.worksheets[1:]:
        for cell in sheet[3]:
            room = int(sheet.column_dimensions[cell.column_letter].width) - 3
            assert len(textwrap.wrap(cell.value, room)) <= 2, cell.value


def test_a_column_is_as_wide_as_its_contents_and_what_is_longer_is_wrapped(book_of):
    rows = [("Ada", "1234567890.12"), ("Quillon " * 12, "2.00")]
    sheet = openpyxl.load_workbook(book_of(rows, [ANNM] * 2))["All"]
    at = {cell.value: cell.column_letter for cell in sheet[3]}
    width = {header: sheet.column_dimensions[letter].width for header, letter in at.items()}
    assert width["Amount"] >= len("1,234,567,890.12")
    assert width["Code"] < 10 < width["Payee"] < 30
    payees = column(sheet, "Payee")
    assert all(cell.alignment.wrap_text for cell in payees)
    short, long = (sheet.row_dimensions[cell.row].height for cell in payees)
    assert short < long
    assert long >= 15 * len("Quillon " * 12) / width["Payee"]


@pytest.mark.parametrize(("environment", "says_so"), [("sandbox", True), ("production", False)])
def test_every_sheet_says_that_the_answers_are_simulated_where_they_are(book_of, environment, says_so):
    book = openpyxl.load_workbook(book_of([("Ada", "1.00")], [ANNM], environment=environment))
    said = [any("SIMULATED" in str(cell.value) for cell in sheet["A"][:2]) for sheet in book]
    assert said == [says_so] * 7


@pytest.mark.nightly
def test_a_sheet_that_is_too_long_names_the_outcome_file(tmp_path, summary_of, finish_run, outcomes_of):
    count = workbook.ALL_ROWS_MAX + 1
    file = tmp_path / "pay.csv"
    file.write_text("name,iban,amount\n" + "".join(f"Ada,x,{number}.00\n" for number in range(1, count + 1)))
    payments = read(file, mapping={}).payments
    outcomes = outcomes_of(*[{**ANNM, "environment": "test"}] * count)
    summary = summary_of(environment=Environment.TEST)
    summary = summary.model_copy(update={"input": summary.input.model_copy(update={"row_count": count})})
    book = openpyxl.load_workbook(
        write_workbook(
            summary,
            listed(summary, payments.join(outcomes, on="row")),
            tmp_path,
            outcome_name="outcomes.parquet",
        ),
        read_only=True,
    )
    there = said("sheet.rows_in_outcome_file", count=50_001, outcome_file="outcomes.parquet")
    assert there in book["All"]["A1"].value
    assert book["All"].max_row == 3
    largest = said("sheet.titled_largest", sheet="No match", count=50_001, shown=10_000)
    assert book["No match"]["A1"].value.startswith(largest)
    amounts = [row[6] for row in book["No match"].iter_rows(min_row=4, values_only=True)]
    assert (len(amounts), amounts[0], amounts[-1]) == (10_000, 50_001, 40_002)


def test_the_workbook_and_nothing_else_is_left_and_only_its_owner_can_read_it(book_of):
    path = book_of([("Ada", "1.00")], [ANNM])
    assert path.stat().st_mode & 0o777 == 0o600
    assert not list(path.parent.glob(".report*"))
