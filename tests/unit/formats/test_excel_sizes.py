"""Workbooks that are small as files and large as tables, and merged ranges without number."""

import io
import os
import time
import zipfile

import pytest
import xlsxwriter
from refusals import refused

from pipeline.errors import InputError, UsageError
from pipeline.formats import excel
from pipeline.formats.excel import decisions
from pipeline.formats.table import ReadingOptions
from pipeline.wording import Sentence

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
SHEET, TEXTS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
HEADER = ("name", "sort_code", "account_number", "note")
PAYMENT = ("Ada Quillon", "010203", "10000001")


def row(number, *cells):
    """A row of cells that have their text in them; a number stands for a text that cells share."""
    written = ""
    for at, cell in enumerate(cells):
        reference = f'r="{chr(65 + at)}{number}"'
        if isinstance(cell, int):
            written += f'<c {reference} t="s"><v>{cell}</v></c>'
        else:
            written += f'<c {reference} t="inlineStr"><is><t>{cell}</t></is></c>'
    return f'<row r="{number}">{written}</row>'


def workbook(*rows, after="", texts=(), padding=0):
    """A workbook of one sheet; the padding is a part that nobody reads."""
    usual, file = io.BytesIO(), io.BytesIO()
    with xlsxwriter.Workbook(usual, {"in_memory": True}) as book:
        book.add_worksheet("Pay").write(0, 0, "a text, so that there is a table of texts")
    written = {
        SHEET: f"<worksheet {MAIN}><sheetData>{''.join(rows)}</sheetData>{after}</worksheet>",
        TEXTS: f"<sst {MAIN}>{''.join(f'<si>{text}</si>' for text in texts)}</sst>",
    }
    with zipfile.ZipFile(usual) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, written.get(name, old.read(name)))
        new.writestr("xl/media/x", bytes(padding), zipfile.ZIP_STORED)
    return file.getvalue()


def merged(*references):
    ranges = "".join(f'<mergeCell ref="{reference}"/>' for reference in references)
    return f"<mergeCells>{ranges}</mergeCells>"


def read(data):
    return excel.read(data, ReadingOptions({}), where="payroll.xlsx")


def payments(count, *more):
    return (row(1, *HEADER), *(row(number, *PAYMENT, *more) for number in range(2, count + 2)))


LONG = "x" * 40_000
PAIR = f"<r><t>{LONG}</t></r><r><t>{LONG}</t></r>"


def too_long(row):
    return Sentence("files.row_too_long", where=f"sheet row {row}", record_bytes_max=65536)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: workbook(*payments(1, "x" * 65_537)), too_long(2)),
        (lambda: workbook(*payments(3), row(5, LONG, LONG)), too_long(5)),
        (lambda: workbook(*payments(2, 0), texts=[PAIR]), too_long(2)),
        (lambda: workbook(*payments(1), row(3, 0, 0), texts=[f"<t>{LONG}</t>"]), too_long(3)),
        # Cells of two rows that take turns.
        (
            lambda: workbook(*payments(3), *(row(number, 0) for number in (5, 6, 5, 6)), texts=[PAIR]),
            too_long(5),
        ),
        (lambda: workbook(*payments(9, 0)), "files.is_damaged"),  # no such text
    ],
)
def test_no_row_is_longer_than_that_of_a_payment(made, sentence):
    with refused(InputError, sentence, where="payroll.xlsx"):
        read(made())


def test_rows_whose_cells_take_turns_are_added_up_too():
    turns = "".join(f'<c r="{column}{number}" t="s"><v>0</v></c>' for column in "EFG" for number in (2, 3))
    data = workbook(*payments(2), f'<row r="2">{turns}</row>', texts=[f"<t>{'x' * 30_000}</t>"])
    with refused(InputError, too_long(2)):
        read(data)


def test_a_text_that_many_cells_share_counts_for_each_of_them():
    data = workbook(*payments(10_000, 0), texts=[f"<t>{'x' * 60_000}</t>"])
    with refused(InputError, "files.cells_expand_too_large"):
        read(data)


def test_how_a_word_is_read_aloud_is_no_part_of_the_text():
    text = f'<t>{LONG}</t><rPh sb="0" eb="1"><t>{LONG}</t></rPh>'
    assert read(workbook(*payments(1, 0), texts=[text])).cells["note"].to_list() == [LONG]


@pytest.mark.parametrize(
    "references",
    [
        ["A1:XFD1048576"] * 100_000,
        pytest.param(
            [f"A{number}:C{number % 9000 + 9000}" for number in range(1, 100_000)], marks=pytest.mark.nightly
        ),
        pytest.param([f"A{number}:B{number}" for number in range(1, 100_000)], marks=pytest.mark.nightly),
    ],
)
def test_merged_ranges_cost_what_they_cover_and_not_their_number_times_the_rows(references):
    rows = payments(10_000)
    plain = seconds(workbook(*rows), "ROW_MERGED", 0)
    many = seconds(workbook(*rows, after=merged(*references), padding=50_000), "ROW_MERGED", 10_000)
    assert many < 10 * plain + 5


def seconds(data, defect, count):
    started = time.monotonic()
    assert (read(data).defects == defect).sum() == count
    return time.monotonic() - started


def test_overlapping_ranges_name_each_of_their_rows_once():
    after = merged("A3:B4", "C4:C6", "A5:A5", "A9:B2000", "B1:D1")
    defects = read(workbook(*payments(9), after=after)).defects.to_list()
    assert [number for number, defect in enumerate(defects, start=2) if defect] == [3, 4, 5, 6, 9, 10]


def test_more_merged_ranges_than_rows_are_refused():
    data = workbook(*payments(1), after=merged(*["A1:B1"] * 250_001), padding=50_000)
    with refused(InputError, "excel.too_many_merged_ranges", merged_max=250000):
        read(data)


# Decisions


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: b"", "excel.not_a_workbook"),
        (lambda: b"\xd0\xcf\x11\xe0" + bytes(100), "excel.password_or_old_xls"),
        (lambda: workbook(row(1, *HEADER), " " * 30_000_000), "excel.unpacks_too_large"),
        (
            lambda: workbook(*payments(10_000, 0), texts=[f"<t>{'x' * 60_000}</t>"]),
            "files.cells_expand_too_large",
        ),
        (lambda: workbook(row(1, "x" * 70_000)), too_long(1)),
        (
            lambda: workbook(row(1, "a"), '<row r="1048576"><c r="ALL1048576"><v>1</v></c></row>'),
            Sentence("excel.cells_too_sparse", filled_count=2),
        ),
        (lambda: workbook(row(1, *HEADER)) + b"PK", "excel.not_workbook_of_current_answers"),
    ],
)
def test_a_workbook_of_decisions_is_under_the_guards_of_one_of_payments(tmp_path, made, sentence):
    (tmp_path / "decided.xlsx").write_bytes(made())
    with refused(InputError, sentence, where="decided.xlsx"):
        decisions.read(tmp_path / "decided.xlsx", run_id="any", row_count=1)


def test_decisions_in_what_is_no_file_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "decided.xlsx")
    with refused(UsageError, "excel.decisions_not_a_file", path="decided.xlsx"):
        decisions.read(tmp_path / "decided.xlsx", run_id="any", row_count=1)
