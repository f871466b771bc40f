"""Lines that no payment has, found while the file is read."""

import io

import pytest

from pipeline.errors import InputError, UsageError
from pipeline.files.unfolding import RECORD_BYTES_MAX
from pipeline.formats.csv.lines import read_lines

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
    assert read_lines(file, encoding=encoding, where="payroll.csv") == data
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
    with pytest.raises(
        InputError, match=r"^payroll\.csv line 9001: longer than 65536 bytes; correct the line$"
    ):
        look(data + line_end)


def test_the_longest_line_is_read():
    data = HEADERS + (LONGEST[:-1] + b"\n") * 100 + LONGEST
    assert look(data) == len(data)


def test_nothing_is_read_after_a_line_too_long():
    file = Watched(HEADERS + b"x" * 3 * PIECE)
    with pytest.raises(InputError, match="line 2: longer than"):
        read_lines(file, encoding=None, where="payroll.csv")
    assert file.furthest <= PIECE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_in_utf_16_half_a_character_is_no_line_end(encoding):
    text = HEADERS.decode() + "\u010a" * 70_000
    with pytest.raises(InputError, match="line 2: longer than"):
        look(text.encode(encoding), encoding)
    short = HEADERS.decode() * 10 + "Zo\u00eb,x"
    assert look(short.encode(encoding), encoding) == len(short.encode(encoding))


def test_utf_16_that_nobody_spoke_of_is_told_at_once():
    file = Watched(HEADERS.decode().encode("utf-16") * 1_000_000)
    with pytest.raises(InputError, match="the text is UTF-16; run again with --encoding utf-16"):
        read_lines(file, encoding=None, where="payroll.csv")
    assert file.furthest <= PIECE


def test_an_encoding_that_is_not_known_is_told():
    with pytest.raises(UsageError, match="--encoding klingon: not supported"):
        look(HEADERS, "klingon")


def test_an_empty_file_has_no_long_line():
    assert look(b"") == 0
