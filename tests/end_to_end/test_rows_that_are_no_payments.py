"""Files as people make them: a title above the payments, totals below. From the run to the released file."""

import csv
import json

import openpyxl
import pytest
import xlsxwriter
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

HEADERS = ("payment_id", "name", "account_type", "sort_code", "account_number", "amount", "currency")
PAYMENTS = [
    ("P1", "Avery Thornwood", "Personal", "001122", "00012345", "100.00", "GBP"),
    ("P2", "Averi Thornwood", "Personal", "001122", "00012345", "50.00", "GBP"),
    ("P3", "Avery Thornwood", "Personal", "001122", "99999999", "25.50", "GBP"),
]
TITLE = [("Quillon Mills payroll",), ("June 2026", "", "prepared 2026-06-28"), ()]
FOOTER = [(), ("", "Total", "", "", "", "175.50"), ("Number of payments: 3",), ("Prepared by", "Zoe Marrow")]
ROWS = [*TITLE, HEADERS, *PAYMENTS, *FOOTER]
UNIT = {"csv": "line", "xlsx": "sheet row"}


@pytest.fixture(params=["csv", pytest.param("xlsx", marks=pytest.mark.nightly)])
def kind(request):
    return request.param


@pytest.fixture
def file(desk, kind):
    """Write these rows as a file of that kind."""

    def write(rows):
        path = desk.folder / f"payments.{kind}"
        if kind == "csv":
            with path.open("w", newline="", encoding="utf-8") as opened:
                csv.writer(opened, lineterminator="\n").writerows(rows)
        else:
            with xlsxwriter.Workbook(path) as book:
                sheet = book.add_worksheet("Payroll")
                for number, row in enumerate(rows):
                    sheet.write_row(number, 0, row)
        return path.name

    return write


def table(path):
    if path.suffix == ".xlsx":
        header, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
        return [dict(zip(header, row, strict=True)) for row in rows]
    with path.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def test_the_outcome_file_has_the_payments_and_the_summary_names_the_rest(desk, sandbox, file, kind):
    done = desk("run", file(ROWS), *sandbox.using("sandbox"))
    folder = desk.folder / "payments.precheck"
    assert done.status == 0
    assert [row["payment_id"] for row in desk.outcomes()] == ["P1", "P2", "P3"]
    read = json.loads((folder / "summary.json").read_text())["input"]
    assert read["row_count"] == 3
    assert read["positions"] == {"unit": UNIT[kind], "stretches": [[1, 5, 1]], "names": []}
    assert [(row["place"], row["kind"], row["agrees"]) for row in read["not_payments"]] == [
        (9, "total", True),
        (10, "count", True),
        (11, "note", None),
    ]
    unit = UNIT[kind].capitalize()
    for document in (done.out, (folder / "report.html").read_text()):
        assert said("footer.not_a_payment", place=f"{unit} 9") in document
        assert "Zoe Marrow" not in document
    assert f"Row 2 ({UNIT[kind]} 6)" in done.out


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_every_list_says_where_a_row_stands(desk, sandbox, file, kind):
    place = UNIT[kind]
    desk("run", file(ROWS), *sandbox.using("sandbox"))
    folder = desk.folder / "payments.precheck"
    desk("fix", "payments.precheck")
    desk("split", "payments.precheck", "--allow-simulated", *sandbox.using("sandbox")[:2])
    [attention] = table(folder / "attention.csv")
    assert (attention["check_row"], attention["check_place"]) == ("3", f"{place} 7")
    [correction] = table(folder / "corrections.csv")
    assert list(correction)[:2] == ["row", "place"]
    assert (correction["row"], correction["place"]) == ("2", f"{place} 6")
    reasons = table(folder / "hold_reasons.csv")
    assert [(row["row"], row["place"]) for row in reasons] == [("2", f"{place} 6"), ("3", f"{place} 7")]
    sheet = openpyxl.load_workbook(folder / "report.xlsx")["All"]
    assert [cell.value for cell in sheet[3]][:2] == ["Row", "Place"]
    assert [cell.value for cell in sheet["B"]][3:] == [f"{place} {number}" for number in (5, 6, 7)]
    told = desk("show", "payments.precheck", "--row", 3)
    assert f"row 3 ({place} 7)" in told.out
    assert json.loads(desk("show", "payments.precheck", "--row", 3, "--json").out)["place"] == f"{place} 7"
    assert f"rows 1 to 3 ({place} 5 to {place} 7)" in desk("show", "payments.precheck", "--row", 4).err


def test_fix_split_and_verify_take_up_such_a_file(desk, sandbox, file, kind):
    name = file(ROWS)
    desk("run", name, *sandbox.using("sandbox"))
    folder = desk.folder / "payments.precheck"
    fixed = desk(
        "fix", "payments.precheck", "--accept", "close_match", "--reason", "known", "--allow-simulated"
    )
    assert fixed.status == 0, fixed.err
    names = [row["name"] for row in table(folder / f"corrected.simulated.{kind}")]
    assert names == ["Avery Thornwood"] * 3
    split = desk("split", "payments.precheck", "--allow-simulated", *sandbox.using("sandbox")[:2])
    assert split.status == 0, split.err
    assert [row["payment_id"] for row in table(folder / f"release.simulated.{kind}")] == ["P1"]
    assert [row["payment_id"] for row in table(folder / f"hold.simulated.{kind}")] == ["P2", "P3"]
    verified = desk("verify", "payments.precheck", "--input", name)
    assert verified.status == 0, verified.err
    assert desk("report", "payments.precheck").status == 0
    assert desk("run", name, *sandbox.using("sandbox")).out.count("Finished already") == 1


def test_a_total_that_differs_is_told_everywhere_and_can_end_the_run_with_1(desk, sandbox, file, kind):
    name = file([*ROWS[:-3], ("", "Total", "", "", "", "200.00")])
    done = desk("run", name, "--fail-on", "TOTALS_DIFFER", *sandbox.using("sandbox"))
    assert done.status == 1
    differs = said("footer.total_differs", money="200.00", found="175.50 GBP")
    place = f"{UNIT[kind].capitalize()} 9"
    warned = said("footer.not_a_payment_because", place=place, label=' ("total")', why=differs)
    assert f"Warning: {warned}" in " ".join(done.out.split())
    folder = desk.folder / "payments.precheck"
    assert f"{differs}." in (folder / "report.html").read_text()
    facts = openpyxl.load_workbook(folder / "report.xlsx")["Summary"].iter_rows(values_only=True)
    assert any(row[0] == "Differs" and row[1].endswith(f"{differs}.") for row in facts)
    again = desk("run", name, "--fail-on", "warning", "--quiet", "--lang", "de", *sandbox.using("sandbox"))
    assert again.status == 1
    assert "TOTALS_DIFFER" in again.err
    assert "200,00, die Zahlungen ergeben aber 175,50 GBP" in again.err
    split = desk("split", "payments.precheck", "--allow-simulated", *sandbox.using("sandbox")[:2])
    assert f"{differs}." in " ".join(split.out.split())


def test_the_plan_names_the_rows_that_are_no_payments(desk, file, kind):
    done = desk("plan", file(ROWS))
    title = said("terminal.plan_title", payments="3 payments", accepted=3)
    assert "payments: 3 payments" in done.out or title in done.out
    assert said("footer.not_a_payment", place=f"{UNIT[kind].capitalize()} 9") in done.out


def test_an_account_above_the_headers_sends_nothing(desk, sandbox, file, kind):
    before = sandbox.call_count
    refused = desk("run", file([("From 20-11-22 12345678",), *ROWS]), *sandbox.using("sandbox"))
    assert refused.status == 65
    assert said("headers.account_above_header", unit=UNIT[kind], number=1, header=5) in refused.err
    assert sandbox.call_count == before
    assert not (desk.folder / "payments.precheck").exists()


def test_the_line_is_the_one_of_an_editor_where_cells_have_line_breaks(desk, sandbox):
    note = "two\nlines"
    rows = [{**dict(zip(HEADERS, row, strict=True)), "note": note} for row in PAYMENTS]
    desk.payments(rows, header=(*HEADERS, "note"))
    done = desk("run", "payments.csv", *sandbox.using("sandbox"))
    assert "Row 2 (line 4)." in done.out
    assert "row 3 (line 6): sandbox" in desk("show", "payments.precheck", "--row", 3).out
    [attention] = table(desk.folder / "payments.precheck" / "attention.csv")
    assert attention["check_place"] == "line 6"


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("row", [("-----",) * 7, HEADERS])
def test_a_separator_or_repeated_headers_among_payments_are_held_and_the_rest_is_released(
    row, desk, sandbox, file, kind
):
    again = ("P4", *PAYMENTS[0][1:5], "60.00", "GBP")
    name = file([HEADERS, ("---",) * 7, PAYMENTS[0], row, again, ("_____", *("",) * 6)])
    desk("run", name, *sandbox.using("sandbox"))
    folder = desk.folder / "payments.precheck"
    assert [(line["check_outcome"], line["check_code"]) for line in desk.outcomes()] == [
        ("match", "MTCH"),
        ("rejected", "ROW_BLANK"),
        ("match", "MTCH"),
    ]
    split = desk("split", "payments.precheck", "--allow-simulated", *sandbox.using("sandbox")[:2])
    assert split.status == 0, split.err
    released = table(folder / f"release.simulated.{kind}")
    assert [line["payment_id"] for line in released] == ["P1", "P4"]
    assert len(table(folder / f"hold.simulated.{kind}")) == 1
    assert desk("verify", "payments.precheck").status == 0


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_subtotals_are_in_no_sum_and_no_released_file(desk, sandbox, file, kind):
    again = ("P4", *PAYMENTS[0][1:5], "60.00", "GBP")
    one, two = ("Sales Total", "", "", "", "", "150.00"), ("IT Total", "", "", "", "", "85.50")
    rows = [HEADERS, *PAYMENTS[:2], one, (), PAYMENTS[2], again, two, ("Grand Total", *("",) * 4, "235.50")]
    done = desk("run", file(rows), *sandbox.using("sandbox"))
    folder = desk.folder / "payments.precheck"
    assert "TOTALS_DIFFER" not in done.err
    said = json.loads((folder / "summary.json").read_text())
    assert [(row["place"], row["agrees"]) for row in said["input"]["not_payments"]] == [
        (4, True),
        (8, True),
        (9, True),
    ]
    assert [line["payment_id"] for line in desk.outcomes() if line["payment_id"]] == ["P1", "P2", "P3", "P4"]
    split = desk("split", "payments.precheck", "--allow-simulated", *sandbox.using("sandbox")[:2])
    assert split.status == 0, split.err
    assert [line["payment_id"] for line in table(folder / f"release.simulated.{kind}")] == ["P1", "P4"]
    assert desk("verify", "payments.precheck").status == 0
