"""Excel in: the same payments from a workbook and from a CSV are the same outcomes."""

import zipfile
from datetime import date

import openpyxl
import pytest
import xlsxwriter
from refusals import said

from schemas.summary import Summary

pytestmark = pytest.mark.usefixtures("in_this_process")

ROWS = [
    ("payment_id", "name", "account_type", "sort_code", "account_number", "amount", "currency"),
    ("P1", "Avery Thornwood", "Personal", "001122", "00012345", 10.1, "GBP"),
    ("P2", "Rowan Blackmere", "Personal", "001122", "00012345", 25.5, "GBP"),
    ("P3", "Avery Thornwood", "Personal", "001122", "99999999", 7, "GBP"),
]


@pytest.fixture
def workbook(desk):
    """Write a workbook: sheet -> rows."""

    def write(name="payments.xlsx", **sheets):
        path = desk.folder / name
        with xlsxwriter.Workbook(path) as book:
            for title, rows in sheets.items():
                sheet = book.add_worksheet(title)
                for number, row in enumerate(rows):
                    sheet.write_row(number, 0, row)
        return path

    return write


def test_a_workbook_has_the_outcomes_of_the_same_payments_in_csv(desk, sandbox, workbook):
    workbook(Payroll=ROWS)
    desk.payments([dict(zip(ROWS[0], map(str, row), strict=True)) for row in ROWS[1:]], "same.csv", ROWS[0])

    finished = desk("run", "payments.xlsx", *sandbox.using("sandbox"))
    desk("run", "same.csv", *sandbox.using("sandbox"))

    assert finished.status == 0
    assert desk.stable_outcomes() == desk.stable_outcomes("same.precheck")
    assert {row["check_outcome"] for row in desk.outcomes()} > {"match"}
    said = Summary.model_validate_json((desk.folder / "payments.precheck" / "summary.json").read_bytes())
    assert (said.input.format, said.input.row_count, said.input.sheet) == ("excel", 3, None)


def test_a_workbook_written_by_another_program_is_read(desk, sandbox):
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append(row)
    book.save(desk.folder / "payments.xlsx")

    assert desk("run", "payments.xlsx", *sandbox.using("sandbox")).status == 0
    assert [row["account_number"] for row in desk.outcomes()] == ["00012345", "00012345", "99999999"]


def test_outcomes_of_a_workbook_can_be_parquet(desk, sandbox, workbook):
    workbook(Payroll=ROWS)

    desk("run", "payments.xlsx", "--format", "parquet", *sandbox.using("sandbox"))

    assert (desk.folder / "payments.precheck" / "outcomes.parquet").exists()
    assert not (desk.folder / "payments.precheck" / "outcomes.csv").exists()


def test_what_excel_damaged_is_named_and_nobody_is_asked_about_it(desk, sandbox, workbook):
    row = ("P1", "Avery Thornwood", "Personal", "001122", "00012345", 1, "GBP")
    damaged = {
        (3, 1122): "SORT_CODE_DAMAGED",
        (4, 12345): "ACCOUNT_NUMBER_DAMAGED",
        (3, "#N/A"): "CELL_ERROR",
        (3, "2003-02-01"): "SORT_CODE_DAMAGED",
        (1, "#REF!"): "CELL_ERROR",
    }
    rows = [(*row[:at], cell, *row[at + 1 :]) for at, cell in damaged]
    workbook(Payroll=[ROWS[0], *rows])
    before = sandbox.call_count

    finished = desk("run", "payments.xlsx", *sandbox.using("sandbox"))

    assert [row["check_code"] for row in desk.outcomes()] == list(damaged.values())
    assert sandbox.call_count == before
    assert finished.status == 0


def test_an_iban_that_excel_rounded_is_named(desk, sandbox, workbook):
    workbook(Payroll=[("name", "iban"), ("Avery Thornwood", 8.93704004405320e19)])

    desk("run", "payments.xlsx", *sandbox.using("sandbox"))

    assert [(row["iban"], row["check_code"]) for row in desk.outcomes()] == [
        ("8.9370400440532E+19", "IBAN_DAMAGED")
    ]


def test_another_sheet_of_a_finished_workbook_is_checked_and_not_called_finished(desk, sandbox, workbook):
    workbook(May=ROWS, June=ROWS[:3])
    assert desk("run", "payments.xlsx", *sandbox.using("sandbox")).status == 65

    may = desk("run", "payments.xlsx", "--sheet", "May", *sandbox.using("sandbox"))
    june = desk("run", "payments.xlsx", "--sheet", "June", *sandbox.using("sandbox"))
    again = desk("run", "payments.xlsx", "--sheet", "June", *sandbox.using("sandbox"))

    assert (may.status, june.status, again.status) == (0, 0, 0)
    assert len(desk.outcomes()) == 2
    assert "Finished already" in again.out
    assert "Finished already" not in june.err


def test_plan_and_columns_read_the_sheet_that_is_named(desk, sandbox, workbook):
    file = workbook(May=ROWS, Notes=[("to", "do")])

    columns = desk("columns", file, "--sheet", "May")
    planned = desk("plan", file, "--sheet", "May", *sandbox.using("sandbox"))

    assert (columns.status, planned.status) == (0, 0)
    assert "account_number" in columns.out
    assert said("terminal.plan_title", payments="3 payments", accepted=3) in planned.out


def test_a_sheet_of_a_csv_is_a_word_that_does_not_fit(desk):
    file = desk.payments([dict(zip(ROWS[0], map(str, ROWS[1]), strict=True))])

    finished = desk("columns", file, "--sheet", "May")

    assert finished.status == 2
    assert finished.sentences == [
        "precheck: "
        + said("stages.not_a_workbook", where="payments.csv")
        + "; "
        + said("advice.name_no_sheet")
    ]


def cells_of(path):
    return [[cell.value for cell in row] for row in openpyxl.load_workbook(path).active.iter_rows()]


def test_release_hold_and_corrected_files_of_a_workbook_are_workbooks(desk, sandbox, workbook):
    workbook(Notes=[("made by", "payroll")], Payroll=ROWS)
    assert desk("run", "payments.xlsx", *sandbox.using("sandbox")).status == 0
    folder = desk.folder / "payments.precheck"
    done = desk("split", folder, "--by", "Noor", "--allow-simulated", "--hold-undecided")
    assert "other sheets" in " ".join((done.out + done.err).split())
    release, hold = folder / "release.simulated.xlsx", folder / "hold.simulated.xlsx"
    rows = [list(ROWS[0]), *map(list, ROWS[1:])]
    kept = [cells_of(path)[1:] for path in (release, hold) if path.exists()]
    assert sorted(row for part in kept for row in part) == rows[1:]
    assert all(cells_of(path)[0] == rows[0] for path in (release, hold) if path.exists())
    assert openpyxl.load_workbook(hold).sheetnames == ["Payroll"]
    assert desk("verify", folder, "--input", "payments.xlsx").status == 0


def test_an_amount_that_is_a_number_stays_one_beside_texts_titles_and_dates(desk, sandbox):
    book = openpyxl.Workbook()
    book.active.append(["Ask Finance before changing anything"])
    sheet = book.create_sheet("Payroll")
    rows = [
        ["Payroll, to pay:", None, None, 2170.7],
        [],
        ["Employee name", "Sort code", "Account number", "Amount", "Pay date", "Reference"],
        ["Avery Thornwood", "001122", "00012345", 2145.1, date(2026, 11, 30), "0012"],
        ["Avery Thornwood", "00-11-22", "00012345", "25.60", date(2026, 11, 30), 13],
    ]
    for row in rows:
        sheet.append(row)
    sheet.merge_cells("A1:B1")
    book.save(desk.folder / "payments.xlsx")
    assert desk("run", "payments.xlsx", *sandbox.using("sandbox")).status == 0
    folder = desk.folder / "payments.precheck"
    assert desk("split", folder, "--by", "Noor", "--allow-simulated", "--hold-undecided").status == 0
    assert cells_of(folder / "release.simulated.xlsx")[1:] == [
        ["Avery Thornwood", "001122", "00012345", 2145.1, "2026-11-30", "0012"],
        ["Avery Thornwood", "00-11-22", "00012345", "25.60", "2026-11-30", "13"],
    ]


def test_no_file_that_is_handed_out_has_a_macro_or_an_embedded_file_of_the_upload(desk, sandbox, workbook):
    near = ("P4", "Averi Thornwood", *ROWS[1][2:])
    path, content = workbook(Payroll=[*ROWS, near]), b"known to every scanner"
    with zipfile.ZipFile(path, "a") as archive:
        for part in ("xl/vbaProject.bin", "xl/embeddings/oleObject1.bin", "xl/media/image1.png"):
            archive.writestr(part, content)
    assert desk("run", path, "--format", "xlsx", *sandbox.using("sandbox")).status == 0
    assert desk("split", "payments.precheck", "--allow-simulated").status == 0
    fixed = ("--accept", "close_match", "--reason", "judged", "--allow-simulated")
    done = desk("fix", "payments.precheck", *fixed)
    assert done.status == 0
    assert said("review.only_payment_sheet_written") + ". " in f"{' '.join(done.out.split())} "
    made = [*(desk.folder / "payments.precheck").iterdir()]
    assert len([file for file in made if file.suffix == ".xlsx"]) >= 4
    for file in made:
        assert content not in file.read_bytes(), file
        if file.suffix == ".xlsx":
            with zipfile.ZipFile(file) as archive:
                parts = {name: archive.read(name) for name in archive.namelist()}
            assert not [name for name in parts if "vba" in name or "embed" in name or content in parts[name]]


def test_outcomes_can_be_a_workbook_without_losing_zeros(desk, sandbox, workbook):
    workbook(Payroll=ROWS)
    assert desk("run", "payments.xlsx", "--format", "xlsx", *sandbox.using("sandbox")).status == 0
    folder = desk.folder / "payments.precheck"
    assert not (folder / "outcomes.csv").exists()
    header, *rows = cells_of(folder / "outcomes.xlsx")
    assert [row[header.index("account_number")] for row in rows] == [row[4] for row in ROWS[1:]]
    assert [row[header.index("amount")] for row in rows] == [10.1, 25.5, 7]
    assert desk("verify", folder, "--input", "payments.xlsx").status == 0
    assert desk("split", folder, "--by", "Noor", "--allow-simulated", "--hold-undecided").status == 0
    assert desk("run", "payments.xlsx", "--format", "xlsx", *sandbox.using("sandbox")).status == 0


def test_of_several_sheets_the_one_with_payee_and_account_is_read(desk, sandbox, workbook):
    workbook(Cover=[("Prepared by", "Noor"), ("Date", "2026-11-27")], Payroll=ROWS)
    assert desk("run", "payments.xlsx", *sandbox.using("sandbox")).status == 0
    assert len(desk.outcomes()) == 3
