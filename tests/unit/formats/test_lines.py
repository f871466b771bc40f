"""Lines that no payment has, found while the file is read."""

import io

import pytest
from refusals import refused

from pipeline.errors import InputError, UsageError
from pipeline.files.expansion import RECORD_BYTES_MAX
from pipeline.formats.csv import load
from pipeline.formats.table import ReadingOptions

HEADERS = b"name,iban\n"
LONGEST = b"x" * RECORD_BYTES_MAX
PIECE = 4 * 1024**2


class Watched(io.BytesIO):
    """A file that knows how far it was read."""

    furthest = 0

    def read(self, size=-1):
        assert size > 0, "read as a whole"
        data = super().read(size)
        self.furthest = max(self.furthest, self.tell())
        return data


def look(data, encoding=None):
    file = Watched(data)
    assert load(file, ReadingOptions({}, encoding), where="payroll.csv") == data
    return file.furthest


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("shift", range(3))
def test_lines_of_any_number_are_read_to_the_end(line_end, shift):
    # The line ends stand across the border of two pieces, whatever the shift.
    line = b"x" * (1024 - len(line_end)) + line_end
    data = b"y" * shift + line * 9000
    assert look(data) == len(data)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("shift", range(3))
def test_a_line_too_long_is_told_by_its_number_wherever_pieces_are_cut(line_end, shift):
    line = b"x" * (1024 - len(line_end)) + line_end
    data = b"y" * shift + line * 9000 + LONGEST + b"x"
    with refused(InputError, "csv.line_too_long", where="payroll.csv", line=9001, record_bytes_max=65536):
        look(data + line_end)


def test_the_longest_line_is_read():
    data = HEADERS + (LONGEST[:-1] + b"\n") * 100 + LONGEST
    assert look(data) == len(data)


def test_nothing_is_read_after_a_line_too_long():
    file = Watched(HEADERS + b"x" * 3 * PIECE)
    with refused(InputError, "csv.line_too_long", line=2):
        load(file, ReadingOptions({}, None), where="payroll.csv")
    assert file.furthest <= PIECE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_in_utf_16_half_a_character_is_no_line_end(encoding):
    text = HEADERS.decode() + "\u010a" * 70_000
    with refused(InputError, "csv.line_too_long", line=2):
        look(text.encode(encoding), encoding)
    short = HEADERS.decode() * 10 + "Zo\u00eb,x"
    assert look(short.encode(encoding), encoding) == len(short.encode(encoding))


SHORT = b"x" * 1023 + b"\n"
CELLS = b'"a ""b""\nc",' * 100


@pytest.mark.parametrize(
    ("row", "encoding"),
    [
        (b'Ada,"' + SHORT * 9000, None),
        (b'Ada,"' + SHORT * 9000, "cp1252"),
        (b'Ada,"' + SHORT.replace(b"xxx", b'""x') * 9000, None),  # every quote in it is doubled
        (b'Ada,"closed" ' + SHORT * 9000, None),
    ],
)
@pytest.mark.parametrize("above", [b"", b'"Payments" of March\n'])
def test_a_row_that_goes_on_over_lines_is_refused_before_all_of_it_is_read(row, encoding, above):
    head = above + (HEADERS.replace(b"name", "empf\u00e4nger".encode("cp1252")) if encoding else HEADERS)
    file = Watched(head + row)
    with refused(
        InputError, "csv.quoted_cell_unclosed_or_long", record_bytes_max=65536, line=3 if above else 2
    ):
        load(file, ReadingOptions({}, encoding), where="payroll.csv")
    assert file.furthest <= PIECE


def test_a_row_of_cells_without_end_is_refused_before_all_of_it_is_read():
    file = Watched(HEADERS + CELLS * 10_000)
    with refused(InputError, "csv.quoted_cell_unclosed_or_long", record_bytes_max=65536):
        load(file, ReadingOptions({}, None), where="payroll.csv")
    assert file.furthest <= PIECE


def test_an_unclosed_row_far_below_is_told_by_its_line():
    rows = b'Ada,"a\nb"\r\n' * 800_000
    with refused(InputError, "csv.quoted_cell_unclosed_or_long", where="payroll.csv", line=1600002):
        look(HEADERS + rows + b'Ada,"' + SHORT * 100)


@pytest.mark.parametrize(
    "row",
    [
        b'"Ada ""A"" Exemplar","a\nb"\n',
        b'5" pipe,DE\n',  # a quote inside of a cell is text
        b'x;"y,DE\n',  # also where it stands after what could be a delimiter
        b'"' + b"x\n" * 32_000 + b'",DE\n',
    ],
)
@pytest.mark.parametrize("above", [b"", b'"Payments" of "March\n\n'])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_quotes_of_rows_that_end_refuse_nothing_wherever_pieces_are_cut(row, above, mark):
    data = mark + above + HEADERS + row * (2 * PIECE // len(row))
    assert look(data) == len(data)


def test_quotes_in_a_text_without_headers_are_left_to_who_looks_for_them():
    data = b'12-34-56,"12345678\n' * 10_000
    assert look(data) == len(data)


def test_in_utf_16_that_its_mark_tells_half_a_character_is_no_line_end():
    data = (HEADERS.decode() + "\u0a0d" * 10_000 + "\n").encode("utf-16")
    assert look(data) == len(data)


def test_an_encoding_that_is_not_known_is_told():
    with refused(UsageError, "csv.encoding_not_supported", encoding="klingon"):
        look(HEADERS, "klingon")


def test_an_empty_file_has_no_long_line():
    assert look(b"") == 0
