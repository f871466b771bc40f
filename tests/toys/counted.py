"""A format that the program does not have: text with bars, and above the headers how many payments follow.

PAYMENTS|2
name|sort_code|account_number
Imogen Farraday|200415|31926819
Avery Thornwood|001122|00012345
"""

from typing import IO

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.table import Dialect, ReadingOptions, Table, no_defects
from pipeline.wording import Sentence
from schemas.row_positions import RowPositions

NAME = "counted"
TITLE = "Counted text"
KNOWN_BY = "PAYMENTS and a count"
SUFFIX = ".counted"
SUFFIXES = (SUFFIX, ".txt")
MEMORY_PER_BYTE = 30
BUCKET_BYTES = 40 * 1024**2
OPTIONS = ()
HAS_TYPES = False

_START = "PAYMENTS|"
_FIRST_LINE = 3
"""Of payments."""


def sniff(head: bytes) -> bool:
    """Whether a file starts with its count."""
    return head.startswith(_START.encode())


def load(file: IO[bytes], options: ReadingOptions, *, where: str) -> bytes:
    """The bytes of a file."""
    return file.read()


def read(data: bytes, options: ReadingOptions, *, where: str) -> Table:
    """Read a file whose count is that of its payments."""
    count, headers, *rows = data.decode().splitlines()
    if count != f"{_START}{len(rows)}":
        raise InputError(Sentence("files.is_damaged", where=where, what="PAYMENTS"))
    cells = pl.DataFrame([row.split("|") for row in rows], schema=headers.split("|"), orient="row")
    cells = cells.with_columns(pl.when(pl.all() != "").then(pl.all()))
    places = RowPositions(unit="line", stretches=[(1, _FIRST_LINE, 1)])
    return Table(cells, no_defects(cells.height), Dialect("|", line_end="\n"), positions=places)


def write(table: pl.DataFrame, file: IO[bytes], *, column: str, dialect: Dialect) -> None:
    """Write outcomes, counted."""
    rewrite(table.cast(pl.String), file, dialect, where="")


def rewrite(table: pl.DataFrame, file: IO[bytes], dialect: Dialect, *, where: str) -> bytes:
    """Write payments, counted anew."""
    rows = [table.columns, *table.fill_null("").rows()]
    lines = [f"{_START}{table.height}", *("|".join(row) for row in rows), ""]
    file.write("\n".join(lines).encode())
    file.seek(0)
    return file.read()
