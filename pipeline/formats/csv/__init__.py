"""CSV and its relatives: lines of cells with a delimiter between them (RFC 4180).

There are two roads. The fast one is the parser of polars, for the file in which every row has as
many cells as the header line, and lines end with LF or CR LF. The careful one is the csv module of
the standard library, for all others: it tells which row is too long or too short, and loses no cell.
Whichever was taken, the table must agree with a count that neither of them made
(`pipeline.formats.csv.tally`).
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, NamedTuple

import polars as pl
from polars.exceptions import PanicException, PolarsError

from pipeline.errors import InputError
from pipeline.files.unfolding import RECORD_BYTES_MAX
from pipeline.formats.csv.dialect import BYTE_ORDER_MARKS, Layout, find_layout, to_utf_8
from pipeline.formats.csv.tally import Body, Tally, long_row, refuse_long_lines, tally
from pipeline.formats.table import ROW_TOO_LONG, ROW_TOO_SHORT, Table, no_defects
from pipeline.headers.heading import COLUMNS_MAX
from pipeline.rules.places import lines_of
from schemas.places import Places

NAME = "csv"
SUFFIX = ".csv"

DELIMITER = ","
"""Between the cells of a file that is written, where the input had none."""

_TAIL_BYTES = 4096
_ROWS_READ_AT_ONCE = 100_000
_ROWS_WRITTEN_AT_ONCE = 25_000
_CLOSED_SETS = (pl.Enum, pl.Categorical)


def read(
    data: bytes,
    *,
    where: str,
    mapping: Mapping[str, str] | None,
    encoding: str | None,
    sheet: str | None = None,  # noqa: ARG001 - only a workbook has sheets
) -> Table:
    """Read a delimited text.

    Args:
        data: The bytes of the file.
        where: The file, for messages.
        mapping: From `--map FIELD=HEADER`: these headers help to find the header line. None: this program
            wrote the text, and its first line is the header line.
        encoding: The name of the encoding; None means UTF-8, with or without a byte order mark.
        sheet: Not needed.

    Raises:
        UsageError: the encoding is not supported.
        InputError: the text cannot be read, or not in one way only.
    """
    text, encoding = to_utf_8(data, encoding=encoding, where=where)
    # UTF-8 may take more bytes than the file did.
    refuse_long_lines(text, where=where, line_first=1)
    layout = find_layout(text, mapping, where=where)
    body = Body(text, layout.body_at, _without_line_ends(text))
    if body.start >= body.stop:
        raise InputError(f"{where}: no payment rows after the header line; give a file with payments")
    expected = tally(
        body,
        delimiter=layout.delimiter,
        column_count=len(layout.headers),
        where=where,
        line_first=layout.line_first,
    )
    rows = _read_fast(body, layout) if expected.regular else None
    if rows is None or not _agree(rows.cells, expected):
        rows = _read_carefully(body, layout, where)
        if not _agree(rows.cells, expected):
            raise InputError(
                f"{where}: two ways to count the rows do not agree; "
                "open the file in the program that wrote it and export it again"
            )
    places: Places | None = Places(unit="line", stretches=[(1, layout.line_first, 1)])
    if b'"' in text:
        if _line_end_count(body) + 1 > rows.cells.height:
            places = lines_of(_heights(rows.cells), first=layout.line_first)
        _refuse_long_rows(rows.cells, places, where)
    return Table(
        rows.cells,
        rows.defects,
        layout.delimiter,
        encoding,
        line_end=layout.line_end,
        byte_order_mark=data.startswith(BYTE_ORDER_MARKS),
        extra_column_count=rows.cells.width - len(layout.headers),
        places=places,
        repeated_headers=layout.repeated_headers,
        header_line=layout.header_line,
    )


def _without_line_ends(text: bytes) -> int:
    """How long a text is without the line ends at its end; found without a copy of the text."""
    length = len(text)
    while (tail := text[max(0, length - _TAIL_BYTES) : length]).endswith((b"\r", b"\n")):
        length -= len(tail) - len(tail.rstrip(b"\r\n"))
    return length


def write(table: pl.DataFrame, file: IO[bytes], *, column: str, delimiter: str) -> None:
    """Write a table as UTF-8 with a header line and LF line ends; null is an empty cell.

    Each part is read back from the file and must hold its rows, its text, and the whole of one
    column, cell by cell.

    Args:
        table: At least one row.
        file: Open for writing and reading.
        column: The column to compare.
        delimiter: One of `layout.DELIMITERS`.

    Raises:
        OSError: the file cannot take it.
        AssertionError: the file does not hold what was written.
    """
    for start in range(0, table.height, _ROWS_WRITTEN_AT_ONCE):
        rows = _as_written(table.slice(start, _ROWS_WRITTEN_AT_ONCE))
        # Through memory, so that it is this file that fails when the disk is full.
        buffer = io.BytesIO()
        rows.write_csv(buffer, separator=delimiter, include_header=start == 0)
        position = file.tell()
        file.write(buffer.getbuffer())
        file.seek(position)
        _assert_holds(file.read(), rows, has_header=start == 0, column=column, delimiter=delimiter)


def _assert_holds(data: bytes, rows: pl.DataFrame, *, has_header: bool, column: str, delimiter: str) -> None:
    """Assert that these bytes are these rows."""
    body = Body(data, 0, len(data) - 1)
    found = tally(body, delimiter=delimiter, column_count=rows.width, where="the written file")
    row_count, text_byte_count = rows.height, _text_bytes(rows)
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


def as_text(table: pl.DataFrame) -> pl.DataFrame:
    """The table with every cell as text; nested values as JSON, bytes as hexadecimal digits."""
    return table.with_columns(_column_as_text(column) for column in table if column.dtype != pl.String)


def _as_written(rows: pl.DataFrame) -> pl.DataFrame:
    """The same, but for columns of a closed set, which polars writes as text by itself."""
    return rows.with_columns(
        _column_as_text(column) for column in rows if column.dtype not in (pl.String, *_CLOSED_SETS)
    )


def _column_as_text(column: pl.Series) -> pl.Series:
    if column.dtype.is_nested():
        texts = [None if cell is None else json.dumps(cell, default=str) for cell in column.to_list()]
        return pl.Series(column.name, texts, dtype=pl.String)
    if column.dtype == pl.Binary:
        return column.bin.encode("hex")
    if column.dtype == pl.Duration:
        return column.dt.to_string("iso")
    return column.cast(pl.String)


class _Rows(NamedTuple):
    cells: pl.DataFrame
    defects: pl.Series


def _read_fast(body: Body, layout: Layout) -> _Rows | None:
    """The rows as polars reads them; None where it cannot. Its own messages quote cells."""
    text, start, stop = body
    if text[start - 1 : start] != b"\n":
        return None  # polars knows no other line ends
    if text[stop:] not in (b"", b"\n", b"\r\n"):
        text = text[:stop]  # polars takes further line ends for rows
    try:
        # Bytes, not a path: in a path polars would take * and [ for a pattern.
        cells = pl.read_csv(
            text,
            has_header=False,
            skip_lines=text.count(b"\n", 0, start),
            schema=dict.fromkeys(layout.headers, pl.String()),
            separator=layout.delimiter,
            infer_schema=False,
        )
    except (PolarsError, PanicException):
        return None
    if b'"' in text:
        cells = cells.with_columns(pl.when(pl.all() != "").then(pl.all()))
    return _Rows(cells, no_defects(cells.height))


def _read_carefully(body: Body, layout: Layout, where: str) -> _Rows:
    """The rows as the csv module reads them, the ragged ones padded or continued in extra columns."""
    text = io.TextIOWrapper(io.BytesIO(body.copy()), encoding="utf-8", newline="")
    reader = csv.reader(text, delimiter=layout.delimiter, strict=True)
    batches: list[pl.DataFrame] = []
    defects: list[str | None] = []
    rows: list[list[str]] = []
    try:
        for row in reader:
            if len(row) > COLUMNS_MAX:
                line = layout.line_first + reader.line_num - 1
                raise InputError(f"{where} line {line}: more than {COLUMNS_MAX} cells; correct the line")
            rows.append(row)
            defects.append(_defect(row, layout.headers))
            if len(rows) == _ROWS_READ_AT_ONCE:
                batches.append(_frame(rows, layout.headers))
                rows = []
    except csv.Error:
        line = layout.line_first + reader.line_num - 1
        raise InputError(f"{where} line {line}: the line is not well formed; correct it") from None
    batches.append(_frame(rows, layout.headers))
    cells = pl.concat(batches, how="diagonal")
    return _Rows(cells, pl.Series("defect", defects, dtype=pl.String))


def _defect(row: Sequence[str], headers: Sequence[str]) -> str | None:
    if len(row) == len(headers):
        return None
    return ROW_TOO_LONG if len(row) > len(headers) else ROW_TOO_SHORT


def _frame(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> pl.DataFrame:
    """Rows of any length as columns: short rows end in nulls, long ones in extra columns."""
    width = max((len(row) for row in rows), default=0)
    names = [*headers, *_extra_headers(headers, width - len(headers))]
    columns = {
        name: [(row[position] or None) if position < len(row) else None for row in rows]
        for position, name in enumerate(names)
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String()))


def _extra_headers(headers: Sequence[str], count: int) -> Iterator[str]:
    number = 0
    while count > 0:
        number += 1
        if f"extra_{number}" not in headers:
            count -= 1
            yield f"extra_{number}"


def _agree(cells: pl.DataFrame, expected: Tally) -> bool:
    return (cells.height, _text_bytes(cells)) == (expected.row_count, expected.text_byte_count)


def _text_bytes(cells: pl.DataFrame) -> int:
    """UTF-8 bytes of all cells."""
    lengths = (pl.col(pl.String).str.len_bytes(), pl.col(*_CLOSED_SETS).cat.len_bytes())
    return sum(cells.select(length.cast(pl.Int64).sum() for length in lengths).row(0))


def _line_end_count(body: Body) -> int:
    """How many lines end in the rows, those within quoted cells too."""
    ends = body.text.count(b"\n", body.start, body.stop)
    if body.text.find(b"\r", body.start, body.stop) < 0:
        return ends
    crs, pairs = (body.text.count(end, body.start, body.stop) for end in (b"\r", b"\r\n"))
    return ends + crs - pairs


def _heights(cells: pl.DataFrame) -> pl.Series:
    """How many lines each row takes."""
    ends = pl.all().str.count_matches(r"\r\n|\r|\n").fill_null(0)
    return cells.select(1 + pl.sum_horizontal(ends)).to_series()


def _refuse_long_rows(cells: pl.DataFrame, places: Places | None, where: str) -> None:
    """Refuse a row of many lines that is too long; single lines were measured before."""
    is_long = cells.select(pl.sum_horizontal(pl.all().str.len_bytes()) > RECORD_BYTES_MAX).to_series()
    if is_long.any():
        row = int(is_long.arg_max() or 0) + 1
        raise long_row(row, where, places)
