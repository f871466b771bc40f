"""Open a payment file and read it once, here or in a child process: the bytes hashed are the bytes parsed."""

import hashlib
import io
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, Any, NamedTuple

import polars as pl

from pipeline.errors import InputError, UsageError
from pipeline.files.compressed import UNPACKED_BYTES_MAX, Compression, UnpackedFile, sniff, unpacked
from pipeline.files.memory import memory_max_bytes, refuse_too_large
from pipeline.formats import excel
from pipeline.formats.layouts import BankLayout
from pipeline.formats.message import FileIdentity, Message
from pipeline.formats.protocols import FileReader
from pipeline.formats.registry import ANY_FORMAT, HEAD_BYTES, Entry, FormatChoice, MessageEntry, entry_of
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
    original: Original  # the file's columns, unchanged, in order and without outcome columns; same height
    columns: tuple[ColumnReading, ...]  # how each header was read, in file order
    decision: Mapping[str, str]  # each field's column, in `--map` notation by position: a later `decided`
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
    not_payments: list[NotPayment]  # rows of the table that are not payments: repeated headers, totals

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

    def as_message(self) -> Message:
        """Return the message of a file whose format has one."""
        assert self.message is not None
        return self.message

    @property
    def dialect_fields(self) -> dict[str, Any]:
        """The fields of a `FileDialect`."""
        is_below = self.positions is not None and self.positions.of(1) > 1 + self.dialect.header_line
        extra = {"extra_column_count": self.extra_column_count, "lines_above": is_below}
        return self.dialect._asdict() | extra | ({} if self.packing is None else self.packing._asdict())


FILE_BYTES_MAX = 8 * 1024**3

_UNPACKED_TWICE = 2  # memory per unpacked byte: for the pieces and for the whole
_PACKED_SUFFIXES = (".gz", ".zip")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}")


class OpenedFile(NamedTuple):
    """The contents of a file."""

    content: bytes | Message  # the unpacked bytes; a message if a child process has read the file
    entry: Entry
    packed: tuple[Packing, FileIdentity] | None
    """The compression, and the identity of the compressed file; None if it is not compressed."""


def identity_of(data: bytes) -> FileIdentity:
    """Return the hash and size of these bytes."""
    return FileIdentity(hashlib.sha256(data).hexdigest(), len(data))


def opened(path: Path, arguments: ReadingArguments, *, with_bytes: bool = True) -> OpenedFile:
    """Read and unpack a file (InputError; UsageError); without `with_bytes`, a child process may read it."""
    _refuse_no_file(path)
    with _as_input_errors(path), path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    # A workbook is a ZIP too.
    compression = None if path.suffix.lower() in excel.SUFFIXES else sniff(head)
    if compression is not None:
        return _unpacked(path, compression, arguments)
    entry = entry_of(path, lambda: head, arguments.format_choice, is_table=arguments.is_of_a_table)
    _refuse_unfit_options(entry, arguments, where=path.name)
    with _file(path) as file:
        refuse_too_large(
            os.fstat(file.fileno()).st_size, per_byte=entry.format.MEMORY_PER_BYTE, where=path.name
        )
        if isinstance(entry.format, FileReader) and not with_bytes:
            return OpenedFile(entry.format.read_file(file, where=path.name), entry, None)
        with _as_input_errors(path):
            return OpenedFile(entry.format.load(file, arguments.options, where=path.name), entry, None)


def _unpacked(path: Path, compression: Compression, arguments: ReadingArguments) -> OpenedFile:
    """Return the contents of a compressed file, under the limits of plain files."""
    where, memory_bytes = path.name, memory_max_bytes()
    with _file(path) as file, _as_input_errors(path):
        refuse_too_large(os.fstat(file.fileno()).st_size, per_byte=1, where=where)
        packed = file.read()
    limit = min(UNPACKED_BYTES_MAX, FILE_BYTES_MAX, memory_bytes // _UNPACKED_TWICE)
    found = unpacked(packed, compression, where=where, unpacked_bytes_max=limit)
    name, head, choice = _name_of(path, found), found.data[:HEAD_BYTES], arguments.format_choice
    entry = entry_of(name, lambda: head, choice, is_table=arguments.is_of_a_table, where=where)
    _refuse_unfit_options(entry, arguments, where=where)
    refuse_too_large(len(found.data), per_byte=entry.format.MEMORY_PER_BYTE, where=where)
    data = entry.format.load(io.BytesIO(found.data), arguments.options, where=where)
    return OpenedFile(data, entry, (Packing(compression, name.name), identity_of(packed)))


def _name_of(path: Path, found: UnpackedFile) -> PurePath:
    """Name the contents of a compressed file: its own name with the suffix from the ZIP, untrusted text."""
    own = path.stem if path.suffix.lower() in _PACKED_SUFFIXES else path.name
    suffix = PurePath(found.member or own).suffix
    if PurePath(own).suffix.lower() == suffix.lower() or not _SUFFIX.fullmatch(suffix):
        return PurePath(own)
    return PurePath(own + suffix)


def _refuse_no_file(path: Path) -> None:
    """Refuse a folder, pipe or device, regardless of its suffix; a missing file is found later."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(mode):
        raise InputError(
            Sentence("stages.folder_not_file", path=path), advice=Sentence("advice.check_as_data_set")
        )
    if not stat.S_ISREG(mode):
        raise InputError(Sentence("stages.pipe_or_device", path=path))


def _refuse_unfit_options(entry: Entry, arguments: ReadingArguments, *, where: str) -> None:
    if arguments.sheet is not None and "sheet" not in entry.format.OPTIONS:
        raise UsageError(
            Sentence("stages.not_a_workbook", where=where), advice=Sentence("advice.name_no_sheet")
        )
    if isinstance(entry, MessageEntry) and arguments.mapping:
        raise UsageError(
            Sentence("stages.format_without_columns", where=where, title=entry.format.TITLE),
            advice=Sentence("advice.map_nothing"),
        )


@contextmanager
def _file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading if it is not too large."""
    with _as_input_errors(path):
        opened_file = path.open("rb")
    with opened_file as file:
        if os.fstat(file.fileno()).st_size > FILE_BYTES_MAX:
            raise InputError(
                Sentence("stages.file_too_large", path=path.name, file_bytes_max=FILE_BYTES_MAX // 1024**3)
            )
        yield file


@contextmanager
def _as_input_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error if isinstance(error, OSError) else Sentence("stages.not_file_name")
        raise InputError(Sentence("stages.file_unreadable", path=path.name, reason=reason)) from error
