"""CSV and its relatives."""

import io
from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from refusals import refused
from tables import for_each

from pipeline.errors import InputError, UsageError
from pipeline.formats import csv as delimited
from pipeline.formats.table import Dialect, ReadingOptions, as_text
from pipeline.rules.unasked import ROW_TOO_LONG
from pipeline.wording import Sentence

HEADER = "name,iban,amount"


def read(text, mapping=None, encoding=None):
    data = text if isinstance(text, bytes) else text.encode()
    return delimited.read(data, ReadingOptions(mapping or {}, encoding), where="payroll.csv")


def rows(text, **options):
    return read(text, **options).cells.rows()


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_the_delimiter_is_found(delimiter):
    table = read(f"{HEADER}\nQuillon,GB1,1\n".replace(",", delimiter))
    assert table.cells.columns == ["name", "iban", "amount"]
    assert table.dialect.delimiter == delimiter


def test_a_delimiter_inside_a_quoted_header_does_not_mislead():
    table = read('name;iban;"a,b,c,d,e"\nQuillon;GB1;x\n')
    assert table.dialect.delimiter == ";"
    assert table.cells.columns == ["name", "iban", "a,b,c,d,e"]


def test_decimal_commas_do_not_mislead():
    assert rows("name;iban;amount\nQuillon;GB1;1.234,50\n") == [("Quillon", "GB1", "1.234,50")]


def test_leading_zeros_survive():
    text = "name,sort_code,account_number\nQuillon,001122,00012345\n"
    assert rows(text) == [("Quillon", "001122", "00012345")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_every_line_end_gives_the_same_rows(end):
    text = f"{HEADER}\nQuillon,GB1,1\nMarrow,GB2,2\n".replace("\n", end)
    assert rows(text) == [("Quillon", "GB1", "1"), ("Marrow", "GB2", "2")]


def test_mixed_line_ends_lose_no_row():
    assert len(rows(f"{HEADER}\r\na,1,1\rb,2,2\nc,3,3\r\nd,4,4")) == 4


def test_blank_lines_at_the_end_are_not_rows():
    assert len(rows(f"{HEADER}\na,1,1\n\n\r\n\n")) == 1


@for_each("after", ["", "\n", "\r\n", "\n\n\n", "\r\n\r\n"])
@for_each("header", [HEADER, 'name,iban,"amount\n(in\r\nEUR)"'])
@for_each("before", ["", "Payroll of June\n\n", "\r\n,,\r\n", '"Payroll\nof June"\n'])
def test_the_fast_road_is_taken_whatever_stands_around_the_rows(before, header, after):
    def never(*_):
        pytest.fail("the careful road was taken")

    data = f'{before}{header}\na,1,"1\n1"\nb,2,2{after}'.encode()
    table = delimited.read(data, ReadingOptions({}), where="payroll.csv", carefully=never)
    assert table.cells.rows() == [("a", "1", "1\n1"), ("b", "2", "2")]


def test_a_header_line_that_ends_otherwise_than_the_rows_takes_none_of_them():
    assert rows(f"{HEADER}\ra,1,1\nb,2,2\n") == [("a", "1", "1"), ("b", "2", "2")]
    assert rows(f"Payroll of June\r\r{HEADER}\na,1,1\nb,2,2\n") == [("a", "1", "1"), ("b", "2", "2")]


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("latin-1", "é" * 40_000),
        ("cp1252", "€" * 30_000),
        ("utf-16", "漢" * 30_000),
        ("utf-16", "\u010a" * 500_000),
    ],
)
@pytest.mark.parametrize("header", ["name,iban,note", 'name,iban,"note"'])
def test_a_row_is_as_long_as_its_utf_8_whatever_its_encoding(encoding, note, header):
    text = f"{header}\nQuillon,GB1,x\nMarrow,GB2,{note}\n"
    with refused(InputError, "csv.line_too_long", where="payroll.csv", line=3, record_bytes_max=65536):
        read(text.encode(encoding), encoding=encoding)


def test_a_blank_line_between_rows_is_a_row():
    table = read(f"{HEADER}\na,1,1\n\nb,2,2\n")
    assert table.cells.rows()[1] == (None, None, None)
    assert (table.defects.null_count(), table.ragged) == (3, ([], []))


def test_cells_missing_at_the_end_are_empty_and_told():
    table = read(f"{HEADER}\na,1,1\nb,2\n")
    assert table.cells.rows() == [("a", "1", "1"), ("b", "2", None)]
    assert (table.defects.null_count(), table.ragged) == (2, ([1], []))


def test_no_cell_of_a_long_row_is_lost():
    table = read(f"{HEADER}\nMarrow, Ltd,1,1,x\nb,2,2\n")
    assert table.cells.columns == ["name", "iban", "amount", "extra_1", "extra_2"]
    assert table.cells.rows() == [("Marrow", " Ltd", "1", "1", "x"), ("b", "2", "2", None, None)]
    assert table.defects.to_list() == [ROW_TOO_LONG, None]


def test_empty_cells_too_many_at_the_end_are_nothing_and_told():
    table = read(f"{HEADER}\na,1,1,,\nb,2,2\nc,3,3, ,\n")
    assert table.cells.rows() == [("a", "1", "1", None), ("b", "2", "2", None), ("c", "3", "3", " ")]
    assert (table.defects.null_count(), table.ragged) == (3, ([], [0]))


@pytest.mark.parametrize("end", ["\x1a", "\n\x1a", "\r\n\x1a\r\n", "\n\x1a\x1a"])
def test_ctrl_z_is_the_end(end):
    assert read(f"{HEADER}\na,1,1\nb,2,2{end}").cells.rows() == [("a", "1", "1"), ("b", "2", "2")]


def test_an_extra_column_does_not_take_the_name_of_another():
    table = read("name,iban,extra_1\na,1,x,y\n")
    assert table.cells.columns == ["name", "iban", "extra_1", "extra_2"]


@pytest.mark.nightly
def test_a_long_row_late_in_a_long_file_is_kept():
    text = f"{HEADER}\n" + "a,1,1\n" * 150_000 + "b,2,2,late\n"
    table = read(text)
    assert table.cells["extra_1"].drop_nulls().to_list() == ["late"]
    assert table.cells.height == table.defects.len() == 150_001


def test_quoted_cells_keep_delimiters_quotes_and_line_ends():
    text = f'{HEADER}\n"Marrow, Q",GB1,"1\r\n2"\n"say ""hi""",GB2,"a\rb"\n'
    assert rows(text) == [("Marrow, Q", "GB1", "1\r\n2"), ('say "hi"', "GB2", "a\rb")]


def test_a_quote_inside_a_cell_is_text():
    assert rows(f'{HEADER}\n5" pipe,GB1,1\n') == [('5" pipe', "GB1", "1")]


def test_an_empty_cell_is_null_quoted_or_not():
    assert rows(f'{HEADER}\n,"",1\n') == [(None, None, "1")]


def test_a_nul_in_a_cell_is_left_for_the_rules():
    assert rows(f"{HEADER}\na\0b,GB1,1\n") == [("a\0b", "GB1", "1")]


def test_a_byte_order_mark_that_starts_a_cell_is_kept():
    assert rows(f"{HEADER}\n\ufeffa,GB1,1\n") == [("\ufeffa", "GB1", "1")]


def test_title_and_blank_lines_before_the_header_are_skipped():
    assert rows(f"Payroll of June\n\n,,\n{HEADER}\na,1,1\n") == [("a", "1", "1")]


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize(
    "before",
    ["Payroll run, November\n", "Company,Acme\nDate,2026-11-21\nTotal,2.00\n\n", "Name;Acme Ltd;;\nIBAN\n"],
)
def test_titles_of_several_cells_are_not_taken_for_the_header(before, delimiter):
    table = read(f"{before}{HEADER}\na,1,1\n".replace(",", delimiter))
    assert table.cells.columns == ["name", "iban", "amount"]
    assert table.cells.rows() == [("a", "1", "1")]


def test_headers_that_nobody_knows_are_the_first_line_of_several_cells():
    assert read("Payroll\nwer,wohin\nQuillon,GB1\n").cells.columns == ["wer", "wohin"]


def test_line_numbers_count_the_lines_before_the_header():
    with refused(InputError, "csv.quoted_cell_malformed", line=5):
        read(f'Payroll of June\n\n{HEADER}\na,1,1\n"b,2,2\n')


def test_blank_headers_are_named_by_their_position():
    assert read("name,,iban, \na,1,2,3\n").cells.columns == ["name", "column_2", "iban", "column_4"]


def test_columns_with_one_header_are_named_by_their_positions_too():
    assert read("name,note,iban,note\na,b,c,d\n").cells.columns == [
        "name",
        "note (column 2)",
        "iban",
        "note (column 4)",
    ]
    clash = read("note,note,note (column 2)\na,b,c\n").cells.columns
    assert clash == ["column_1", "column_2", "column_3"]


def test_a_mapped_header_helps_to_find_the_delimiter():
    assert read("Who;Where\na;b\n", mapping={"name": "Who", "iban": "Where"}).dialect.delimiter == ";"


def test_utf_8_with_byte_order_mark_is_read():
    assert (
        read(b"\xef\xbb\xbf" + HEADER.encode() + "\nGrünwald,GB1,1\n".encode()).cells["name"][0] == "Grünwald"
    )


@pytest.mark.parametrize(
    "encoding", ["cp1250", "latin-1", "utf-16", "UTF-16LE", "windows-1252", "mac-roman", "gb18030", "cp037"]
)
def test_other_encodings_are_read_when_named(encoding):
    table = read(f"{HEADER}\nGrünwald,GB1,1\n".encode(encoding), encoding=encoding)
    assert table.cells.rows() == [("Grünwald", "GB1", "1")]
    assert table.dialect.encoding == encoding


@pytest.mark.parametrize("line_count", [0, 300_000])
def test_a_byte_that_is_not_utf_8_is_refused_with_its_line(line_count):
    body = b"Gruen,GB1,1\n" * line_count + b"Gr\xfcnwald,GB1,1\n"
    with refused(
        InputError,
        Sentence("csv.byte_not_in_encoding", encoding="UTF-8", line=line_count + 2),
        Sentence("advice.reading", encoding="cp1252", cells=["Grünwald"]),
    ) as error:
        read(b"name,iban,nome\n" + body)
    assert "nwald" not in str(error.value)


@pytest.mark.parametrize("shift", range(4))
def test_characters_of_several_bytes_are_read_wherever_they_stand_in_a_large_file(shift):
    names = ["Ö" * shift + "Zoë 漢𝄞", *["漢𝄞é漢𝄞"] * 20_000]
    table = read(HEADER + "x" * shift + "\n" + "".join(f"{name},GB1,1\n" for name in names))
    assert table.cells.to_series(0).to_list() == names


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-be"])
def test_utf_16_and_32_are_known_by_their_marks_and_written_back_with_them(encoding):
    mark = "" if encoding in ("utf-16", "utf-32") else "\ufeff"
    data = f"{mark}{HEADER}\nZoë,1,1\n".encode(encoding)
    table = read(data)
    assert (table.cells.row(0)[0], table.dialect.encoding) == ("Zoë", encoding)
    assert delimited.rewrite(table.cells, io.BytesIO(), table.dialect, where="f") == data


def test_utf_8_that_is_said_to_be_something_else_is_refused():
    with refused(InputError, "csv.file_is_utf_8", "advice.read_as_utf_8", encoding="latin-1"):
        read(f"{HEADER}\nZoë,1,1\n", encoding="latin-1")
    assert read(f"{HEADER}\nZoe,1,1\n", encoding="latin-1").cells.row(0)[0] == "Zoe"


def test_utf_16_without_any_mark_is_refused():
    with refused(
        InputError, "csv.nul_bytes_in_header", Sentence("advice.read_as_if_text", choices=["utf-16-le"])
    ):
        read(f"{HEADER}\na,1,1\n".encode("utf-16-le"))


def test_a_byte_unknown_to_the_named_encoding_is_refused_not_replaced():
    with refused(
        InputError,
        Sentence("csv.byte_not_in_encoding", encoding="cp1252", line=2),
        Sentence("advice.reading", encoding="cp850", cells=["ü"]),
    ):
        read(HEADER.encode() + b"\n\x81,GB1,1\n", encoding="cp1252")


@pytest.mark.parametrize("encoding", ["ebcdic", "utf-7", "rot13", "zlib", "idna"])
def test_an_encoding_that_is_not_supported_is_a_usage_error(encoding):
    with refused(UsageError, "csv.encoding_not_supported", encoding=encoding):
        read(f"{HEADER}\na,1,1\n", encoding=encoding)


def like_payment(line):
    return Sentence("headers.looks_like_payment", at=f"payroll.csv line {line}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "csv.file_empty"),
        ("\n\r\n  \n", "csv.file_empty"),
        (HEADER, "csv.no_payment_rows"),
        (f"{HEADER}\n\n\n", "csv.no_payment_rows"),
        ("Quillon Marrow,112233,12345678,10.00\n", like_payment(line=1)),
        ("Quillon Marrow,Quillon Marrow,11-22-33\n", like_payment(line=1)),
        ("Payroll\n\nQuillon Marrow,112233,12345678,10.00\n", like_payment(line=3)),
        (",".join(f"h{i}" for i in range(1001)) + "\n1\n", "headers.too_many_columns"),
        (f"{HEADER}\n{',' * 1000}\n", Sentence("csv.line_has_too_many_cells", line=2, columns_max=1000)),
        ('name^iban\n"Marrow ""Q"""^GB1\n', "csv.each_line_one_cell"),
        (f'{HEADER}\na,1,1\n"Marrow,2,2\n', Sentence("csv.quoted_cell_malformed", line=3)),
        (f"{HEADER}\na,1,1\n{'x' * 70_000},2,2\n", Sentence("csv.line_too_long", line=3)),
        (HEADER + '\na,1,1\n"' + "x\n" * 35_000 + '",2,2\n', Sentence("places.rows", rows=["2"])),
        (HEADER + '\n"' + "x\n" * 70_000 + '",2\n', "csv.row_too_long"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_one_way_only_is_refused(text, sentence):
    with refused(InputError, sentence) as error:
        read(text)
    assert "Marrow" not in str(error.value)
    assert error.value.__cause__ is None


def test_written_cells_are_the_cells_that_were_read():
    text = f'{HEADER}\n"Marrow, Q",GB1,"1\r\n2"\n"say ""hi""",,"a\rb"\n = ,GB3,+1\n'
    cells = read(text).cells
    file = io.BytesIO()
    delimited.write(cells, file, column="name", dialect=Dialect(";"))
    again = read(file.getvalue())
    assert again.cells.equals(cells)
    assert again.dialect.delimiter == ";"


def test_typed_cells_are_written_as_text():
    table = pl.DataFrame(
        {
            "day": [date(2030, 1, 31)],
            "amount": [Decimal("1.50")],
            "tags": [["a", "b"]],
            "person": [{"age": 3}],
            "raw": [b"\x01\xff"],
            "paid": [True],
            "wait": [None],
        },
        schema_overrides={"wait": pl.Duration("ms"), "amount": pl.Decimal(10, 2)},
    )
    assert as_text(table).rows() == [("2030-01-31", "1.50", '["a", "b"]', '{"age": 3}', "01ff", "true", None)]


class ForgetfulFile(io.BytesIO):
    """A file that gives back something else than was written to it."""

    def __init__(self, written, read):
        super().__init__()
        self.written, self.read_back = written, read

    def read(self, size=-1):
        return super().read(size).replace(self.written, self.read_back)


@pytest.mark.parametrize("read_back", [b"", b"x", b"match\n", b"no_match"])
def test_a_file_that_does_not_hold_what_was_written_is_noticed(read_back):
    table = pl.DataFrame({"name": ["a", "b"], "check_outcome": ["match", "match"]})
    with pytest.raises(AssertionError, match="the written file"):
        delimited.write(
            table, ForgetfulFile(b"match", read_back), column="check_outcome", dialect=Dialect(",")
        )


def test_an_outcome_of_the_same_length_but_another_meaning_is_noticed():
    table = pl.DataFrame({"name": ["a", "b"], "check_outcome": ["match", "match"]})
    with pytest.raises(AssertionError, match="another check_outcome"):
        delimited.write(
            table, ForgetfulFile(b"match", b"hctam"), column="check_outcome", dialect=Dialect(",")
        )


@pytest.mark.parametrize(
    ("dialect", "mark", "codec"),
    [
        (Dialect(";", "utf-16", "\r\n", byte_order_mark=True, header_line=False), b"\xff\xfe", "utf-16-le"),
        (Dialect(";", "utf-8", "\r\n", byte_order_mark=True, header_line=False), b"\xef\xbb\xbf", "utf-8"),
        (Dialect(";", "cp1252", "\r\n", byte_order_mark=True, header_line=False), b"", "cp1252"),
        (Dialect(header_line=False)._replace(delimiter=";"), b"", "utf-8"),
    ],
)
def test_payments_without_headers_are_written_without_and_read_again_with_them(dialect, mark, codec):
    cells = pl.DataFrame({"name": ["Adä", "Bram"], "iban": ["x", "y;z"]})
    file = io.BytesIO()
    named = delimited.rewrite(cells, file, dialect, where="corrected.csv")
    assert file.getvalue() == mark + 'Adä;x\r\nBram;"y;z"\r\n'.encode(codec)
    assert delimited.read(named, ReadingOptions(None, dialect.encoding), where="f").cells.equals(cells)


def test_a_place_in_map_completes_a_header_line_of_which_too_little_is_known():
    text = "Worker,Zorblex code,Zorblex number\nAda Quillon,20-04-15,31926819\n"
    table = read(text, mapping={"sort_code": "#2", "account_number": "#3"})
    assert table.cells.columns[:3] == ["Worker", "Zorblex code", "Zorblex number"]
    assert table.cells.height == 1
