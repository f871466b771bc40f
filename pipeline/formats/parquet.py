"""Apache Parquet: columns that know their types.

The types are held to: an account number that was stored as a number has lost its leading zeros for
good, and an amount that was stored as a float is not exact. Both are refused, not repaired.
"""

import io
from collections.abc import Mapping
from typing import IO

import polars as pl
from polars.exceptions import PanicException, PolarsError

from pipeline.errors import InputError
from pipeline.formats.layout import COLUMNS_MAX
from pipeline.formats.table import Table, no_defects

NAME = "parquet"
SUFFIX = ".parquet"

_MAGIC = b"PAR1"
_MAGIC_ENCRYPTED = b"PARE"


def read(data: bytes, *, where: str, mapping: Mapping[str, str], encoding: str | None) -> Table:  # noqa: ARG001 - a Parquet file says itself which its columns are, and is UTF-8
    """Read a Parquet file; its columns keep their types.

    Args:
        data: The bytes of the file.
        where: The file, for messages.
        mapping: Not needed: the columns have names.
        encoding: Not needed: text in Parquet is UTF-8.

    Raises:
        InputError: the file is not Parquet, is damaged or encrypted, or has no rows.
    """
    if not data:
        raise InputError(f"{where}: the file is empty; give a file with payments")
    if _MAGIC_ENCRYPTED in (data[:4], data[-4:]):
        raise InputError(f"{where}: the Parquet file is encrypted; give one that is not")
    if data[:4] != _MAGIC:
        raise InputError(f"{where}: not a Parquet file; give the file the suffix of what it is")
    if data[-4:] != _MAGIC:
        raise InputError(f"{where}: the Parquet file ends too early; copy or export it again")
    try:
        # Bytes, not a path: in a path polars would take * and [ for a pattern.
        cells = pl.read_parquet(io.BytesIO(data), use_statistics=False)
    except (PolarsError, PanicException, OSError):
        raise InputError(f"{where}: the Parquet file is damaged; copy or export it again") from None
    if cells.width > COLUMNS_MAX:
        raise InputError(f"{where}: {cells.width} columns, at most {COLUMNS_MAX} can be read; remove some")
    if cells.height == 0:
        raise InputError(f"{where}: no payment rows; give a file with payments")
    return Table(cells, no_defects(cells.height), delimiter=None, encoding="utf-8")


def write(table: pl.DataFrame, file: IO[bytes], *, column: str, delimiter: str) -> None:  # noqa: ARG001 - Parquet has no delimiter
    """Write a table with its types.

    The file is read back and must have the columns of the table, its height, and the whole of one
    column, cell by cell.

    Args:
        table: At least one row.
        file: Open for writing and reading.
        column: The column to compare.
        delimiter: Not needed.

    Raises:
        OSError: the file cannot take it.
        AssertionError: the file does not hold what was written.
    """
    # Through memory, so that it is this file that fails when the disk is full.
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    file.write(buffer.getbuffer())
    file.seek(0)
    written = io.BytesIO(file.read())
    if pl.read_parquet_schema(written) != table.schema:
        raise AssertionError("the written file does not have the columns that it was given")
    if not pl.read_parquet(written, columns=[column])[column].equals(table[column]):
        raise AssertionError(f"the written file has another {column} than it was given")
