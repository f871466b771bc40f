"""The folder of a run, kept by one process at a time; readers may share it."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR

from pipeline.errors import InputError, LockedError, UsageError

_LOCK = ".lock"


@contextmanager
def locked(folder: Path, now: str, *, otherwise: str = "") -> Iterator[None]:
    """Make this process the folder's only one, creating the folder if it is missing.

    The lock goes with the process, however it ends. Its file stays: to unlink it would let two
    processes each lock a file of their own.

    Args:
        folder: of a run.
        now: UTC, ISO 8601 with Z.
        otherwise: what else than to wait can be done where another process is at work.

    Raises:
        LockedError: another process is at work in the folder.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        _take(lock, fcntl.LOCK_EX, folder, otherwise)
        this_process = {"pid": os.getpid(), "host": os.uname().nodename, "started_at": now}
        os.truncate(lock, 0)
        os.pwrite(lock, json.dumps(this_process).encode(), 0)
        yield
        os.truncate(lock, 0)
    finally:
        os.close(lock)


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """Keep runs out of a folder, and no reader. A copy without the lock's file has no run to keep out.

    Raises:
        LockedError: a run, or somebody who writes, is at work in the folder.
    """
    try:
        lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield
        return
    try:
        _take(lock, fcntl.LOCK_SH, folder, "")
        yield
    finally:
        os.close(lock)


def require_folder(folder: Path) -> None:
    """Refuse what is no folder, in words that say so.

    Raises:
        UsageError: there is no such folder, or it is a file.
        InputError: it cannot be read.
    """
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        raise UsageError(f"{folder}: no such folder; check the name") from None
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be read ({error.strerror}); check the path and its permissions"
        ) from error
    if not S_ISDIR(mode):
        raise UsageError(f"{folder}: a file, not a folder; give the folder of a run")


def _take(lock: int, kind: int, folder: Path, otherwise: str) -> None:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        said = f"{folder}: {_owner(lock)} is working in this folder; wait for it to end{otherwise}"
        raise LockedError(said) from error


def _owner(lock: int) -> str:
    try:
        owner = json.loads(os.pread(lock, 4096, 0))
        since = f"{owner['started_at'][:19].replace('T', ' ')} UTC"
        return f"process {owner['pid']} on {owner['host']}, started at {since},"
    except (ValueError, TypeError, KeyError):
        return "a process that has just started"
