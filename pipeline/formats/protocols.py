"""Protocols of formats; modules of this package, or objects that they create, implement them.

A format declares itself (`Format`), and reads a table (`TabularFormat`) or a message (`MessageFormat`). A
corrected or split table is rewritten (`PaymentsFormat`), a message is changed by edits. Outcomes are written
as tables, in the formats of `--format` (`OutcomeFormat`).
"""

from collections.abc import Mapping
from typing import IO, Protocol, runtime_checkable

import polars as pl

from pipeline.formats.edits import Edit
from pipeline.formats.message import Message, Role
from pipeline.formats.table import Dialect, ReadingOptions, Table
from pipeline.wording import Sentence


class Format(Protocol):
    """What every format declares."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """Its name in options."""

    @property
    def TITLE(self) -> Sentence | str:  # noqa: N802 - a constant of the module
        """Title for people."""

    @property
    def KNOWN_BY(self) -> Sentence:  # noqa: N802 - a constant of the module
        """How its files are recognised, in words; for a message, their start."""

    @property
    def SUFFIXES(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """Lower-case suffixes of its file names. Several formats may share one."""

    @property
    def MEMORY_PER_BYTE(self) -> int:  # noqa: N802 - a constant of the module
        """Bytes of memory that a run takes per byte of the file."""

    @property
    def OPTIONS(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """The `ReadingOptions` that it supports, besides the mapping."""

    def sniff(self, head: bytes) -> bool:
        """True if a file starts like this format and no other."""

    def load(self, file: IO[bytes], options: ReadingOptions, *, where: str) -> bytes:
        """Return all bytes of a file, unchanged (InputError: clearly not payments)."""


class TabularFormat(Format, Protocol):
    """A format whose files are tables."""

    def read(self, data: bytes, options: ReadingOptions, *, where: str) -> Table:
        """Read a file; raises InputError if it is unreadable or ambiguous."""

    @property
    def HAS_TYPES(self) -> bool:  # noqa: N802 - a constant of the module
        """True if its columns have types, which an outcome file of another format loses."""


class OutcomeFormat(TabularFormat, Protocol):
    """A format for outcome files; its name is a value of `--format`."""

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - a constant of the module
        """The suffix of file names that this program chooses."""

    @property
    def BUCKET_BYTES(self) -> int:  # noqa: N802 - a constant of the module
        """Size of one bucket of a data set in bytes: about 400,000 rows."""

    def write(self, table: pl.DataFrame, file: IO[bytes], *, column: str, dialect: Dialect) -> None:
        """Write a table and read it back, one column cell by cell.

        Raises OSError if the file cannot be written, AssertionError if it does not hold the table.
        """


class PaymentsFormat(TabularFormat, Protocol):
    """A format that writes payment files like their input."""

    @property
    def SUFFIX(self) -> str:  # noqa: N802 - a constant of the module
        """The suffix of file names that this program chooses."""

    def rewrite(self, table: pl.DataFrame, file: IO[bytes], dialect: Dialect, *, where: str) -> bytes:
        """Write a table in the dialect of another file.

        Returns the content of the file with a header line, for `read` to check. Raises OSError if the file
        cannot be written, OutputError if its encoding lacks a character.
        """


class MessageFormat(Format, Protocol):
    """A format whose payments are in a message instead of a table."""

    @property
    def ORIGINS(self) -> Mapping[str, Sentence | str]:  # noqa: N802 - a constant of the module
        """Field -> its position, in words for people who know the format; for each field of the format."""

    def read(self, data: bytes, options: ReadingOptions, *, where: str) -> Message:
        """Read a file; raises InputError if it is unreadable or ambiguous."""

    def fitted(self, name: str) -> str | None:
        """Return a name as a file of this format holds it; None if it cannot."""

    def obstacle(self, message: Message) -> Sentence | None:
        """Return why a file must not be changed; None if it may."""

    def split_obstacle(self, message: Message) -> Sentence | None:
        """Return why payments cannot be removed from a file; None if they can."""

    def name_obstacle(self, message: Message, row: int, name: str) -> Sentence | None:
        """Return why a payee cannot get a name; None if it can."""

    def renamed(self, data: bytes, message: Message, names: Mapping[int, str]) -> list[Edit]:
        """Return edits that give payees new names, by row; unchanged names need no edit."""

    def kept(self, data: bytes, message: Message, keep: pl.Series, role: Role) -> list[Edit]:
        """Return the edits that keep only these payments, at least one, with matching counts and sums.

        The caller has made sure that the message may be changed and split. Raises OutputError if a cell is
        too small for its new sum.
        """


@runtime_checkable
class FileReader(Protocol):
    """A message format whose files a child process reads, so that this one does not hold them."""

    def read_file(self, file: IO[bytes], *, where: str) -> Message:
        """Read an open file from its start; otherwise like `read`. The message has its `identity`."""
