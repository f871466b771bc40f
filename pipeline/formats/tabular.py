"""What a tabular format can do; a module of this package is one.

A format declares itself (`Format`), and reads. What else differs from format to format is how a table is
written: outcomes in the formats of `--format` (`OutcomeFormat`), and payments that were corrected or split
in the manner of their input (`PaymentsFormat`). To correct cells and to keep rows is the same for every
table, and is not asked of a format; neither is what `described` makes of its columns.
"""

from collections.abc import Sequence
from typing import IO, Protocol

import polars as pl

from pipeline.formats.table import Dialect, Obstacle, ReadingOptions, Table
from pipeline.headers.guesses import PLACE
from pipeline.headers.readings import ColumnReading
from schemas.columns import Column


class Format(Protocol):
    """What every format says of itself."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """The word for it."""

    @property
    def SUFFIXES(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """In what the names of its files end, in small letters. Several formats may share one."""

    @property
    def MEMORY_PER_BYTE(self) -> int:  # noqa: N802 - a constant of the module
        """Of a file, in bytes, that a run needs."""

    @property
    def OPTIONS(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """What of `ReadingOptions` it heeds, beside the mapping."""

    def sniff(self, head: bytes) -> bool:
        """Whether a file starts as those of this format do, and of no other one."""


class TabularFormat(Format, Protocol):
    """A format whose files are tables."""

    def load(self, file: IO[bytes], options: ReadingOptions, *, where: str) -> bytes:
        """All bytes of a file, as they are; raises InputError where it sees that they are no payments."""

    def read(self, data: bytes, options: ReadingOptions, *, where: str) -> Table:
        """Read a file; raises InputError where it cannot be read in one way only."""

    def obstacle(self, dialect: Dialect, *, kept_as: str, name: str) -> Obstacle | None:
        """Why a file cannot be written anew from what a run kept of it; None where it can.

        Args:
            dialect: How it was written.
            kept_as: The format of the outcome file.
            name: Of the file.
        """


class OutcomeFormat(TabularFormat, Protocol):
    """A format in which outcomes are written; its name is a word of `--format`."""

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - a constant of the module
        """What the name of a file of this format ends in, when this program names it."""

    def write(self, table: pl.DataFrame, file: IO[bytes], *, column: str, dialect: Dialect) -> None:
        """Write a table and read it back, one column cell by cell.

        Raises OSError where the file cannot take it, AssertionError where it holds something else.
        """


class PaymentsFormat(TabularFormat, Protocol):
    """A format in which payment files are written that were read before."""

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - a constant of the module
        """What the name of a file of this format ends in, when this program names it."""

    def rewrite(self, table: pl.DataFrame, file: IO[bytes], dialect: Dialect, *, where: str) -> bytes:
        """Write a table in the manner of another file.

        Returns what the file holds, as `read` reads what this program wrote: under a header line.
        Raises OSError where the file cannot take it, OutputError where its encoding cannot.
        """


def described(readings: Sequence[ColumnReading], dialect: Dialect | None) -> list[Column]:
    """The columns of a table, as `precheck columns` shows them.

    Args:
        readings: How each column was read.
        dialect: Of the file; None where it could not be read as payments.
    """
    has_headers = dialect is None or dialect.header_line
    return [
        Column(
            header=reading.header if has_headers else f"{PLACE}{at}",
            field=reading.field,
            rule=reading.how,
            others=list(reading.others),
            values=list(reading.values),
            disputed=reading.is_disputed,
            map=reading.map,
        )
        for at, reading in enumerate(readings, start=1)
    ]
