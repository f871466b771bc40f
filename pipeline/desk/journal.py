"""Append-only journals of JSON lines; each line contains the hash of the previous one."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pipeline.errors import DiskError, InputError
from pipeline.files.plain import plain_bytes
from pipeline.files.private import locked
from pipeline.wording import Sentence
from schemas.desk import NOTHING_BEFORE, Entry

AnyEntry = TypeVar("AnyEntry", bound=Entry)


class _Read(NamedTuple, Generic[AnyEntry]):
    """Lines that an earlier read has verified, from the first one on."""

    byte_count: int = 0
    digest: str = sha256().hexdigest()  # the hash of their bytes
    head: str = NOTHING_BEFORE  # the hash of the last line
    entries: Sequence[AnyEntry] = ()


class ChainedJournal(Generic[AnyEntry]):
    """One journal. Several processes may write to it; unchanged lines are parsed only once."""

    def __init__(self, path: Path, model: type[AnyEntry]) -> None:
        self.path = path
        self._model = model
        self._read: _Read[AnyEntry] = _Read()

    def append(self, entry_after: Callable[[str], AnyEntry]) -> AnyEntry:
        """Append the entry made from the previous line's hash, and sync it to disk (DiskError)."""
        try:
            with locked(self.path) as descriptor:
                lines = _whole_lines(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
                entry = entry_after(_hash(lines[-1]) if lines else NOTHING_BEFORE)
                end = sum(len(line) + 1 for line in lines)
                os.truncate(descriptor, end)  # an unfinished line, left by a killed process
                os.pwrite(descriptor, entry.model_dump_json().encode() + b"\n", end)
                os.fsync(descriptor)
        except OSError as error:
            raise DiskError(Sentence("desk.journal_not_writable", path=self.path.name, why=error)) from error
        return entry

    def entries(self) -> list[AnyEntry]:
        """Read all entries, oldest first (InputError: a line was changed, removed or inserted)."""
        data, read = self._data(), self._read
        if sha256(data[: read.byte_count]).hexdigest() != read.digest:
            read = _Read()
        lines = _whole_lines(data[read.byte_count :])
        head = self._end_of_chain(lines, read.head)
        try:
            entries = [*read.entries, *map(self._model.model_validate_json, lines)]
        except ValueError:
            raise self._changed() from None
        byte_count = read.byte_count + sum(len(line) + 1 for line in lines)
        self._read = _Read(byte_count, sha256(data[:byte_count]).hexdigest(), head, entries)
        return entries

    @property
    def head(self) -> str:
        """The hash of the last line."""
        lines = _whole_lines(self._data())
        return _hash(lines[-1]) if lines else NOTHING_BEFORE

    def _data(self) -> bytes:
        return plain_bytes(self.path) if self.path.exists() else b""

    def _end_of_chain(self, lines: list[bytes], before: str) -> str:
        """Return the last line's hash; the first line must contain `before`, its predecessor's hash."""
        for line in lines:
            previous = None
            with suppress(ValueError, TypeError, KeyError):
                previous = json.loads(line)["previous"]
            if previous != before:
                raise self._changed()
            before = _hash(line)
        return before

    def _changed(self) -> InputError:
        return InputError(
            Sentence("desk.changed_by_another_program", path=self.path.name),
            advice=Sentence("stores.restore_from_copy"),
        )


def _whole_lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def _hash(line: bytes) -> str:
    return sha256(line).hexdigest()
