"""Every format of payment files at the desk, from the upload to the corrected file that is checked again.

The same decisions in a workbook, by the commands, make the same files, byte by byte.
"""

import io
import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

import openpyxl
import polars as pl
import pytest
from standard_18 import File, Payment

SAMPLES = Path(__file__).parents[3] / "sample_data"
MIXED = pl.read_csv(SAMPLES / "payments_mixed.csv", infer_schema=False)
NAMES = ("Avery Thornwood", "Averi Thornwood", "Rowan Blackmere", "Imogen Farraday")
ACCOUNTS = (("001122", "00012345"),) * 3 + (("200415", "31926819"),)


class Case(NamedTuple):
    """A payment file, and a row of it for each decision."""

    name: str
    data: bytes
    fix: int
    release: int
    hold: int
    released: bytes
    """What stands in the file of the released payments."""
    again: str = "match"
    """What comes of the corrected row when it is asked about again."""


def in_memory(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def standard_18():
    rows = enumerate(zip(NAMES, ACCOUNTS, strict=True))
    return File(tuple(Payment(*account, 1_000 + n, name, f"PAY {n}") for n, (name, account) in rows)).data()


def as_people_keep_it():
    """A workbook with notes, merged titles, amounts that are numbers, and dates."""
    book = openpyxl.Workbook()
    book.active.append(["Ask Finance before changing anything"])
    sheet = book.create_sheet("Payments")
    sheet.append(["Payments of November", None, None, None, None, None, None, 2170.7])
    sheet.merge_cells("A1:C1")
    sheet.append([])
    sheet.append([*MIXED.columns, "pay date"])
    for row in MIXED.rows(named=True):
        sheet.append([*{**row, "amount": float(row["amount"])}.values(), date(2026, 11, 30)])
    return in_memory(book.save)


CASES = {
    "excel as people keep it": Case("kept.xlsx", as_people_keep_it(), 2, 10, 17, b"PAY-0010"),
    "excel": Case("november.xlsx", in_memory(MIXED.write_excel), 2, 10, 17, b"PAY-0010"),
    "parquet": Case("november.parquet", in_memory(MIXED.write_parquet), 2, 10, 17, b"PAY-0010"),
    "standard 18": Case("november.txt", standard_18(), 2, 4, 3, b"Imogen Farraday", "no_match"),
    # The name is corrected in the capitals of that standard, which is no name of a dummy account.
    "pain.001": Case("november.xml", (SAMPLES / "payments_pain001.xml").read_bytes(), 2, 8, 3, b"<PmtInf>"),
}
MADE = ("release.*", "hold.*", "corrected.*", "hold_reasons.csv", "corrections.csv")


@pytest.fixture(scope="module")
def rita(desk_here):
    return desk_here.visitor("Rita")


def said_of(case):
    return {
        case.fix: ("fix", "seen on the invoice"),
        case.release: ("release", "paid every month"),
        case.hold: ("hold", "not known to us"),
    }


def outcomes(visitor, desk_here, at):
    """The outcome of each row, from the file that the desk gives out."""
    [name] = re.findall(r"/download/(outcomes\.[a-z0-9]+)", visitor.get(f"/files/{at}/release").text)
    data = visitor.get(f"/files/{at}/download/{name}").body
    frame = (
        pl.read_parquet(io.BytesIO(data))
        if name.endswith("parquet")
        else pl.read_csv(io.BytesIO(data), infer_schema=False)
    )
    return frame["check_outcome"].to_list()


def made_by_hand(desk_here, case, folder):
    """The files that the commands make of the same decisions in a workbook."""
    desk = desk_here.desk
    environment = {"PRECHECK_CONFIG": str(desk.folder / "profiles.toml")}
    file = desk.file(case.name, case.data)
    words = ("--pain002",) if case.name.endswith(".xml") else ()
    done = desk("run", file, "--out", folder, "--fresh", "--quiet", *words, **environment)
    assert done.status == 0, done.err
    book = openpyxl.load_workbook(folder / "report.xlsx")
    sheet, said = book["All"], said_of(case)
    headers = [cell.value for cell in sheet[3]]
    for line in sheet.iter_rows(min_row=4):
        if line[0].value in said:
            for header, text in zip(("Decision", "Reason"), said[line[0].value], strict=True):
                line[headers.index(header)].value = text
    book.save(folder.parent / "decided.xlsx")
    for command in ("fix", "split"):
        decided = ("--decisions", folder.parent / "decided.xlsx", "--by", "Rita", "--allow-simulated")
        done = desk(command, folder, *decided, **environment)
        assert done.status == 0, done.err
    return {path.name: path.read_bytes() for pattern in MADE for path in folder.glob(pattern)}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.nightly) for name in CASES])
def test_the_way_of_a_file_by_desk_and_by_workbook(desk_here, rita, tmp_path, name):
    case = CASES[name]
    at = rita.checked(case.data, case.name)
    assert rita.get(f"/files/{at}").to.endswith("/review")
    for row, (decision, reason) in said_of(case).items():
        answer = rita.post(f"/files/{at}/rows/{row}", {"decision": decision, "reason": reason})
        assert answer.status == 303, (row, answer.text)
    assert rita.post(f"/files/{at}/hand-over").status == 303
    assert rita.approve(at).status == 303
    page = rita.get(f"/files/{at}/release").text
    lacking = {"excel as people keep it": ["Only", "Lines"], "excel": ["Only"]}
    assert re.findall(r"Note: (\w+)", page) == lacking.get(name, [])
    offered = re.findall(r"/download/([a-z0-9_.]+)", page)
    by_desk = {one: rita.get(f"/files/{at}/download/{one}").body for one in offered}
    wanted = {"release", "hold", "corrected", "hold_reasons", "corrections", "manifest", "approvals"}
    assert wanted <= {one.partition(".")[0] for one in offered}
    assert any(one.startswith("pain002") for one in offered) is (name == "pain.001")
    [release] = [one for one in offered if one.startswith("release.")]
    if release.endswith("xlsx"):
        [*_, sheet] = openpyxl.load_workbook(io.BytesIO(by_desk[release]))
        assert case.released.decode() in {cell for row in sheet.iter_rows(values_only=True) for cell in row}
        filled = [cell for row in sheet.iter_rows() for cell in row if cell.value is not None]
        numbers = {sheet.cell(1, cell.column).value for cell in filled if cell.data_type != "s"}
        assert numbers == ({"amount"} if name == "excel as people keep it" else set())
    elif not release.endswith("parquet"):
        assert case.released in by_desk[release]
    verified = rita.post(f"/files/{at}/verify").text
    assert "Nothing was changed." in verified

    by_hand = made_by_hand(desk_here, case, tmp_path / "hand")
    assert len(by_hand) == len(MADE)
    assert by_hand == {one: by_desk[one] for one in by_hand}

    again = rita.post(f"/files/{at}/check-again").to.split("/")[2]
    columns = rita.post(f"/files/{again}/columns", {"then": "plan"})
    assert columns.to.endswith("/plan"), rita.get(f"/files/{again}/columns").text
    assert "saved by answers from the previous run" in rita.get(f"/files/{again}/plan").text
    rita.check(again)
    assert outcomes(rita, desk_here, at)[case.fix - 1] == "close_match"
    assert outcomes(rita, desk_here, again)[case.fix - 1] == case.again


def test_every_sheet_of_a_workbook_can_be_chosen(desk_here, rita):
    book = openpyxl.Workbook()
    book.active.title = "Cover"
    book.active.append(["Payments of November"])
    pay = book.create_sheet("Pay run")
    for line in [MIXED.columns, *MIXED.head(3).rows()]:
        pay.append(line)
    at = rita.file(in_memory(book.save), "two_sheets.xlsx")
    by_itself = rita.get(f"/files/{at}/columns").text  # the one sheet that has payees and accounts
    assert "payment_id" in by_itself
    assert "cannot be read this way" not in by_itself
    said = {"sheet": "Pay run", "then": "plan"}
    assert rita.post(f"/files/{at}/columns", said).to.endswith("/columns?read=anew")
    assert rita.post(f"/files/{at}/columns", said).to.endswith("/plan")
    assert "3 payments" in rita.get(f"/files/{at}/plan").text
    book["Cover"].append(["Name", "IBAN", "Amount"])
    both = rita.get(f"/files/{rita.file(in_memory(book.save), 'both.xlsx')}/columns").text
    choices = re.findall('name="sheet" value="([^"]*)" required> [^<]*<small>([^<]*)</small>', both)
    assert choices[0] == ("Cover", "Name, IBAN, Amount")
    assert choices[1][1].startswith("payment_id, name, account_type")
    book["Cover"].delete_rows(2)
    wrong = rita.file(in_memory(book.save), "two_sheets.xlsx")
    rita.post(f"/files/{wrong}/columns", {"sheet": "Nothing", "then": "plan"})
    page = rita.get(f"/files/{wrong}/columns").text
    assert re.findall('type="radio" name="sheet" value="([^"]*)"', page) == ["Cover", "Pay run"]
