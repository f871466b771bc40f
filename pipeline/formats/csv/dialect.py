"""Detect what a delimited file does not declare: encoding, delimiter and header line."""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.files.expansion import RECORD_BYTES_MAX
from pipeline.formats import encodings
from pipeline.formats.table import Dialect
from pipeline.headers.columns import is_sufficient, recognised
from pipeline.headers.heading import LINES_LOOKED_AT, Heading, column_names, heading_of
from pipeline.wording import Sentence

DELIMITERS = (",", ";", "|", "\t")


class Layout(NamedTuple):
    """How to read a delimited text: delimiter, encoding, quotes."""

    dialect: Dialect  # the dialect found in the lines, without the original encoding
    headers: tuple[str, ...]  # the header line; a blank header is named by its position, as column_7
    body_at: int  # the offset of the first row after the header line
    line_first: int  # the number of the line at `body_at`
    repeated_headers: tuple[int, ...]
    """The line numbers of repeated header lines between the header line and `body_at`."""

    @property
    def delimiter(self) -> str:
        """The character between the cells of a line."""
        assert self.dialect.delimiter is not None
        return self.dialect.delimiter


def to_utf_8(data: bytes, *, encoding: str | None, where: str) -> tuple[bytes, str]:
    """Return a text as UTF-8 without a byte order mark, and its encoding: the given one or the mark's.

    Raises UsageError: the encoding is not supported; InputError: the bytes are not text in this encoding, or
    are UTF-8 although another encoding is given. Nothing is lost: no byte becomes a question mark.
    """
    encoding = encoding or encodings.marked_encoding(data) or "utf-8"
    codec = encodings.codec_of(encoding)
    if encodings.is_utf_8(codec):
        text = data.removeprefix(codecs.BOM_UTF8)
        if not text.isascii() and (offset := encodings.not_utf_8_at(text)) is not None:
            raise encodings.not_in_encoding(text, offset, where=where)
        return text, "utf-8"
    encodings.refuse_false_encoding(data, encoding, where=where)
    encodings.refuse_other_encoding(data, encoding, where=where)
    try:
        return data.decode(codec).removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").encode(), encoding
    except UnicodeError as error:
        offset = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise encodings.not_in_encoding(data, offset, where=where, encoding=encoding) from None


def find_layout(text: bytes, mapping: Mapping[str, str] | None, *, where: str) -> Layout:
    """Find the delimiter and the header line of a UTF-8 text without a byte order mark.

    Blank lines and titles may precede the header line; the delimiter with the most known headers is used.
    Headers named by `--map` count as known; without a mapping the header line is the first.

    Raises InputError: the file is empty, has no header line or an account above it, or repeats a header.
    """
    if not text or text.isspace():
        raise InputError(Sentence("csv.file_empty", where=where))
    # Cutting inside a character is harmless: the lines read here are far shorter, or refused.
    head = text[: RECORD_BYTES_MAX * 2].decode(errors="ignore")
    best = max(
        (_candidate(head, delimiter, mapping) for delimiter in DELIMITERS),
        key=lambda candidate: (candidate.sufficient, candidate.known_count, len(candidate.heading.cells)),
    )
    heading, lines = best.heading, best.lines
    if any("\0" in cell for cell in heading.cells):
        encoding = encodings.wide_encoding_of("".join(heading.cells))
        advice = Sentence("csv.give_csv_or_parquet"), Sentence("advice.read_as_if_text", choices=[encoding])
        raise InputError(Sentence("csv.nul_bytes_in_header", where=where), advice=advice)
    first, numbers = [line.cells for line in lines], [line.number for line in lines]
    headers = column_names(heading, first, numbers, mapping, where=where, unit="line")
    last = lines[heading.end - 1]
    body_at, line_first = (last.end, last.next_number) if heading.end else (0, 1)
    repeated = tuple(lines[index].number for index in heading.repeated)
    has_line, cells = heading.stated(headers)
    header = text[: lines[heading.start].end]
    line_end = next((end for end in ("\r\n", "\r") if header.endswith(end.encode())), "\n")
    dialect = Dialect(best.delimiter, line_end=line_end, header_line=has_line, header_cells=cells)
    return Layout(dialect, headers, body_at, line_first, repeated)


class _Line(NamedTuple):
    """One of the first lines, or several if a quoted cell spans them."""

    cells: tuple[str, ...]
    number: int  # the line where it starts
    end: int  # the offset after it
    next_number: int


class _Candidate(NamedTuple):
    delimiter: str
    lines: list[_Line]
    heading: Heading
    known_count: int
    sufficient: bool


def _candidate(head: str, delimiter: str, mapping: Mapping[str, str] | None) -> _Candidate:
    """Return the header line under this delimiter."""
    lines = list(_first_lines(head, delimiter))
    if not lines:
        return _Candidate(delimiter, [], Heading(0, (), 0, ()), 0, sufficient=False)
    cells = [line.cells for line in lines]
    heading = heading_of(cells, mapping)
    known = recognised(heading.cells, mapping or {})
    return _Candidate(delimiter, lines, heading, len(known), is_sufficient(known))


def _first_lines(head: str, delimiter: str) -> Iterator[_Line]:
    texts = list(io.StringIO(head, newline=""))
    reader = csv.reader(texts, delimiter=delimiter)
    end = read_count = 0
    try:
        for cells in islice(reader, LINES_LOOKED_AT):
            end += sum(len(text.encode()) for text in texts[read_count : reader.line_num])
            yield _Line(tuple(cells), read_count + 1, end, reader.line_num + 1)
            read_count = reader.line_num
    except csv.Error:
        return
