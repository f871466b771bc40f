"""Journals: files of JSON lines that only grow, each line with the hash of the one before it."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from pipeline.errors import DiskError, InputError
from schemas.desk import NOTHING_BEFORE, Entry

AnyEntry = TypeVar("AnyEntry", bound=Entry)


class ChainedJournal(Generic[AnyEntry]):
    """One such file. Several processes may write to it."""

    def __init__(self, path: Path, model: type[AnyEntry]) -> None:
        self.path = path
        self._model = model

    def append(self, entry_after: Callable[[str], AnyEntry]) -> AnyEntry:
        """Add a line, and have it on the disk.

        Args:
            entry_after: gives the entry, from the hash of the line before it.

        Raises:
            DiskError: it cannot be written.
        """
        try:
            with self._locked() as descriptor:
                lines = _whole_lines(_bytes_of(descriptor))
                entry = entry_after(_hash(lines[-1]) if lines else NOTHING_BEFORE)
                end = sum(len(line) + 1 for line in lines)
                os.truncate(descriptor, end)  # what a process that was killed had begun
                os.pwrite(descriptor, entry.model_dump_json().encode() + b"\n", end)
                os.fsync(descriptor)
        except OSError as error:
            raise DiskError(f"{self.path.name}: cannot be written ({error.strerror}); make room") from error
        return entry

    def entries(self) -> list[AnyEntry]:
        """All lines, oldest first.

        Raises:
            InputError: a line was changed, removed or put in between.
        """
        lines = self._lines()
        self._require_chain(lines)
        try:
            return [self._model.model_validate_json(line) for line in lines]
        except ValueError:
            raise self._changed() from None

    @property
    def head(self) -> str:
        """The hash of the last line."""
        lines = self._lines()
        return _hash(lines[-1]) if lines else NOTHING_BEFORE

    def _lines(self) -> list[bytes]:
        return _whole_lines(self.path.read_bytes()) if self.path.exists() else []

    def _require_chain(self, lines: list[bytes]) -> None:
        before = NOTHING_BEFORE
        for line in lines:
            try:
                is_next = json.loads(line)["previous"] == before
            except (ValueError, TypeError, KeyError):
                is_next = False
            if not is_next:
                raise self._changed()
            before = _hash(line)

    def _changed(self) -> InputError:
        return InputError(f"{self.path.name}: changed by another program", advice="bring it back from a copy")

    @contextmanager
    def _locked(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _bytes_of(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _whole_lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def _hash(line: bytes) -> str:
    return sha256(line).hexdigest()
