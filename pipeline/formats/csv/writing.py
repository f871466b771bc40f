"""Write delimited text: outcomes, and payment files in the dialect of their input.

Every cell is kept. Quotes are written only if a cell needs them, not as in the input. Lines before the header
line are dropped, because their meaning is unknown.
"""

import codecs
import csv
import io
from typing import IO

import polars as pl
from polars.exceptions import PanicException, PolarsError

from pipeline.errors import OutputError
from pipeline.formats.csv.tally import CLOSED_SETS, Body, tally, text_bytes
from pipeline.formats.encodings import is_utf_8
from pipeline.formats.table import Dialect, column_as_text
from pipeline.wording import Sentence

SUFFIX = ".csv"

_DELIMITER = ","  # the delimiter of an output file whose input had none
_SPREADSHEET_LINE_END = "\r\n"  # line end of payment files whose input had none
_ROWS_WRITTEN_AT_ONCE = 25_000
_MARKED = ("utf-16", "utf-32")
"""Encodings that need a mark for the byte order: they are written with one, little endian."""
_MARKS = {
    **dict.fromkeys(("utf-8", "utf-8-sig"), codecs.BOM_UTF8),
    "utf-16": codecs.BOM_UTF16_LE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32": codecs.BOM_UTF32_LE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


def write_lines(table: pl.DataFrame, file: IO[bytes], dialect: Dialect, *, quotes_all: bool = False) -> None:
    """Write the rows of a table as UTF-8 without a mark, ignoring the dialect's encoding and mark.

    Columns beyond the dialect's header cells have no header: only rows with cells in them are longer.
    """
    if dialect.header_cells:
        cells = [cell or None for cell in dialect.header_cells]
        below = dialect._replace(header_line=False, header_cells=())
        if dialect.header_line:
            names = pl.DataFrame([cells], schema=table.columns[: len(cells)], orient="row")
            write_lines(names, file, below, quotes_all=quotes_all)
        if len(cells) < table.width:
            file.write(_ragged(table, len(cells), below).encode())
            return
        dialect = below
    table.write_csv(
        file,
        separator=dialect.delimiter or _DELIMITER,
        line_terminator=dialect.line_end or "\n",
        include_header=dialect.header_line,
        quote_style="always" if quotes_all else "necessary",
    )


def _ragged(table: pl.DataFrame, width: int, dialect: Dialect) -> str:
    """Return rows of at least `width` cells as lines, without empty cells after these."""
    lines = io.StringIO(newline="")
    delimiter, line_end = dialect.delimiter or _DELIMITER, dialect.line_end or "\n"
    writer = csv.writer(lines, delimiter=delimiter, lineterminator=line_end)
    for row in table.iter_rows():
        filled = max((place for place, cell in enumerate(row, start=1) if cell is not None), default=0)
        writer.writerow(row[: max(width, filled)])
    return lines.getvalue()


def write(table: pl.DataFrame, file: IO[bytes], *, column: str, dialect: Dialect) -> None:
    """Write a table of at least one row as UTF-8 with a header line and LF line ends; null is an empty cell.

    Raises OSError; AssertionError: read back, a part has not the same number of rows, amount of text, and
    cells in `column`.
    """
    for start in range(0, table.height, _ROWS_WRITTEN_AT_ONCE):
        rows = table.slice(start, _ROWS_WRITTEN_AT_ONCE)
        # polars writes enums as text itself.
        others = (column for column in rows if column.dtype not in (pl.String, *CLOSED_SETS))
        rows = rows.with_columns(column_as_text(column) for column in others)
        # Through memory, so that a full disk fails in this file and not in polars.
        buffer = io.BytesIO()
        part = Dialect(dialect.delimiter, header_line=start == 0)
        write_lines(rows, buffer, part)
        position = file.tell()
        file.write(buffer.getbuffer())
        file.seek(position)
        _assert_holds(file.read(), rows, part, column=column)


def rewrite(table: pl.DataFrame, file: IO[bytes], dialect: Dialect, *, where: str) -> bytes:
    """Write a payment file; return its bytes to be read again, under a header line even if the file has none.

    The caller checks that it holds the table. Raises OSError; OutputError: the encoding lacks a character;
    AssertionError: a file without a header line does not hold the rows of the table.
    """
    assert all(kind == pl.String for kind in table.dtypes)
    # Through memory, so that a full disk fails in this file and not in polars.
    file.write(_encoded(table, dialect, where))
    file.seek(0)
    data = file.read()
    if dialect.header_line:
        return data
    named = bytes(_encoded(table, dialect._replace(header_line=True), where))
    if not named.endswith(data.removeprefix(_mark(dialect))):
        raise AssertionError("the written payment file holds other rows than it was given")
    return named


def _encoded(table: pl.DataFrame, dialect: Dialect, where: str) -> bytes | memoryview:
    buffer = io.BytesIO()
    write_lines(table, buffer, dialect._replace(line_end=dialect.line_end or _SPREADSHEET_LINE_END))
    codec, mark = codecs.lookup(dialect.encoding).name, _mark(dialect)
    if is_utf_8(codec):
        return mark + buffer.getvalue() if mark else buffer.getbuffer()
    try:
        return mark + buffer.getvalue().decode().encode(f"{codec}-le" if codec in _MARKED else codec)
    except UnicodeEncodeError:
        sentence = Sentence("csv.name_not_in_encoding", where=where, encoding=dialect.encoding)
        raise OutputError(sentence) from None


def _mark(dialect: Dialect) -> bytes:
    """Return the byte order mark; readers of UTF-16 need it."""
    codec = codecs.lookup(dialect.encoding).name
    return _MARKS.get(codec, b"") if codec in _MARKED or dialect.byte_order_mark else b""


def _assert_holds(data: bytes, rows: pl.DataFrame, dialect: Dialect, *, column: str) -> None:
    """Assert that these bytes hold these rows."""
    delimiter, has_header = dialect.delimiter or _DELIMITER, dialect.header_line
    body = Body(data, 0, len(data) - 1)
    found = tally(body, delimiter=delimiter, column_count=rows.width, where="the written file")
    row_count, text_byte_count = rows.height, text_bytes(rows)
    if has_header:
        row_count += 1
        text_byte_count += sum(len(header.encode()) for header in rows.columns)
    if not data.endswith(b"\n") or (found.row_count, found.text_byte_count) != (row_count, text_byte_count):
        raise AssertionError("the written file does not hold the rows and cells that it was given")
    position = rows.columns.index(column)
    try:
        cells = pl.read_csv(
            data, columns=[position], has_header=has_header, infer_schema=False, separator=delimiter
        ).to_series()
    except (PolarsError, PanicException):
        cells = pl.Series([], dtype=pl.String)
    if not cells.equals(rows[column].cast(pl.String)):
        raise AssertionError(f"the written file has another {column} than it was given")
