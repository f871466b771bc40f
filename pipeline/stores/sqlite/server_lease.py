"""A lock for each server and client, shared by the runs that use the server.

The system releases the lock when a process ends for any reason. So a run that gets it exclusively is the only
one, and all shares are free. The file records that runs are active or when the last one ended. If it still
says active, that run was killed: its last requests may still count, so nothing is free for one rate window.
"""

import fcntl
import os
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import anyio

from pipeline.files.disk_errors import writing
from pipeline.stores.leased_shares import Waiting
from pipeline.stores.sqlite.division_file import ELSEWHERE, locked, opened
from pipeline.stores.values import LeaseHolder

MOMENT_S = 0.02  # a starting run holds the lock exclusively for less than this time
_UNFINISHED = b"unfinished"
_RECORD_BYTES_MAX = 64


class ServerLock:
    """The lock of one server and client, as used by one run."""

    def __init__(self, folder: Path, scope: str, window_s: float, clock: Callable[[], datetime]) -> None:
        """Open a scope's lock without taking it; a request counts for `window_s`. Same errors as `opened`."""
        self._folder = folder
        self._server = scope.partition("|")[0]
        self._window_s = window_s
        self._clock = clock
        self._file = opened(folder / f"{file_name(scope)}.lock")

    async def take(self, waiting: Waiting) -> float | None:
        """Take the lock: exclusively if no other run has it, otherwise shared (DiskError: the disk is full).

        If exclusive, returns how many seconds the last run's requests may still count; otherwise None.
        IncompleteError: a run that was stopped while starting still holds the lock after the wait.
        """
        beginning: LeaseHolder | None = None
        while not (is_alone := locked(self._file, fcntl.LOCK_EX)) and not locked(self._file, fcntl.LOCK_SH):
            await anyio.sleep(MOMENT_S)
            if not locked(self._file, fcntl.LOCK_SH):
                beginning = waiting.on(LeaseHolder(self._server), beginning)
                await waiting.sleep()
        ending = os.pread(self._file, _RECORD_BYTES_MAX, 0)
        write_record(self._file, self._folder, _UNFINISHED)
        return _rest_s(ending, self._window_s, self._clock().timestamp()) if is_alone else None

    def share(self) -> bool:
        """Take the lock shared; False if another run has just taken it exclusively."""
        return locked(self._file, fcntl.LOCK_SH)

    def end(self) -> None:
        """Release the lock; the last run records the time. Raises OutputError, DiskError."""
        try:
            if locked(self._file, fcntl.LOCK_EX):
                ending = f"{self._clock().timestamp():.3f}"
                write_record(self._file, self._folder, ending.encode())
        finally:
            os.close(self._file)


def file_name(subject: str) -> str:
    """Return a file name that does not reveal the server or the client."""
    return sha256(subject.encode()).hexdigest()[:32]


def _rest_s(ending: bytes, window_s: float, now_s: float) -> float:
    """Return how many seconds the last request of the previous run may still count."""
    if not ending:
        return 0.0
    try:
        since_s = now_s - float(ending)
    except ValueError:
        return window_s
    return min(max(window_s - since_s, 0.0), window_s)


def write_record(lock: int, folder: Path, ending: bytes) -> None:
    """Overwrite the lock's record; one left incomplete by a crash means that the run did not finish."""
    with writing(folder, otherwise=ELSEWHERE):
        os.pwrite(lock, ending, 0)
        os.truncate(lock, len(ending))
