"""A lease per server and client, held by one run at a time, so that all runs together keep its limits.

Each run keeps the rate and the requests in flight for itself. Two runs that ask the same server at the
same time would each keep them, and exceed them together; so the second waits for the first. Under a
limit that costs nothing: the calls of both take as long one after the other.

A lease is a lock on a small file, which the system releases when the process ends, however it ends. The
file names the holder and the start, and afterwards the end. Where it still names a holder, the lease was
never ended properly: its last requests may still count, so the next lease begins one window of the rate
later. This holds on one machine, on a local disk.
"""

import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from hashlib import sha256
from math import inf
from pathlib import Path

import anyio

from pipeline.errors import Advice, IncompleteError
from pipeline.files.disk_errors import not_writable
from pipeline.stores.values import LeaseHolder

POLL_INTERVAL_S = 0.25
_UNFINISHED = "unfinished"
_RECORD_BYTES_MAX = 64
_ELSEWHERE = "set XDG_STATE_HOME"


@asynccontextmanager
async def leased(  # noqa: PLR0913 (where, at what, and what a wait needs)
    folder: Path,
    scope: str,
    window_s: float,
    *,
    clock: Callable[[], datetime],
    waiting: Callable[[LeaseHolder], None],
    deadline: float = inf,
) -> AsyncIterator[None]:
    """Wait for the lease of a server, and hold it until the block ends.

    A run that asks several servers takes their leases in the order of their scopes, as all runs do, so
    that no two wait for one another.

    Args:
        folder: where the locks are, one folder for all processes of a user.
        scope: server and client, as `scopes.scope_of` gives them.
        window_s: the window in which the rate holds.
        clock: the time in UTC, which other processes of this machine go by too.
        waiting: called with each run that is waited for.
        deadline: on the clock of anyio; a run that still waits then ends.

    Raises:
        IncompleteError: the deadline has come; nothing was sent.
        OutputError: the lock cannot be created.
        DiskError: the disk is full.
    """
    lock = _opened(folder, scope)
    try:
        await _take(lock, scope, waiting, deadline)
        ending = os.pread(lock, _RECORD_BYTES_MAX, 0)
        since = clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        write_record(lock, folder, f"{_UNFINISHED} {os.getpid()} {since}".encode())
        await anyio.sleep(_rest_s(ending, window_s, clock().timestamp()))
        yield
        write_record(lock, folder, f"{clock().timestamp():.3f}".encode())
    finally:
        os.close(lock)


def _opened(folder: Path, scope: str) -> int:
    path = folder / f"{sha256(scope.encode()).hexdigest()[:32]}.lock"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise not_writable(path, error, otherwise=_ELSEWHERE) from error


async def _take(lock: int, scope: str, waiting: Callable[[LeaseHolder], None], deadline: float) -> None:
    reported: LeaseHolder | None = None
    while not _taken(lock):
        holder = _holder(lock, scope)
        if anyio.current_time() >= deadline:
            raise IncompleteError(
                f"{holder.server}: {holder.name} has been asking this server{holder.since_when}, and the "
                "time to wait for it is over; nothing was sent",
                advice=("run the same command again when that run has ended", Advice.WAIT_LONGER),
            )
        if holder != reported:
            waiting(holder)
            reported = holder
        await anyio.sleep(min(POLL_INTERVAL_S, deadline - anyio.current_time()))


def _holder(lock: int, scope: str) -> LeaseHolder:
    """The holder that the lock's file names."""
    server = scope.partition("|")[0]
    match os.pread(lock, _RECORD_BYTES_MAX, 0).decode("ascii", "replace").split():
        case [word, pid, since] if word == _UNFINISHED and pid.isdigit():
            return LeaseHolder(server, int(pid), since)
    return LeaseHolder(server)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _rest_s(ending: bytes, window_s: float, now_s: float) -> float:
    """What is left of the window in which the last request of the previous lease may still count."""
    if not ending:
        return 0.0
    try:
        since_s = now_s - float(ending)
    except ValueError:
        return window_s
    return min(max(window_s - since_s, 0.0), window_s)


def write_record(lock: int, folder: Path, ending: bytes) -> None:
    """Overwrite the record of the lease. One that a crash leaves half written counts as unfinished."""
    try:
        os.pwrite(lock, ending, 0)
        os.truncate(lock, len(ending))
    except OSError as error:
        raise not_writable(folder, error, otherwise=_ELSEWHERE) from error
