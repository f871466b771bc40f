"""One run at a time asks a server for one client, so that its limits are those of all runs together.

The rate and the requests in flight are kept by each run for itself. Two runs that asked the same
server at the same time would each keep them, and exceed them together; so the second waits for the
first. Under a limit that costs nothing: the calls of both take as long one after the other.

The turn is a lock on one byte of a file, the byte's place standing for server and client. The system
lets go of it when the process ends, however it ends. It holds on one machine, on a local disk.
"""

import fcntl
import os
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import anyio

from pipeline.errors import OutputError

POLL_INTERVAL_S = 0.25


@asynccontextmanager
async def turn(path: Path, scopes: Collection[str], *, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Wait until no other run asks any of these servers, and keep others waiting until the block ends.

    Args:
        path: the file of the locks, one for all processes of a user.
        scopes: server and client, as `quota.scope_of` gives them.
        waiting: called once, where there is another run to wait for.

    Raises:
        OutputError: the file cannot be created.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OutputError(f"{path}: cannot be opened ({error.strerror}); set XDG_STATE_HOME") from error
    try:
        waited = False
        # Everybody takes them in the same order, so that no two runs wait for one another.
        for place in sorted(map(_place, scopes)):
            while not _taken(descriptor, place):
                if not waited:
                    waiting()
                waited = True
                await anyio.sleep(POLL_INTERVAL_S)
        if waited:
            # The last requests of the other run are still within the second that counts.
            await anyio.sleep(POLL_INTERVAL_S)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int, place: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except (BlockingIOError, PermissionError):  # POSIX lets a system say either
        return False
    return True


def _place(scope: str) -> int:
    return int.from_bytes(sha256(scope.encode()).digest()[:7])
