"""Files without a header line, or with blank and repeated headers: from the run to the released file."""

import json
import re
from pathlib import Path

import openpyxl
import pytest
from refusals import said

from schemas.columns import ColumnsRead

pytestmark = pytest.mark.usefixtures("in_this_process")

ROWS = (
    "001122,00012345,Avery Thornwood,100.00\n001122,00012345,Averi Thornwood,50.00\nx,,Rowan Blackmere,1.00\n"
)
MAPS = [
    f"--map={field}=#{at}" for at, field in enumerate(("sort_code", "account_number", "name", "amount"), 1)
]


def test_a_file_without_headers_is_asked_corrected_and_released_without_headers(desk, sandbox):
    (desk.folder / "payments.csv").write_text(ROWS)
    done = desk("run", "payments.csv", *MAPS, *sandbox.using("sandbox"))
    assert done.status == 0, done.err
    assert [row["check_outcome"] for row in desk.outcomes()] == ["match", "close_match", "rejected"]
    assert list(desk.outcomes()[0])[:4] == ["column_1", "column_2", "column_3", "column_4"]

    folder = desk.folder / "payments.precheck"
    fixed = desk(
        "fix", folder, "--accept", "close_match", "--reason", "the bank says so", "--allow-simulated"
    )
    assert fixed.status == 0, fixed.err
    [corrected] = folder.glob("corrected*.csv")
    assert corrected.read_text() == ROWS.replace("Averi", "Avery")

    split = desk("split", folder, "--allow-simulated", *sandbox.using("sandbox")[:2])
    assert split.status == 0, split.err
    assert (folder / "release.simulated.csv").read_text() == ROWS.splitlines(keepends=True)[0]
    assert (folder / "hold.simulated.csv").read_text() == "".join(ROWS.splitlines(keepends=True)[1:])
    assert desk("verify", folder).status == 0
    assert "Finished already" in desk("run", "payments.csv", *MAPS, *sandbox.using("sandbox")).out


STATED = ["", "Name", "Sort code", "", "Account number", "Note", "Amount", "Note", ""]


def rows_below_stated():
    payments = [line.split(",") for line in ROWS.splitlines()]
    cells = [["", name, code, "", number, "", amount, "INV 7", ""] for code, number, name, amount in payments]
    cells[2][0], cells[2][-1] = "z", "q"  # in the file to hold alone
    return cells


def test_blank_and_repeated_headers_are_written_as_they_were(desk, sandbox):
    lines = [";".join(cells) + "\r\n" for cells in (STATED, *rows_below_stated())]
    (desk.folder / "payments.csv").write_text("".join(["Wages\r\n", *lines]), newline="")
    folder = checked_corrected_and_divided(desk, sandbox, "payments.csv")
    assert ";Note (column 8);column_9;" in (folder / "outcomes.csv").read_text()
    written = [(folder / f"{name}.simulated.csv").read_bytes().decode() for name in ("release", "hold")]
    assert written == ["".join(lines[:2]), "".join([lines[0], *lines[2:]])]
    corrected = (folder / "corrected.simulated.csv").read_bytes().decode()
    assert corrected == "".join(lines).replace("Averi", "Avery")


def test_blank_and_repeated_headers_of_a_workbook_are_written_as_they_were(desk, sandbox):
    book = openpyxl.Workbook()
    for cells in (STATED, *rows_below_stated()):
        book.active.append([cell or None for cell in cells])
    book.save(desk.folder / "payments.xlsx")
    folder = checked_corrected_and_divided(desk, sandbox, "payments.xlsx")
    headers = [
        [cell.value or "" for cell in openpyxl.load_workbook(folder / f"{name}.simulated.xlsx").active[1]]
        for name in ("corrected", "hold", "release")
    ]
    # Readers skip an empty column at either side of a sheet unless it has a header.
    assert headers == [STATED, STATED, ["column_1", *STATED[1:-1], "column_9"]]


def checked_corrected_and_divided(desk, sandbox, name):
    """Run, fix and split a file; the folder."""
    done = desk("run", name, *sandbox.using("sandbox"))
    assert done.status == 0, done.err
    folder = desk.folder / "payments.precheck"
    words = "--accept", "close_match", "--reason", "the bank says so", "--allow-simulated"
    assert desk("fix", folder, *words).status == 0
    split = desk("split", folder, "--allow-simulated", "--json", *sandbox.using("sandbox")[:2])
    assert split.status == 0, split.err
    [note] = json.loads(split.out)["notes"]
    assert note.startswith(
        "Lines above" if name.endswith(".csv") else said("review.only_payment_sheet_written")
    )
    assert desk("verify", folder).status == 0
    assert desk("columns", folder / f"corrected.simulated{Path(name).suffix}").status == 0
    return folder


def test_a_file_without_headers_says_how_to_name_its_columns(desk):
    (desk.folder / "payments.csv").write_text(ROWS)
    refused = desk("run", "payments.csv")
    assert refused.status == 65
    assert said("headers.looks_like_payment", at="line 1") in refused.err
    assert "--map sort_code=#1 --map account_number=#2 --map name=#3 --map amount=#4" in refused.err
    assert not (desk.folder / "payments.precheck").exists()


def test_columns_shows_a_table_by_place_of_a_file_without_headers(desk):
    (desk.folder / "payments.csv").write_text(
        "Mills Ltd,Avery Thornwood,00-11-22,00012345,100.00\n"
        "Mills Ltd,Rowan Blackmere,20-04-15,31926819,1.00\n"
    )
    shown = desk("columns", "payments.csv")
    assert shown.status == 65
    for line in (
        r"^#1 +- +the same in every row: a text, or your own name +Mills Ltd *$",
        r"^#2 +name +its cells look like names; --map name=#2 +Avery Thornwood; Rowan Blackmere *$",
        r"^#3 +sort_code +its cells look like sort codes; --map sort_code=#3 +00-11-22; 20-04-15 *$",
    ):
        assert re.search(line, shown.out, re.MULTILINE), line
    [words_shown] = shown.sentences
    assert words_shown.endswith("--map name=#2 --map sort_code=#3 --map account_number=#4 --map amount=#5")

    told = ColumnsRead.model_validate_json(desk("columns", "payments.csv", "--json").out)
    assert said("headers.looks_like_payment") in told.refusal
    assert [(column.header, column.field, column.map) for column in told.columns[:2]] == [
        ("#1", None, None),
        ("#2", "name", "name=#2"),
    ]
    assert told.columns[1].values == ["Avery Thornwood", "Rowan Blackmere"]

    words = [f"--map={column.map}" for column in told.columns if column.map]
    followed = ColumnsRead.model_validate_json(desk("columns", "payments.csv", "--json", *words).out)
    assert followed.refusal is None
    assert [(column.header, column.field) for column in followed.columns] == [
        (column.header, column.field) for column in told.columns
    ]


def test_two_who_could_be_paid_are_candidates_by_place_in_a_workbook_too(desk):
    book = openpyxl.Workbook()
    for row in (("Avery Thornwood", "Rowan Blackmere", "001122", "00012345"),
                ("Imre Falkner", "Luc Verrier", "200415", "31926819")):  # fmt: skip
        book.active.append(row)
    book.save(desk.folder / "payments.xlsx")
    told = ColumnsRead.model_validate_json(desk("columns", "payments.xlsx", "--json").out)
    assert [(column.header, column.field, column.disputed, column.others) for column in told.columns[:2]] == [
        ("#1", "name", True, ["#2"]),
        ("#2", "name", True, ["#1"]),
    ]
    assert told.refusal.startswith(said("headers.looks_like_payment", at="payments.xlsx sheet row 1"))
    assert told.refusal.endswith(
        "--map sort_code=#3 --map account_number=#4, and --map name=#1 or --map name=#2"
    )
