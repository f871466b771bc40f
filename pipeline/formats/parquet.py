"""Apache Parquet: columns that know their types.

The types are held to: an account number that was stored as a number has lost its leading zeros for
good, and an amount that was stored as a float is not exact. Both are refused, not repaired.

A few changed bytes can make a Parquet parser abort its process, so strangers' files are parsed in a
child. What changed bytes within a cell did to the cell is known only where the writer of the file added
checksums to its pages, which most do not: Parquet without them promises nothing about damage.
"""

import io
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, cast

import polars as pl
from polars import selectors
from polars.exceptions import PolarsError

from pipeline.errors import InputError
from pipeline.files.confined import parse_confined
from pipeline.files.unfolding import (
    RECORD_BYTES_MAX,
    Unfolded,
    little_memory,
    refuse_long_row,
    table_bytes_max,
)
from pipeline.formats.table import Dialect, Obstacle, ReadingOptions, Table, no_defects
from pipeline.headers.heading import COLUMNS_MAX
from schemas.outcomes import COLUMNS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from pyarrow.parquet import ParquetFile

NAME = "parquet"
TITLE = "Apache Parquet"
KNOWN_BY = "its first bytes, PAR1"
SUFFIX = ".parquet"
SUFFIXES = (SUFFIX, ".pq")
MEMORY_PER_BYTE = 32
"""Measured from reading to writing: 20, on a file of ten columns."""
OPTIONS = ()

_MAGIC = b"PAR1"
_MAGIC_ENCRYPTED = b"PARE"
_ROWS_COUNTED_AT_ONCE = 1024
"""Of the longest rows that may be, 64 MiB."""


def sniff(head: bytes) -> bool:
    """Whether a file starts as Parquet does."""
    return head.startswith((_MAGIC, _MAGIC_ENCRYPTED))


def load(file: IO[bytes], options: ReadingOptions, *, where: str) -> bytes:  # noqa: ARG001 - the same for all
    """The bytes of a file."""
    return file.read()


def read(data: bytes, options: ReadingOptions, *, where: str) -> Table:  # noqa: ARG001 - it says all of it itself
    """Read a Parquet file; its columns keep their types.

    Args:
        data: The bytes of the file.
        options: None are needed.
        where: The file, for messages.

    Raises:
        InputError: the file is not Parquet, is damaged or encrypted, or has no rows.
    """
    if not data:
        raise InputError(f"{where}: the file is empty; give a file with payments")
    if _MAGIC_ENCRYPTED in (data[:4], data[-4:]):
        raise InputError(f"{where}: the Parquet file is encrypted; give one that is not")
    if data[:4] != _MAGIC:
        raise InputError(f"{where}: not a Parquet file; rename it so that its suffix says what it is")
    if data[-4:] != _MAGIC:
        raise InputError(f"{where}: the Parquet file ends too early; copy or export it again")
    bytes_max = table_bytes_max(len(data))
    cells = parse_confined(
        __name__, data, where=where, what="the Parquet file", options={"bytes_max": bytes_max}
    )
    if cells.width > COLUMNS_MAX:
        raise InputError(f"{where}: {cells.width} columns, at most {COLUMNS_MAX} can be read; remove some")
    if cells.height == 0:
        raise InputError(f"{where}: no payment rows; give a file with payments")
    return Table(cells, no_defects(cells.height), Dialect())


def obstacle(dialect: Dialect, *, kept_as: str, name: str) -> Obstacle | None:  # noqa: ARG001 - there is but one way to write it
    """Why a file cannot be written anew; None where it can."""
    if kept_as == NAME:
        return None
    return Obstacle(
        f"the outcome file is CSV, which does not know the types of {name}",
        "run the same command again with --format parquet, which asks nothing twice",
    )


def parse(data: bytes, *, bytes_max: int) -> Iterator[pl.DataFrame]:
    """Parse a Parquet file, in the child: two libraries must agree on how many rows its row groups have.

    A file names its columns twice, once for all and again in every row group: no checksum is on either.

    Args:
        data: The bytes of the file.
        bytes_max: How many bytes its cells may take; see `unfolding.table_bytes_max`.

    Returns:
        The row groups, one after the other.

    Raises:
        InputError: a sentence for the user, without the name of the file; before anything is returned.
        Exception, PanicException: as the libraries do; on a damaged file that may be anything.
    """
    headers, row_counts = _counted(data, bytes_max)
    # Bytes, not a path: in a path polars would take * and [ for a pattern.
    cells = pl.scan_parquet(data, use_statistics=False)
    start = 0
    for row_count in row_counts:
        part = cells.slice(start, row_count).collect()
        if part.height != row_count:
            raise ValueError("two ways to count the rows do not agree")
        part.columns = headers
        yield part
        start += row_count
    rest = cells.slice(start).collect()
    if not rest.is_empty():
        raise ValueError("there are more rows than in the row groups")
    rest.columns = headers
    yield rest


def _headers(names: Sequence[str]) -> list[str]:
    """The names of the columns; a blank one is named by its position, as in CSV.

    Raises:
        InputError: one stands twice.
    """
    headers = [name if name.strip() else f"column_{position}" for position, name in enumerate(names, start=1)]
    for position, header in enumerate(headers, start=1):
        if (first := headers.index(header) + 1) < position:
            raise InputError(f"columns {first} and {position} have the same header; rename one of them")
    return headers


def _counted(data: bytes, bytes_max: int) -> tuple[list[str], Sequence[int]]:
    """The headers, and how many rows each row group has, as the second library counts them, row by row.

    It unpacks a little at a time, so that a value which many rows share is never there as often, and also
    compares the checksums of the pages, where there are any.
    """
    import pyarrow as pa  # only the child needs it
    from pyarrow import parquet

    with little_memory(len(data)):
        file = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, pre_buffer=False)
        columns = [file.schema.column(position).path for position in range(len(file.schema))]
        if sum(len(column.encode()) for column in columns) > RECORD_BYTES_MAX:
            raise InputError(
                f"the names of its columns are longer than {RECORD_BYTES_MAX} bytes; shorten them"
            )
        headers = (
            _headers(file.schema_arrow.names) if len(columns) <= COLUMNS_MAX else file.schema_arrow.names
        )
        unfolded = Unfolded(bytes_max)
        row_counts: list[int] = []
        for number in range(file.num_row_groups):
            row_group = file.metadata.row_group(number)
            if [row_group.column(position).path_in_schema for position in range(len(columns))] != columns:
                raise ValueError("the columns of a row group are not those of the file")
            row_counts.append(_row_count(file, number, unfolded, rows_before=sum(row_counts)))
            if row_counts[-1] != row_group.num_rows:
                raise ValueError("two ways to count the rows do not agree")
        if file.metadata.num_rows != sum(row_counts):
            raise ValueError("there are more rows than in the row groups")
    return headers, row_counts


def _row_count(file: "ParquetFile", row_group: int, unfolded: Unfolded, *, rows_before: int) -> int:
    from pyarrow import compute

    from pipeline.formats.row_bytes import row_bytes

    row_count = 0
    for batch in file.iter_batches(_ROWS_COUNTED_AT_ONCE, row_groups=[row_group], use_threads=False):
        lengths = row_bytes(batch)
        longest = compute.max(lengths).as_py() or 0
        if longest > RECORD_BYTES_MAX:
            row = rows_before + row_count + compute.index(lengths, longest).as_py() + 1
            refuse_long_row(longest, f"row {row}")
        row_count += batch.num_rows
        unfolded.add(
            text_bytes=compute.sum(lengths).as_py() or 0, cell_count=batch.num_rows * (batch.num_columns + 1)
        )
    return row_count


def write(table: pl.DataFrame, file: IO[bytes], *, column: str, dialect: Dialect) -> None:  # noqa: ARG001 - there is but one way to write it
    """Write a table with its types, a little at a time.

    The file is read back and must have the columns of the table, its height, and the whole of one
    column, cell by cell.

    Args:
        table: At least one row.
        file: Open for writing and reading.
        column: The column to compare.
        dialect: Not needed.

    Raises:
        OSError: the file cannot take it.
        AssertionError: the file does not hold what was written.
    """
    through = _Through(file)
    # Our closed sets are text to other programs; those of the input stay as they are.
    cells = table.lazy().cast({selectors.by_name(COLUMNS, require_all=False) & selectors.enum(): pl.String})
    try:
        cells.sink_parquet(cast("IO[bytes]", through))
    except PolarsError:
        if through.refused is not None:
            raise through.refused from None
        raise
    file.seek(0)
    written = pl.scan_parquet(file.read())
    if written.collect_schema() != cells.collect_schema():
        raise AssertionError("the written file does not have the columns that it was given")
    if not written.select(column).collect().equals(cells.select(column).collect()):
        raise AssertionError(f"the written file has another {column} than it was given")


def rewrite(
    table: pl.DataFrame,
    file: IO[bytes],
    dialect: Dialect,  # noqa: ARG001 - there is but one way to write it
    *,
    where: str,  # noqa: ARG001 - it takes every text
) -> bytes:
    """Write a payment file. Whether it holds what it was given is for the caller to find out.

    Args:
        table: The columns of the file, with their types.
        file: Open for writing and reading.
        dialect: Not needed.
        where: Not needed.

    Returns:
        What the file holds, to be read again.

    Raises:
        OSError: the file cannot take it.
    """
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    # Through memory, so that it is this file that fails when the disk is full.
    file.write(buffer.getbuffer())
    file.seek(0)
    return file.read()


class _Through(io.RawIOBase):
    """Passes on what is written, and keeps the error of the file, for which polars has one of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self.refused: OSError | None = None
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer") -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.refused = error
            raise
