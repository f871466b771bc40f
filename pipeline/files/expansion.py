"""Limit how far a compressed file may expand: its child process counts its cells before it sends any."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.errors import InputError
from pipeline.files.memory import memory_max_bytes
from pipeline.wording import Sentence

RECORD_BYTES_MAX = 65_536  # maximum length of a row in any format; no payment is longer
CELL_BYTES = 16  # memory of a cell in addition to its text, even if empty

_MIB = 1024**2
_TABLE_BYTES_MIN = 256 * _MIB  # limit for the smallest file: a million short, equal rows
_TABLE_PER_BYTE = 64  # additional memory per byte of the file; a file of payments grows 5 to 30 times
_COUNTING_BYTES = 192 * _MIB
_COUNTING_PER_BYTE = 32  # more memory per byte; pages are unpacked one by one, but may be a whole column
_OWN_PAGES = Path("/proc/self/statm")


def table_bytes_max(file_bytes: int) -> int:
    """Return the limit for all cells in bytes, with `CELL_BYTES` for each; at most half of the memory."""
    return min(_TABLE_BYTES_MIN + _TABLE_PER_BYTE * file_bytes, memory_max_bytes() // 2)


class SizeBudget:
    """A limit on the bytes of all cells together."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0

    def add(self, *, text_bytes: int, cell_count: int) -> None:
        """Count some cells (InputError: more than a file of this size may hold)."""
        self._bytes += text_bytes + CELL_BYTES * cell_count
        if self._bytes > self._bytes_max:
            raise InputError(Sentence("files.cells_expand_too_large", bytes_max=self._bytes_max / _MIB))


def refuse_long_row(byte_count: int, where: str) -> None:
    """Refuse a row longer than `RECORD_BYTES_MAX`, in one cell or in total (InputError)."""
    if byte_count > RECORD_BYTES_MAX:
        raise InputError(Sentence("files.row_too_long", where=where, record_bytes_max=RECORD_BYTES_MAX))


@contextmanager
def little_memory(file_bytes: int) -> Iterator[None]:
    """Limit the memory growth of this process while it counts cells (InputError: it needed more).

    On systems that do not report a process's size, only the limit of the whole process applies.
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    room = _COUNTING_BYTES + _COUNTING_PER_BYTE * file_bytes
    with suppress(OSError):
        pages = int(_OWN_PAGES.read_text("ascii").split()[0])
        soft = pages * resource.getpagesize() + room
        if before[0] == resource.RLIM_INFINITY or soft < before[0]:
            resource.setrlimit(resource.RLIMIT_AS, (soft, before[1]))
    try:
        yield
    except MemoryError:
        raise InputError(Sentence("files.values_too_large")) from None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
