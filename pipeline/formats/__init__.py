"""File formats: each module reads a payment file into a table, and writes a table as a file.

A new format is a module that has what `Format` has, and a line in `_FORMATS`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol

import polars as pl

from pipeline.errors import InputError
from pipeline.formats import delimited, parquet
from pipeline.formats.table import Table


class Format(Protocol):
    """What a format can do; a module of this package is one."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """The word for it in `--format`."""

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - a constant of the module
        """What the name of a file of this format ends in, when this program writes it."""

    def read(self, data: bytes, *, where: str, mapping: Mapping[str, str], encoding: str | None) -> Table:
        """Read a file; raises InputError where it cannot be read in one way only."""

    def write(self, table: pl.DataFrame, file: IO[bytes], *, column: str, delimiter: str) -> None:
        """Write a table and read it back, one column cell by cell.

        Raises OSError where the file cannot take it, AssertionError where it holds something else.
        """


_FORMATS: Mapping[str, Format] = {delimited.NAME: delimited, parquet.NAME: parquet}
_SUFFIXES: Mapping[str, Format] = {
    ".csv": delimited,
    ".tsv": delimited,
    ".txt": delimited,
    ".parquet": parquet,
    ".pq": parquet,
}
NAMES = tuple(_FORMATS)


def format_of(path: Path) -> Format:
    """The format of a file, by the suffix of its name.

    Raises:
        InputError: no format has this suffix.
    """
    try:
        return _SUFFIXES[path.suffix.lower()]
    except KeyError:
        raise InputError(
            f"{path.name}: a file of unknown format; give one whose name ends in {', '.join(_SUFFIXES)}"
        ) from None


def format_named(name: str) -> Format:
    """The format of a name of `NAMES`; any other name is a mistake of the caller (KeyError)."""
    return _FORMATS[name]
