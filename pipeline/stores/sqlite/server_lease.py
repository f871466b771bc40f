"""One run at a time asks a server for one client, so that its limits are those of all runs together.

The rate and the requests in flight are kept by each run for itself. Two runs that asked the same
server at the same time would each keep them, and exceed them together; so the second waits for the
first. Under a limit that costs nothing: the calls of both take as long one after the other.

A turn is a lock on a small file. The system lets go of it when the process ends, however it ends. The
file tells whose turn it is and since when, and afterwards when it ended; where it still says whose it
was, it never did: what was sent then may still count, so the next turn begins one window of the rate
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

from pipeline.errors import IncompleteError
from pipeline.files.disk_errors import refused
from pipeline.stores.values import Holder

POLL_INTERVAL_S = 0.25
_UNFINISHED = "unfinished"
_TOLD_BYTES_MAX = 64
_ELSEWHERE = "set XDG_STATE_HOME"


@asynccontextmanager
async def turn(  # noqa: PLR0913 (where, at what, and what a wait needs)
    folder: Path,
    scope: str,
    window_s: float,
    *,
    clock: Callable[[], datetime],
    waiting: Callable[[Holder], None],
    deadline: float = inf,
) -> AsyncIterator[None]:
    """Wait until no other run asks this server, and keep others waiting until the block ends.

    A run that asks several servers takes its turns in the order of their scopes, as all runs do, so
    that no two wait for one another.

    Args:
        folder: where the locks are, one folder for all processes of a user.
        scope: server and client, as `scopes.scope_of` gives them.
        window_s: the window in which the rate holds.
        clock: the time in UTC, which other processes of this machine go by too.
        waiting: called with each run that is waited for, one after the other as a rule.
        deadline: on the clock of anyio; a run that still waits then ends.

    Raises:
        IncompleteError: the deadline has come; nothing was sent.
        OutputError: the lock cannot be created.
        DiskError: the disk is full.
    """
    lock = _opened(folder, scope)
    try:
        await _take(lock, scope, waiting, deadline)
        ending = os.pread(lock, _TOLD_BYTES_MAX, 0)
        since = clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        write_ending(lock, folder, f"{_UNFINISHED} {os.getpid()} {since}".encode())
        await anyio.sleep(_rest_s(ending, window_s, clock().timestamp()))
        yield
        write_ending(lock, folder, f"{clock().timestamp():.3f}".encode())
    finally:
        os.close(lock)


def _opened(folder: Path, scope: str) -> int:
    path = folder / f"{sha256(scope.encode()).hexdigest()[:32]}.lock"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise refused(path, error, otherwise=_ELSEWHERE) from error


async def _take(lock: int, scope: str, waiting: Callable[[Holder], None], deadline: float) -> None:
    told: Holder | None = None
    while not _taken(lock):
        holder = _holder(lock, scope)
        if anyio.current_time() >= deadline:
            raise IncompleteError(
                f"{holder.server}: {holder.name} has been asking this server{holder.since_when}, and "
                "--wait-max is over; nothing was sent: run the same command again when that run has ended"
            )
        if holder != told:
            waiting(holder)
            told = holder
        await anyio.sleep(min(POLL_INTERVAL_S, deadline - anyio.current_time()))


def _holder(lock: int, scope: str) -> Holder:
    """Who has the lock, as its file tells."""
    server = scope.partition("|")[0]
    match os.pread(lock, _TOLD_BYTES_MAX, 0).decode("ascii", "replace").split():
        case [word, pid, since] if word == _UNFINISHED and pid.isdigit():
            return Holder(server, int(pid), since)
    return Holder(server)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _rest_s(ending: bytes, window_s: float, now_s: float) -> float:
    """What is left of the window in which the last request of the turn before may still count."""
    if not ending:
        return 0.0
    try:
        since_s = now_s - float(ending)
    except ValueError:
        return window_s
    return min(max(window_s - since_s, 0.0), window_s)


def write_ending(lock: int, folder: Path, ending: bytes) -> None:
    """Tell how the turn ended, over what was told last: a lock that is cut short there is unfinished."""
    try:
        os.pwrite(lock, ending, 0)
        os.truncate(lock, len(ending))
    except OSError as error:
        raise refused(folder, error, otherwise=_ELSEWHERE) from error
