"""What the tabular formats share: the arguments of reading, and the result."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import IO, NamedTuple

import polars as pl

from pipeline.wording import Sentence
from schemas.row_positions import RowPositions


class ReadingOptions(NamedTuple):
    """The user's options for reading a file. A format supports those of its `OPTIONS`, and the mapping."""

    mapping: Mapping[str, str] | None
    """From `--map FIELD=HEADER`: these headers help to find the header line. None: this program wrote the
    file, and its first line is the header line."""
    encoding: str | None = None
    """Of text; None means UTF-8, with or without a byte order mark."""
    sheet: str | None = None
    """Of a workbook, by name; None means the only visible one that has data."""


def load(file: IO[bytes], options: ReadingOptions, *, where: str) -> bytes:  # noqa: ARG001 - of `Format.load`
    """The bytes of a file, which is as long as it is."""
    return file.read()


class Dialect(NamedTuple):
    """The dialect of a file; a field is None if its format has no such thing."""

    delimiter: str | None = None
    """Between the cells of a line."""
    encoding: str = "utf-8"
    """Of the text in the file."""
    line_end: str | None = None
    """At the end of the header line."""
    byte_order_mark: bool = False
    """True if the text starts with one."""
    header_line: bool = True
    """True if the file names its columns; where it does not, they are named by their places."""
    sheet_name: str | None = None
    """The sheet with the payments, in a workbook."""
    numbers: tuple[str, ...] = ()
    """In a workbook: the columns whose filled cells are all numbers."""


class Ragged(NamedTuple):
    """Rows, from 0, that spreadsheets write in another width than the header line, without a loss."""

    short: Sequence[int] = ()  # cells are missing at the end, and are empty
    long: Sequence[int] = ()  # empty cells too many stand at the end, and are nothing


class Table(NamedTuple):
    """The cells of a file, unchanged."""

    cells: pl.DataFrame
    """The columns of the file, in order. From CSV and Excel all are text and an empty cell is null;
    from Parquet they keep their types. Cells of rows that were too long follow as extra_1, extra_2..."""
    defects: pl.Series
    """The defect of each row as a whole, as text; null: none. Same height."""
    dialect: Dialect
    extra_column_count: int = 0
    """How many of the columns, the last ones, hold cells of rows that were too long."""
    positions: RowPositions | None = None
    """Where the rows stand in the file; None if the format knows no lines."""
    repeated_headers: tuple[int, ...] = ()
    """The places of lines below the header line that were headers again, and are not in the cells."""
    decimals: Mapping[str, Sequence[int]] = MappingProxyType({})
    """Column -> the rows, from 0, with a number whose text could be taken for thousands."""
    ragged: Ragged = Ragged()


class Obstacle(NamedTuple):
    """Why a payment file cannot be written again."""

    reason: Sentence
    advice: Sentence


def no_defects(row_count: int) -> pl.Series:
    """The defects of a table whose rows are all whole."""
    return pl.Series("defect", [None], dtype=pl.String).new_from_index(0, row_count)


def as_text(table: pl.DataFrame) -> pl.DataFrame:
    """The table with every cell as text; nested values as JSON, bytes as hexadecimal digits."""
    return table.with_columns(column_as_text(column) for column in table if column.dtype != pl.String)


def column_as_text(column: pl.Series) -> pl.Series:
    """A column of any type as text."""
    if column.dtype.is_nested():
        texts = [None if cell is None else json.dumps(cell, default=str) for cell in column.to_list()]
        return pl.Series(column.name, texts, dtype=pl.String)
    if column.dtype == pl.Binary:
        return column.bin.encode("hex")
    if column.dtype == pl.Duration:
        return column.dt.to_string("iso")
    return column.cast(pl.String)
