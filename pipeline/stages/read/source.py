"""A payment file after reading, and the arguments of reading it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from pipeline.files.compressed import Compression
from pipeline.formats import ANY_FORMAT, FormatChoice
from pipeline.formats.layouts import BankLayout
from pipeline.formats.message import Message
from pipeline.formats.table import Dialect, ReadingOptions
from pipeline.frames import WARNINGS, Original, Payments, Warnings
from pipeline.headers.readings import ColumnReading
from pipeline.wording import Sentence
from schemas.row_positions import RowPositions
from schemas.summary import NotPayment


class Packing(NamedTuple):
    """The compression of a file."""

    compression: Compression
    unpacked_name: str  # name of its content, with the suffix of a payment file


class ReadingArguments(NamedTuple):
    """The arguments of reading: the user's choices and what the program found."""

    mapping: Mapping[str, str]  # field -> header, from the user
    encoding: str | None = None
    sheet: str | None = None
    decided: Mapping[str, str] | None = None
    """The `decision` of an earlier reading of the same columns, which fewer rows must not change."""
    is_ours: bool = False  # true if this program wrote the file: every row below its header line is a payment
    format_choice: FormatChoice = ANY_FORMAT
    country: str | None = None  # country of all accounts without an IBAN, from the user or the profile

    @property
    def is_of_a_table(self) -> bool:
        """True if the file can only be a table."""
        return self.is_ours or bool(self.mapping)

    @property
    def options(self) -> ReadingOptions:
        """The options for the format of the file."""
        return ReadingOptions(None if self.is_ours else self.mapping, self.encoding, self.sheet)


class PaymentSource(NamedTuple):
    """A payment file after reading."""

    payments: Payments  # `frames.PAYMENTS`: one row per payment of the file, in order, numbered from 1
    original: Original
    """The columns of the file, unchanged and in order, without outcome columns of an earlier run; same
    height.
    """
    columns: tuple[ColumnReading, ...]  # how each header was read, in file order
    decision: Mapping[str, str]
    """The column of each field, in `--map` notation by position: the `decided` of a later `read`."""
    notes: tuple[Sentence, ...]  # notes for people on how columns were chosen
    format: str  # the name of the format
    layout: BankLayout | None  # the user's layout, if the file has one
    outcome_format: str  # the default format of outcomes: the input's, if it can be written
    dialect: Dialect  # the dialect of the file
    sha256: str  # SHA-256 of the file in hexadecimal
    byte_count: int
    extra_column_count: int  # number of columns at the end that hold cells of rows that were too long
    earlier: pl.DataFrame  # the outcome columns of an earlier run in the file; same height, or no columns
    positions: RowPositions | None  # the positions of payments in the file; None if the format has no lines
    not_payments: list[NotPayment]
    """Rows of the table that are not payments, such as repeated headers or totals."""

    packing: Packing | None = None  # how the file was compressed
    message: Message | None = None  # facts of a message file, with their positions
    warnings: Warnings = Warnings(pl.DataFrame(schema=WARNINGS))  # warnings that only the format can find

    @property
    def read_as(self) -> dict[str, str]:
        """Return header -> field; a position in a message may serve several fields."""
        fields: dict[str, list[str]] = {}
        for reading in self.columns:
            if reading.field is not None:
                fields.setdefault(reading.header, []).append(reading.field)
        return {header: ", ".join(found) for header, found in fields.items()}

    @property
    def dialect_fields(self) -> dict[str, Any]:
        """The fields of a `FileDialect`."""
        is_below = self.positions is not None and self.positions.of(1) > 1 + self.dialect.header_line
        extra = {"extra_column_count": self.extra_column_count, "lines_above": is_below}
        return self.dialect._asdict() | extra | ({} if self.packing is None else self.packing._asdict())
