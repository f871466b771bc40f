"""One run at a time asks a server for one client, so that its limits are those of all runs together.

The rate and the requests in flight are kept by each run for itself. Two runs that asked the same
server at the same time would each keep them, and exceed them together; so the second waits for the
first. Under a limit that costs nothing: the calls of both take as long one after the other.

A turn is a lock on a small file. The system lets go of it when the process ends, however it ends. The
file tells when the last turn ended, or that it never did: what was sent then may still count, so the
next turn begins one window of the rate later. This holds on one machine, on a local disk.
"""

import fcntl
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import anyio

from pipeline.disks import refused

POLL_INTERVAL_S = 0.25
_UNFINISHED = b"unfinished"
_ELSEWHERE = "set XDG_STATE_HOME"


@asynccontextmanager
async def turn(
    folder: Path, scope: str, window_s: float, *, waiting: Callable[[], None]
) -> AsyncIterator[None]:
    """Wait until no other run asks this server, and keep others waiting until the block ends.

    A run that asks several servers takes its turns in the order of their scopes, as all runs do, so
    that no two wait for one another.

    Args:
        folder: where the locks are, one folder for all processes of a user.
        scope: server and client, as `quota.scope_of` gives them.
        window_s: the window in which the rate holds.
        waiting: called once, where there is another run to wait for.

    Raises:
        OutputError: the lock cannot be created.
        DiskError: the disk is full.
    """
    lock = _opened(folder, scope)
    try:
        if not _taken(lock):
            waiting()
            while not _taken(lock):  # noqa: ASYNC110 (the other run is another process)
                await anyio.sleep(POLL_INTERVAL_S)
        await anyio.sleep(_rest_s(os.pread(lock, 64, 0), window_s))
        _write(lock, folder, _UNFINISHED)
        yield
        _write(lock, folder, f"{time.time():.3f}".encode())
    finally:
        os.close(lock)


def _opened(folder: Path, scope: str) -> int:
    path = folder / f"{sha256(scope.encode()).hexdigest()[:32]}.lock"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise refused(path, error, otherwise=_ELSEWHERE) from error


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _rest_s(ending: bytes, window_s: float) -> float:
    """What is left of the window in which the last request of the turn before may still count."""
    if not ending:
        return 0.0
    try:
        since_s = time.time() - float(ending)
    except ValueError:
        return window_s
    return min(max(window_s - since_s, 0.0), window_s)


def _write(lock: int, folder: Path, ending: bytes) -> None:
    """Tell how the turn ended, over what was told last: a lock that is cut short there is unfinished."""
    try:
        os.pwrite(lock, ending, 0)
        os.truncate(lock, len(ending))
    except OSError as error:
        raise refused(folder, error, otherwise=_ELSEWHERE) from error
