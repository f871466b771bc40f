"""Excel workbooks: what a cell becomes, which sheet is meant, and what is refused."""

import datetime as dt
import io
import zipfile

import openpyxl
import polars as pl
import pytest
import xlsxwriter
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from refusals import refused
from tables import for_each

from pipeline.errors import InputError
from pipeline.files.expansion import table_bytes_max
from pipeline.formats import excel
from pipeline.formats.excel.grid import number_text, parse
from pipeline.formats.table import ReadingOptions
from pipeline.wording import Sentence

HEADER = ("name", "sort_code", "account_number", "amount")
PAYMENT = ("Ada Quillon", "010203", "10000001", 12.5)


def sheets(**named):
    """A workbook of Excel's own form: sheet -> rows; a name that starts with `hidden` says what it is."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as workbook:
        date = workbook.add_format({"num_format": "dd/mm/yyyy hh:mm"})
        for name, rows in named.items():
            sheet = workbook.add_worksheet(name)
            if name.startswith("hidden"):
                sheet.hide()
            for row, cells in enumerate(rows):
                for column, cell in enumerate(cells):
                    if isinstance(cell, dt.datetime):
                        sheet.write_datetime(row, column, cell, date)
                    elif callable(cell):
                        cell(sheet, row, column)
                    else:
                        sheet.write(row, column, cell)
    return file.getvalue()


def formula(value):
    """A formula with the value that was calculated last."""
    return lambda sheet, row, column: sheet.write_formula(row, column, "=1+1", None, value)


def repacked(data, **parts):
    """The same workbook with other parts, such as xl/workbook.xml; None leaves one out."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        whole = {name: old.read(name) for name in old.namelist()} | parts
        for name, content in whole.items():
            if content is not None:
                new.writestr(name, content)
    return file.getvalue()


def read(data, sheet=None):
    """What `excel.read` gives, without its child process, which costs most of a test."""
    grid = pl.concat(parse(data, sheet=sheet, bytes_max=table_bytes_max(len(data))))
    return excel.table_of(grid, {}, "payroll.xlsx")


def read_confined(data, sheet=None):
    return excel.read(data, ReadingOptions({}, sheet=sheet), where="payroll.xlsx")


def column(*cells):
    """What cells become that stand below one another."""
    return read(sheets(Pay=[("name", "x"), *(("Ada", cell) for cell in cells)])).cells["x"].to_list()


SHEET = sheets(Pay=[HEADER, PAYMENT])
SHEET_XML = zipfile.ZipFile(io.BytesIO(SHEET)).read("xl/worksheets/sheet1.xml").decode()


def test_text_stays_the_text_it_is():
    texts = ["001122", " Zoë Quillon ", "1.5", "=1+1", "line\nline", "TRUE", "2026-11-20"]
    written = [lambda sheet, row, at, text=text: sheet.write_string(row, at, text) for text in texts]
    assert column(*written) == texts


def test_a_number_becomes_the_digits_that_are_shown_and_is_never_padded():
    shown = {
        12345: "12345",
        0.1 + 0.2: "0.3",
        1234.5: "1234.5",
        1e-7: "0.0000001",
        1e-12: "0.000000000001",
        -0.0: "0",
        -12.34: "-12.34",
        123456789012345: "123456789012345",
        8.93e19: "8.93E+19",
        1234567890123456: "1.23456789012346E+15",
    }
    assert column(*shown) == list(shown.values())
    assert column(True, False) == ["TRUE", "FALSE"]


def test_noise_of_binary_fractions_that_a_program_wrote_is_not_money():
    data = repacked(
        SHEET, **{"xl/worksheets/sheet1.xml": SHEET_XML.replace(">12.5<", ">0.30000000000000004<")}
    )
    assert read(data).cells["amount"].to_list() == ["0.3"]


def formatted(number, number_format):
    """The text of a number in a column with a number format, and true if a note reports its zeros."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ("name", "sort_code"))
        sheet.write_string(1, 0, "Ada")
        sheet.write_number(1, 1, number, workbook.add_format({"num_format": number_format}))
    table = read(file.getvalue())
    return table.cells["sort_code"].to_list(), table.zeros == ("sort_code",)


@for_each(
    ("number_format", "shown"),
    {
        "00-00-00": "01-02-03",
        "000000": "010203",
        "00000000;@": "00010203",
        r"00\-00\-00": "01-02-03",
        '00"-"00"-"00': "01-02-03",
        r"00\.00\.00": "01.02.03",
        r"0000\ 0000": "0001 0203",
        "[$-809]000000": "010203",
    }.items(),
)
def test_leading_zeros_are_read_if_the_number_format_shows_them(number_format, shown):
    assert formatted(10203, number_format) == ([shown], True)


@for_each(
    ("number", "number_format"),
    [
        (10203, "0"),  # as many digits as there are
        (10203, "General"),
        (10203, "#,##0"),
        (10203, "00.00"),  # decimals
        (10203, "00/00"),  # a fraction
        (10203, "0,000"),  # thousands
        (10203, "0000%"),
        (10203, "00E+00"),
        (10203, "0000"),  # fewer digits than the number has
        (-10203, "00000000"),
        (10203.5, "00000000"),  # shown rounded
        (10203, "[<=9999]00000000;General"),  # only for some numbers
    ],
)
def test_other_number_formats_do_not_change_numbers(number, number_format):
    assert formatted(number, number_format) == ([str(number)], False)


def test_number_formats_are_those_of_cells_not_of_named_or_conditional_styles():
    styles = zipfile.ZipFile(io.BytesIO(SHEET)).read("xl/styles.xml").decode()
    own = styles.replace(
        "<cellXfs", '<numFmts count="1"><numFmt numFmtId="0" formatCode="000000"/></numFmts><cellXfs'
    )
    late = styles.replace("</cellXfs>", '</cellXfs><dxfs><numFmt numFmtId="0" formatCode="000000"/></dxfs>')
    cells = SHEET_XML.replace(">12.5<", ">12<")
    amounts = [
        read(repacked(SHEET, **{"xl/styles.xml": each, "xl/worksheets/sheet1.xml": cells})).cells["amount"][0]
        for each in (own, late)
    ]
    assert amounts == ["000012", "12"]


def test_dates_become_iso_8601():
    whole, moment = dt.datetime(2003, 2, 1), dt.datetime(2003, 2, 1, 10, 30)  # noqa: DTZ001 (cells have no zone)
    assert column(whole, moment) == ["2003-02-01", "2003-02-01T10:30:00"]


@for_each("number", [2_958_466, 12_345_678, 98_190_561, 1e15])
def test_a_number_that_is_too_large_for_its_format_of_dates_stays_a_number(number):
    assert formatted(number, "yyyy-mm-dd") == ([number_text(number)], False)


def test_dates_of_the_other_calendar_are_the_same_dates():
    workbook = openpyxl.Workbook()
    workbook.epoch = CALENDAR_MAC_1904
    workbook.active.append(["name", "due"])
    workbook.active.append(["Ada", dt.date(2026, 11, 20)])
    file = io.BytesIO()
    workbook.save(file)
    assert read(file.getvalue()).cells["due"].to_list() == ["2026-11-20"]


def test_formulas_have_the_value_that_was_calculated_last_and_errors_their_name():
    assert column(formula("cached"), formula(2.5), formula("#N/A"), formula("#DIV/0!")) == [
        "cached",
        "2.5",
        "#N/A",
        "#DIV/0!",
    ]


def test_a_formula_that_nobody_calculated_is_no_empty_cell():
    with refused(InputError, "excel.formula_never_calculated", uncalculated_row=3):
        column("x", formula(""))


def test_a_title_and_empty_rows_may_stand_before_the_header():
    table = read_confined(sheets(Pay=[(), ("Payroll of March",), (), HEADER, PAYMENT]))
    assert table.cells.columns == list(HEADER)
    assert table.cells.rows() == [(*PAYMENT[:3], "12.5")]


def test_a_title_of_several_cells_is_not_taken_for_the_header():
    table = read(sheets(Pay=[("Payroll of March", "Acme Ltd"), ("Total", 12.5), HEADER, PAYMENT]))
    assert table.cells.columns == list(HEADER)
    assert table.cells.height == 1


def test_blank_rows_between_payments_stay_and_those_at_the_end_go():
    table = read(sheets(Pay=[HEADER, PAYMENT, (), PAYMENT, (" ",), ("", " ")]))
    assert table.cells["name"].to_list() == ["Ada Quillon", None, "Ada Quillon"]


def test_a_sheet_that_starts_in_another_corner_is_read_from_there():
    rows = [(), (None, None, *HEADER), (None, None, *PAYMENT)]
    assert read(sheets(Pay=rows)).cells.columns == list(HEADER)


def test_rows_with_merged_cells_are_named_and_no_others():
    def merged(sheet, row, column):
        sheet.merge_range(row, column, row + 1, column, "Ada")

    table = read(sheets(Pay=[HEADER, PAYMENT, (merged, "010203"), (None, "010203"), PAYMENT]))
    assert table.defects.to_list() == [None, "ROW_MERGED", "ROW_MERGED", None]


def test_the_only_visible_sheet_with_data_is_meant():
    assert read(sheets(Empty=[], hidden=[HEADER, PAYMENT, PAYMENT], Pay=[HEADER, PAYMENT])).cells.height == 1


def test_a_sheet_is_had_by_name_a_hidden_one_too():
    data = sheets(May=[HEADER, PAYMENT], hidden=[HEADER, PAYMENT, PAYMENT])
    assert read(data, sheet="May").cells.height == 1
    assert read(data, sheet="hidden").cells.height == 2


def named(*sheets):
    return Sentence("excel.sheets", sheets=[Sentence("excel.sheet", name=name) for name in sheets])


@pytest.mark.parametrize(
    ("data", "sheet", "sentence"),
    [
        (
            sheets(May=[HEADER, PAYMENT], June=[HEADER, PAYMENT]),
            None,
            Sentence("excel.several_sheets_with_data", listed=named("May", "June")),
        ),
        (sheets(May=[HEADER, PAYMENT]), "may", Sentence("excel.no_such_sheet", listed=named("May"))),
        (sheets(Pay=[], hidden=[HEADER, PAYMENT]), None, Sentence("excel.hidden_sheet", name="hidden")),
        (sheets(Pay=[]), "Pay", "excel.sheet_empty"),
        (sheets(Pay=[HEADER]), None, "excel.no_payment_rows"),
        (
            sheets(Pay=[PAYMENT, PAYMENT]),
            None,
            Sentence("headers.looks_like_payment", at="payroll.xlsx sheet row 1"),
        ),
        (
            sheets(Pay=[[f"c{number}" for number in range(1001)], PAYMENT]),
            None,
            Sentence("excel.too_many_columns", width=1001),
        ),
        (b"", None, "formats.file_empty"),
        (b"name,iban\na,b\n", None, "excel.not_a_workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), None, "excel.password_or_old_xls"),
        (repacked(SHEET, **{"content.xml": b"<office/>"}), None, "formats.workbook_kind_unreadable"),
        (SHEET[:-30], None, "excel.workbook_damaged"),
        (SHEET[:1000] + SHEET[1010:], None, "files.is_damaged"),
        (repacked(SHEET, **{"xl/workbook.xml": None}), None, "files.is_damaged"),
        (repacked(SHEET, **{"xl/worksheets/sheet1.xml": SHEET_XML[:-60]}), None, "files.is_damaged"),
    ],
    # A workbook tells when it was made: as the name of a test it would be another in each worker.
    ids=lambda value: "file" if isinstance(value, bytes) else None,
)
def test_what_is_no_readable_sheet_is_refused_with_a_sentence(data, sheet, sentence):
    with refused(InputError, sentence):
        read_confined(data, sheet)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<c r="D2"><v>12.5</v></c>', '<c r="D2" t="q"><v>12.5</v></c>'),  # a kind that does not exist
        ('<c r="D2"><v>12.5</v></c>', '<c r="D2"><v>twelve</v></c>'),
        ('<c r="D2"><v>12.5</v></c>', '<c r="D2"><v>inf</v></c>'),
        ('<c r="D2"', '<c r="XFE2"'),  # beyond the last column
        ('<c r="D2"', '<c r="D9999999"'),
        ("<worksheet", '<!DOCTYPE w [<!ENTITY a "aa">]><worksheet'),
    ],
)
def test_a_sheet_that_nobody_writes_is_damaged(before, after):
    assert before in SHEET_XML
    data = repacked(SHEET, **{"xl/worksheets/sheet1.xml": SHEET_XML.replace(before, after)})
    with refused(InputError, "files.is_damaged", where="payroll.xlsx"):
        read_confined(data)


def test_a_cell_in_each_corner_is_refused_before_it_takes_all_memory():
    corners = SHEET_XML.replace(
        "</sheetData>", '<row r="1048576"><c r="ALL1048576"><v>1</v></c></row></sheetData>'
    )
    with refused(InputError, "excel.cells_too_sparse"):
        read(repacked(SHEET, **{"xl/worksheets/sheet1.xml": corners}))


def test_macros_are_not_run_nor_pictures_unpacked(tmp_path):
    data = repacked(SHEET)
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/vbaProject.bin", b"no macro at all")
        archive.writestr("xl/media/image1.png", b"no picture")
    assert read(file.getvalue()).cells.height == 1


def test_a_part_that_stands_twice_is_damage_as_two_readers_may_take_different_ones():
    file = io.BytesIO(SHEET)
    with (
        zipfile.ZipFile(file, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        archive.writestr("xl/worksheets/sheet1.xml", SHEET_XML.replace("12.5", "99.5"))
    with refused(InputError, "files.is_damaged"):
        read_confined(file.getvalue())
