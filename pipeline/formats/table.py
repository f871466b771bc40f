"""Types that all tabular formats share: reading options and results."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import IO, NamedTuple

import polars as pl

from schemas.row_positions import RowPositions
from schemas.summary import FileDialect


class ReadingOptions(NamedTuple):
    """The user's options for reading a file. A format supports the mapping and those in its `OPTIONS`."""

    mapping: Mapping[str, str] | None
    """From `--map FIELD=HEADER`; these headers help to find the header line. None: this program wrote the
    file, and its first line is the header line."""
    encoding: str | None = None  # the encoding of a text; None: UTF-8, with or without a byte order mark
    sheet: str | None = None  # the sheet of a workbook, by name; None: the only visible one with data


def load(file: IO[bytes], options: ReadingOptions, *, where: str) -> bytes:  # noqa: ARG001 - signature of `Format.load`
    """Return the bytes of a file, without a limit."""
    return file.read()


class Dialect(NamedTuple):
    """The dialect of a file; a field is None if it does not apply to the format."""

    delimiter: str | None = None  # the separator between the cells of a line
    encoding: str = "utf-8"  # the encoding of the text
    line_end: str | None = None  # the line end after the header line
    byte_order_mark: bool = False  # True if the text starts with a byte order mark
    header_line: bool = True  # True if the file names its columns; otherwise they are named by position
    header_cells: tuple[str, ...] = ()
    """The header line as it is in the file, if blank or repeated headers gave columns other names."""
    sheet_name: str | None = None  # the sheet with the payments, in a workbook
    numbers: tuple[str, ...] = ()  # the columns of a workbook whose filled cells are all numbers


def dialect_of(document: FileDialect) -> Dialect:
    """Return the dialect in a document."""
    return Dialect(**document.model_dump(include=set(Dialect._fields)))


class Ragged(NamedTuple):
    """Rows, from 0, that spreadsheets made shorter or longer than the header line, without loss."""

    short: Sequence[int] = ()  # missing cells at the end, which count as empty
    long: Sequence[int] = ()  # extra empty cells at the end, which do not count


class Table(NamedTuple):
    """The cells of a file, unchanged."""

    cells: pl.DataFrame
    """The columns of the file, in order. CSV and Excel cells are text, and null if empty; Parquet cells keep
    their types. Cells of rows that were too long follow as extra_1, extra_2..."""
    defects: pl.Series  # the defect of each whole row, as text; null if it has none. Same height.
    dialect: Dialect
    extra_column_count: int = 0  # number of columns at the end that hold cells of rows that were too long
    positions: RowPositions | None = None
    """The positions of the rows in the file; None if the format has no lines."""
    repeated_headers: tuple[int, ...] = ()
    """The positions of repeated header lines, which are not among the cells."""
    decimals: Mapping[str, Sequence[int]] = MappingProxyType({})
    """Column -> the rows, from 0, with a number that could be read as thousands."""
    ragged: Ragged = Ragged()
    zeros: tuple[str, ...] = ()  # the columns with leading zeros that only a number format shows
    hidden: Sequence[int] = ()  # the rows, from 0, that a workbook hides


def no_defects(row_count: int) -> pl.Series:
    """Return the defects of a table without any defect."""
    return pl.Series("defect", [None], dtype=pl.String).new_from_index(0, row_count)


def as_text(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with every cell as text: nested values as JSON, bytes in hexadecimal."""
    return table.with_columns(column_as_text(column) for column in table if column.dtype != pl.String)


def column_as_text(column: pl.Series) -> pl.Series:
    """Return a column of any type as text."""
    if column.dtype.is_nested():
        texts = [None if cell is None else json.dumps(cell, default=str) for cell in column.to_list()]
        return pl.Series(column.name, texts, dtype=pl.String)
    if column.dtype == pl.Binary:
        return column.bin.encode("hex")
    if column.dtype == pl.Duration:
        return column.dt.to_string("iso")
    return column.cast(pl.String)
