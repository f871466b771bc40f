"""File formats: each module reads a payment file into a table, and some write a table as a file.

A new format is a module that has what `Format` has, and a line for each of its suffixes; one that can be
written has what `OutcomeFormat` has, too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol

import polars as pl

from pipeline.errors import InputError
from pipeline.formats import csv as delimited
from pipeline.formats import excel, parquet
from pipeline.formats.table import Table


class Format(Protocol):
    """What every format can do; a module of this package is one."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """The word for it."""

    def read(
        self,
        data: bytes,
        *,
        where: str,
        mapping: Mapping[str, str] | None,
        encoding: str | None,
        sheet: str | None = None,
    ) -> Table:
        """Read a file; raises InputError where it cannot be read in one way only.

        Without a mapping, not even an empty one, the header line is the first: this program wrote the file.
        """


class OutcomeFormat(Format, Protocol):
    """A format in which outcomes are written; its name is a word of `--format`."""

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - a constant of the module
        """What the name of a file of this format ends in, when this program writes it."""

    def write(self, table: pl.DataFrame, file: IO[bytes], *, column: str, delimiter: str) -> None:
        """Write a table and read it back, one column cell by cell.

        Raises OSError where the file cannot take it, AssertionError where it holds something else.
        """


_OUTCOME_FORMATS: Mapping[str, OutcomeFormat] = {delimited.NAME: delimited, parquet.NAME: parquet}
_SUFFIXES: Mapping[str, Format] = {
    ".csv": delimited,
    ".tsv": delimited,
    ".txt": delimited,
    ".parquet": parquet,
    ".pq": parquet,
    ".xlsx": excel,
    ".xlsm": excel,
}
_OTHER_WORKBOOKS = (".xls", ".xlsb", ".ods", ".numbers")
NAMES = tuple(_OUTCOME_FORMATS)
"""Of the formats in which outcomes are written."""


def format_of(path: Path) -> Format:
    """The format of a file, by the suffix of its name.

    Raises:
        InputError: no format has this suffix.
    """
    try:
        return _SUFFIXES[path.suffix.lower()]
    except KeyError:
        if path.suffix.lower() in _OTHER_WORKBOOKS:
            raise InputError(
                f"{path.name}: a kind of workbook that cannot be read; save it as .xlsx, or the sheet as CSV"
            ) from None
        raise InputError(
            f"{path.name}: not a format that can be read; give a file whose name ends in "
            f"{', '.join(_SUFFIXES)}"
        ) from None


def format_named(name: str) -> OutcomeFormat:
    """The format of a name of `NAMES`; any other name is a mistake of the caller (KeyError)."""
    return _OUTCOME_FORMATS[name]


def outcome_format(file_format: Format) -> OutcomeFormat:
    """The format in which the outcomes of a file are written unless it is said: its own, or else CSV."""
    return _OUTCOME_FORMATS.get(file_format.NAME, delimited)
