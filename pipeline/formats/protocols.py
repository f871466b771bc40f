"""Protocols of formats; each is implemented by a module of this package, or by an object that it makes.

A format declares itself (`Format`), and reads: a table (`TabularFormat`), or a message (`MessageFormat`).
Payments that were corrected or split are written in the manner of their input. Of a table, all cells are
rewritten (`PaymentsFormat`); correcting cells and keeping rows is the same for every table, and is not
asked of a format. Of a message, the bytes stay but for the edits that the format lists. Outcomes are written
as tables, in the formats of `--format` (`OutcomeFormat`).
"""

from collections.abc import Mapping
from typing import IO, Protocol, runtime_checkable

import polars as pl

from pipeline.formats.edits import Edit
from pipeline.formats.message import Message, Role
from pipeline.formats.table import Dialect, Obstacle, ReadingOptions, Table
from pipeline.wording import Sentence


class Format(Protocol):
    """The declarations of every format."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """The word for it."""

    @property
    def TITLE(self) -> Sentence | str:  # noqa: N802 - a constant of the module
        """In words, for people."""

    @property
    def KNOWN_BY(self) -> Sentence:  # noqa: N802 - a constant of the module
        """How its files are recognised, in words; for a message, their start."""

    @property
    def SUFFIXES(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """In what the names of its files end, in lower case. Several formats may share one."""

    @property
    def MEMORY_PER_BYTE(self) -> int:  # noqa: N802 - a constant of the module
        """Memory of a run in bytes, per byte of the file."""

    @property
    def OPTIONS(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """The `ReadingOptions` that it supports, beside the mapping."""

    def sniff(self, head: bytes) -> bool:
        """True if a file starts as those of this format do, and of no other one."""

    def load(self, file: IO[bytes], options: ReadingOptions, *, where: str) -> bytes:
        """All bytes of a file, as they are; raises InputError where it sees that they are no payments."""


class TabularFormat(Format, Protocol):
    """A format whose files are tables."""

    def read(self, data: bytes, options: ReadingOptions, *, where: str) -> Table:
        """Read a file; raises InputError where it cannot be read in one way only."""

    def obstacle(self, dialect: Dialect, *, kept_as: str, name: str) -> Obstacle | None:
        """Why a file cannot be written again from the outcome file that a run kept; None if it can."""


class OutcomeFormat(TabularFormat, Protocol):
    """A format for outcome files; its name is a value of `--format`."""

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - a constant of the module
        """The suffix of files of this format that this program names."""

    @property
    def BUCKET_BYTES(self) -> int:  # noqa: N802 - a constant of the module
        """Payments of a data set in one bucket: some 400,000 rows."""

    def write(self, table: pl.DataFrame, file: IO[bytes], *, column: str, dialect: Dialect) -> None:
        """Write a table and read it back, one column cell by cell.

        Raises OSError where the file cannot take it, AssertionError where it holds something else.
        """


class PaymentsFormat(TabularFormat, Protocol):
    """A format that writes payment files in the manner of their input."""

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - a constant of the module
        """The suffix of files of this format that this program names."""

    def rewrite(self, table: pl.DataFrame, file: IO[bytes], dialect: Dialect, *, where: str) -> bytes:
        """Write a table in the manner of another file.

        Returns what the file holds, as `read` reads what this program wrote: under a header line.
        Raises OSError where the file cannot take it, OutputError where its encoding cannot.
        """


class MessageFormat(Format, Protocol):
    """A format whose payments are in a message instead of a table."""

    @property
    def ORIGINS(self) -> Mapping[str, Sentence | str]:  # noqa: N802 - a constant of the module
        """Field -> where it stands, as people who know the format say it; of each field that it has."""

    def read(self, data: bytes, options: ReadingOptions, *, where: str) -> Message:
        """Read a file; raises InputError where it cannot be read in one way only."""

    def fitted(self, name: str) -> str | None:
        """A name as a file of this format holds it; None if it cannot."""

    def obstacle(self, message: Message) -> Sentence | None:
        """Why a file must not be changed; None if it may."""

    def split_obstacle(self, message: Message) -> Sentence | None:
        """Why payments cannot be taken out of a file; None if they can."""

    def name_obstacle(self, message: Message, row: int, name: str) -> Sentence | None:
        """Why a payee cannot get a name; None if it can."""

    def renamed(self, data: bytes, message: Message, names: Mapping[int, str]) -> list[Edit]:
        """Edits that give payees new names, by row; unchanged names are no edit."""

    def kept(self, data: bytes, message: Message, keep: pl.Series, role: Role) -> list[Edit]:
        """The edits that leave some of the payments, one at least, with counts and sums for just these.

        The message has no obstacle to a change or to a split; the role is what the file that is made is for.

        Raises OutputError where a cell has no room for its new sum.
        """


@runtime_checkable
class FileReader(Protocol):
    """A message format whose files are read by a child, so that this process does not hold them."""

    def read_file(self, file: IO[bytes], *, where: str) -> Message:
        """Read a file of the system, from its start; else as `read`. The message has its identity."""
