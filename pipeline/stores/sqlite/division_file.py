"""The division of one account among the processes of a machine: a small file, locked for changes.

Times are of the monotonic clock, so the file need not survive a restart, and writes are not synced: a time
too far ahead is from before a restart, and past times do not count (`sharing`). A killed process releases the
lock. One that is stopped while it holds the lock blocks all renewals until it continues or is killed;
meanwhile, the leases of the others end, and they send nothing.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import anyio

from pipeline.files.disk_errors import not_writable, writing
from pipeline.stores.sharing import Division
from pipeline.wording import Sentence

RETRY_INTERVAL_S = 0.002
ELSEWHERE = Sentence("stores.set_state_home")
_BYTES_MAX = 1 << 20
_CHECKSUM_LENGTH = 8

Result = TypeVar("Result")


class DivisionFile:
    """The file with the division of one account."""

    def __init__(self, path: Path) -> None:
        """Open the file; if missing, create it (0600) and its folder (0700). Same errors as `opened`."""
        self._path = path
        self._file = opened(path)

    def close(self) -> None:
        os.close(self._file)

    async def change(self, rule: Callable[[Division | None], tuple[Division, Result]]) -> Result:
        """Change the division atomically: `rule` gets the old one, or None (DiskError, OutputError)."""
        while not locked(self._file, fcntl.LOCK_EX):  # noqa: ASYNC110 (locked by another process)
            await anyio.sleep(RETRY_INTERVAL_S)
        try:
            division, result = rule(_read(os.pread(self._file, _BYTES_MAX, 0)))
            written = division.as_json().encode()
            content = _checksum(written) + written
            os.pwrite(self._file, content, 0)
            os.truncate(self._file, len(content))
        except OSError as error:
            raise not_writable(self._path, error, otherwise=ELSEWHERE) from error
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        return result


def locked(file: int, kind: int) -> bool:
    """Lock an open file at once; False if another process has it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def opened(path: Path) -> int:
    """Open a small file that a user's processes share; create it and its folder (OutputError, DiskError)."""
    with writing(path, otherwise=ELSEWHERE):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _read(content: bytes) -> Division | None:
    """Parse the division; None if a crash left it incomplete."""
    if not content:
        return Division()
    checksum, content = content[:_CHECKSUM_LENGTH], content[_CHECKSUM_LENGTH:]
    return Division.of_json(content) if checksum == _checksum(content) else None


def _checksum(content: bytes) -> bytes:
    return b"%08x" % crc32(content)
