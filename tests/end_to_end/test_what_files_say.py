"""Whatever a payment file says of itself is told with its rows: totals, batches, what is set aside."""

import json
from pathlib import Path

import openpyxl
import pytest
from bank_files import bank_file
from paymentfiles.pain001 import Batch, Dialect, Payment, document
from refusals import said
from standard_18 import File
from standard_18 import Payment as Credit

pytestmark = pytest.mark.usefixtures("in_this_process")

IMOGEN = Payment(name="Imogen Farraday", iban="DE89370400440532013000", amount="20.00")
XML = document((Batch((IMOGEN,), id="SALARIES"), Batch((IMOGEN,), id="REFUNDS")), Dialect())
CUT_NAME = "Brakenfell Joinery"
"""Fills the 18 characters of a Standard 18 file."""
DEBIT = Credit(code="17", name="TEASEL GARDENS LTD")
BACS = File(
    (
        Credit(sort_code="001122", account="55779911", name=CUT_NAME),
        Credit(originator="40000177777777"),
        DEBIT,
    ),
    contras=False,
).data()


def lying_trailer(data):
    """With another number of credits than there are."""
    lines = data.split(b"\r\n")
    return b"\r\n".join(line[:37] + b"0000009" + line[44:] if line[:4] == b"UTL1" else line for line in lines)


LIES = {
    "sum of a batch": (
        *("pay.xml", XML.replace(b"<CtrlSum>20.00<", b"<CtrlSum>20.01<", 1)),
        "says 20.01 (PmtInf[1]/CtrlSum)",
    ),
    "trailer of Standard 18": ("pay.bac", lying_trailer(BACS), "says 9 (UTL1, number of credits) but has 2"),
    "header of a layout": (
        *("pay.csv", bank_file("lloyds").replace(b"PAYROLL,3,", b"PAYROLL,4,")),
        "says 4 (line 1, number of payments) but has 3",
    ),
    "trailer of a layout": (
        *("pay.csv", bank_file("santander").replace(b"9012,3", b"9012,4")),
        "says 4 (line 5, number of payments) but has 3",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_total_that_differs_is_told_before_anything_is_sent(desk, lie):
    name, data, said = LIES[lie]
    file = desk.file(name, data)

    planned = desk("plan", file, "--json")

    lines = desk("plan", file).out.splitlines()
    assert [line.partition(":")[0] for line in lines].count("TOTALS_DIFFER") == 1
    warnings = [line for line in lines if line.startswith("Warning: The file")]
    assert [said in line for line in warnings] == [True]
    controls = json.loads(planned.out)["controls"]
    assert [one["agrees"] for one in controls].count(False) == 1
    assert said in controls[0]["difference"]["text"]


@pytest.fixture(scope="module")
def run(tmp_path_factory, sandbox):
    """A run of each format: the folder, and how the command ended."""
    from desk import Desk

    _, configuration, *profile = sandbox.using("sandbox")
    business = Path(configuration).with_name("business.toml")
    business.write_text(Path(configuration).read_text().replace('"Personal"', '"Business"'))

    def of(name, data):
        desk = Desk(tmp_path_factory.mktemp("format"))
        using = ("--config", business, *profile)
        finished = desk("run", desk.file(name, data), *using, "--fail-on", "TOTALS_DIFFER")
        return desk.folder / "pay.precheck", finished

    return {
        "pay.xml": of("pay.xml", XML.replace(b"<NbOfTxs>2<", b"<NbOfTxs>3<", 1)),
        "pay.bac": of("pay.bac", BACS),
    }


def summary_in(folder):
    return json.loads((folder / "summary.json").read_text())


def test_a_run_tells_a_total_that_differs_everywhere_and_can_fail_on_it(run):
    folder, finished = run["pay.xml"]
    where = {"file": said("formats.the_file"), "where": "GrpHdr/NbOfTxs"}
    differs = said("formats.control_differs", stated=3, found=2, **where) + "."

    assert finished.status == 1
    assert f"Warning: {differs}" in finished.out
    assert "TOTALS_DIFFER: " in finished.out
    assert summary_in(folder)["input"]["warning_codes"] == ["TOTALS_DIFFER"]
    assert summary_in(run["pay.bac"][0])["input"]["warning_codes"] == []
    assert differs in (folder / "report.html").read_text()
    cells = [row[1].value for row in openpyxl.load_workbook(folder / "report.xlsx")["Summary"]]
    assert differs in cells
    assert summary_in(folder)["input"]["controls"][0]["difference"]["text"] == differs
    assert run["pay.bac"][1].status == 0


def test_every_batch_has_its_totals_and_every_row_its_batch(run):
    folder, _ = run["pay.xml"]

    batches = summary_in(folder)["batches"]
    book = openpyxl.load_workbook(folder / "report.xlsx")
    page = (folder / "report.html").read_text()

    assert [(one["batch"], one["location"], one["row_count"]) for one in batches] == [
        ("SALARIES", "PmtInf[1]", 1),
        ("REFUNDS", "PmtInf[2]", 1),
    ]
    assert [[cell.value for cell in row] for row in book["Batches"]][3:] == [
        ["SALARIES", "PmtInf[1]", 1, batches[0]["to_look_at_count"], 20, "EUR"],
        ["REFUNDS", "PmtInf[2]", 1, batches[1]["to_look_at_count"], 20, "EUR"],
    ]
    headers, *rows = [[cell.value for cell in row] for row in book["All"]][2:]
    place, batch = headers.index("Place"), headers.index("Batch")
    assert [(row[place], row[batch]) for row in rows] == [
        ("PmtInf[1]/CdtTrfTxInf[1]", "SALARIES"),
        ("PmtInf[2]/CdtTrfTxInf[1]", "REFUNDS"),
    ]
    assert page.count("SALARIES") == 2  # in its row, and in the table of batches


def test_the_account_of_the_payer_is_whole_in_the_outcome_file_alone(run):
    folder, _ = run["pay.bac"]
    whole, masked = "400001 88888888", "400001 **8888"

    assert whole in (folder / "outcomes.csv").read_text()
    assert masked in summary_in(folder)["batches"][0]["batch"]
    page = (folder / "report.html").read_text()
    assert masked in page
    assert whole not in page
    sheet = openpyxl.load_workbook(folder / "report.xlsx")["All"]
    cells = [cell.value for row in sheet for cell in row if isinstance(cell.value, str)]
    assert any(cell.endswith(masked) for cell in cells)
    assert not any(whole in cell for cell in cells)


def test_what_is_set_aside_is_told_and_never_checked(run):
    folder, finished = run["pay.bac"]
    set_aside = said(
        "formats.lines_not_checked", count=1, what="direct debit", code=" (code 17)", lines="line 7"
    )

    summary = summary_in(folder)
    assert summary["input"]["row_count"] == 2
    assert [(one["kind"], one["lines"]) for one in summary["input"]["set_aside"]] == [("direct debit", [7])]
    assert set_aside in finished.out
    assert set_aside in (folder / "report.html").read_text()
    assert set_aside in [row[1].value for row in openpyxl.load_workbook(folder / "report.xlsx")["Summary"]]
    assert "TEASEL GARDENS" not in (folder / "outcomes.csv").read_text()


def test_a_close_match_on_a_name_that_may_be_cut_says_so(run):
    folder, finished = run["pay.bac"]
    lines = (folder / "outcomes.csv").read_text().splitlines()

    [row] = [line for line in lines if CUT_NAME in line]

    assert "close_match" in row
    assert "Note: " + said("rule.name_truncated", "", length_max=18) in row
    assert said("warned.NAME_TRUNCATED") + ": 1 row" in finished.out
