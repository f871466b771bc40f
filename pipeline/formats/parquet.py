"""Apache Parquet: columns with types.

An account number stored as a number, or an amount stored as a float, is refused, not repaired. A few changed
bytes can make a parser abort its process, so a child process parses the file. Damage within a cell is
detected only if the writer of the file added page checksums, which most do not.
"""

from contextlib import suppress
from typing import IO

import polars as pl
from polars import selectors
from polars.exceptions import PolarsError

from pipeline.errors import InputError
from pipeline.files.confined import parse_confined
from pipeline.files.disk_errors import with_own_errors
from pipeline.files.expansion import table_bytes_max
from pipeline.files.parquet_rows import headers_of
from pipeline.formats.table import Dialect, ReadingOptions, Table, no_defects
from pipeline.formats.table import load as whole_file
from pipeline.headers.heading import COLUMNS_MAX
from pipeline.wording import Sentence
from schemas.outcomes import COLUMNS

NAME = "parquet"
TITLE = "Apache Parquet"
KNOWN_BY = Sentence("formats.known_parquet")
SUFFIX = ".parquet"
SUFFIXES = (SUFFIX, ".pq")
MEMORY_PER_BYTE = 32  # measured from reading to writing: 20 for a file of ten columns
BUCKET_BYTES = 4 * 1024**2
OPTIONS = ()
HAS_TYPES = True
load = whole_file

_PARSER = "pipeline.files.parquet_rows"
_MAGIC = b"PAR1"
_MAGIC_ENCRYPTED = b"PARE"


def sniff(head: bytes) -> bool:
    """True if a file starts like Parquet."""
    return head.startswith((_MAGIC, _MAGIC_ENCRYPTED))


def read(data: bytes, options: ReadingOptions, *, where: str) -> Table:  # noqa: ARG001 - the file needs no options
    """Read a Parquet file; its columns keep their types.

    Raises InputError: the file is not Parquet, is damaged or encrypted, or has no rows.
    """
    if not data:
        raise InputError(Sentence("formats.file_empty", where=where))
    if _MAGIC_ENCRYPTED in (data[:4], data[-4:]):
        raise InputError(Sentence("formats.parquet_encrypted", where=where))
    if data[:4] != _MAGIC:
        raise InputError(Sentence("formats.not_a_parquet_file", where=where))
    if data[-4:] != _MAGIC:
        raise InputError(Sentence("formats.parquet_ends_early", where=where))
    what = Sentence("files.the_parquet_file")
    limits = {"bytes_max": table_bytes_max(len(data)), "columns_max": COLUMNS_MAX}
    cells = parse_confined(_PARSER, data, where=where, what=what, options=limits)
    if cells.width > COLUMNS_MAX:
        facts = {"width": cells.width, "columns_max": COLUMNS_MAX}
        raise InputError(Sentence("formats.too_many_columns", where=where, **facts))
    if cells.height == 0:
        raise InputError(Sentence("formats.no_payment_rows", where=where))
    names, cells.columns = tuple(cells.columns), headers_of(cells.columns)
    cells = cells.with_columns(map(_as_read, cells.iter_columns()))
    dialect = Dialect(header_cells=() if names == tuple(cells.columns) else names)
    return Table(cells, no_defects(cells.height), dialect)


def _as_read(column: pl.Series) -> pl.Series:
    """Return text that some writers store as bytes, and the stored values of an extension type, as such."""
    if isinstance(column.dtype, pl.BaseExtension):
        column = column.ext.storage()
    if column.dtype == pl.Binary:
        with suppress(PolarsError):  # bytes that are not UTF-8 stay bytes
            return column.cast(pl.String)
    return column


def write(table: pl.DataFrame, file: IO[bytes], *, column: str, dialect: Dialect) -> None:  # noqa: ARG001 - there is only one way to write it
    """Write a table of at least one row with its types, in small parts.

    Raises OSError; AssertionError: read back, it has not the same columns, height, and cells in `column`.
    """
    # Our enums become text for other programs; enums of the input are unchanged.
    cells = table.lazy().cast({selectors.by_name(COLUMNS, require_all=False) & selectors.enum(): pl.String})
    with with_own_errors(file) as through:
        cells.sink_parquet(through)
    file.seek(0)
    written = pl.scan_parquet(file.read())
    if written.collect_schema() != cells.collect_schema():
        raise AssertionError("the written file does not have the columns that it was given")
    if not written.select(column).collect().equals(cells.select(column).collect()):
        raise AssertionError(f"the written file has another {column} than it was given")


def rewrite(table: pl.DataFrame, file: IO[bytes], dialect: Dialect, *, where: str) -> bytes:  # noqa: ARG001 - every text can be written
    """Write a payment file with typed columns and the input's headers; return its bytes (OSError).

    The caller checks that it holds the table.
    """
    names = dict(zip(table.columns, dialect.header_cells, strict=False))
    with with_own_errors(file) as through:
        table.rename(names).write_parquet(through)
    file.seek(0)
    return file.read()
