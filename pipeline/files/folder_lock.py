"""The lock on the folder of a run, exclusive for writers and shared by readers."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISVTX, S_IWOTH

from pipeline.errors import InputError, LockedError, OutputError, UsageError
from pipeline.files.disk_errors import not_writable, refuse_non_file
from pipeline.wording import Sentence

LOCK = ".lock"
_CONTENT_BYTES_MAX = 4096


@contextmanager
def locked(folder: Path, now: str, *, otherwise: Sequence[Sentence] = ()) -> Iterator[None]:
    """Lock the folder for this process alone, at most until it ends; create it if missing.

    The lock file stays: if it were unlinked, two processes could each lock a different file. Raises
    OutputError as `require_ours`, and LockedError: in use; `otherwise` are alternatives to waiting.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_ours(folder)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
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
    """Lock out runs but not readers (LockedError: a run is active). A copied folder may have no lock file."""
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        yield
        return
    try:
        _take(lock, fcntl.LOCK_SH, folder)
        yield
    finally:
        os.close(lock)


_ELSEWHERE = (Sentence("advice.other_folder"),)


def refuse_open(folder: Path, *, within: bool = False, advice: Sequence[Sentence] = _ELSEWHERE) -> None:
    """Refuse to write into a folder, or one within it, if any user may put files there (OutputError).

    In a folder with the sticky bit, such as /tmp, users cannot replace each other's files. But another user
    may have created a folder there, and could replace our files or redirect a link.
    """
    with suppress(OSError):  # an unreadable folder cannot be written to either
        mode = folder.stat().st_mode
        if mode & S_IWOTH and not (within and mode & S_ISVTX):
            raise OutputError(Sentence("files.folder_writable_by_others", folder=folder), advice=advice)
    for path in _leading_to(folder.absolute()):
        with suppress(OSError):
            if path.lstat().st_uid not in {0, os.geteuid()} and path.parent.stat().st_mode & S_IWOTH:
                raise OutputError(Sentence("files.folder_made_by_another_user", folder=path), advice=advice)


def _leading_to(folder: Path, links: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the folder, and each folder and link on the path to it; links in a loop once."""
    for path in (*reversed(folder.parents), folder):
        yield path
        if path.is_symlink() and path not in links:
            yield from _leading_to(path.parent / path.readlink(), links | {path})


def require_ours(folder: Path) -> None:
    """Refuse a folder that `refuse_open` refuses, or whose lock is not this program's file (OutputError)."""
    refuse_open(folder)
    path = folder / LOCK
    refuse_non_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(_CONTENT_BYTES_MAX + 1).strip(b"\0")
    except FileNotFoundError:
        return
    except OSError as error:
        raise not_writable(path, error) from error
    if content and _owner_in(content) is None:
        raise OutputError(
            Sentence("files.not_a_lock_file", path=path),
            advice=(Sentence("files.remove_it"), Sentence("advice.other_folder")),
        )


def require_folder(folder: Path) -> None:
    """Refuse a path that is not a folder (UsageError) or not readable (InputError)."""
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        raise UsageError(Sentence("files.no_such_folder", folder=folder)) from None
    except OSError as error:
        raise InputError(Sentence("files.folder_unreadable", folder=folder, why=error)) from error
    if not S_ISDIR(mode):
        raise UsageError(Sentence("files.file_not_folder", folder=folder))


def _take(lock: int, kind: int, folder: Path, otherwise: Sequence[Sentence] = ()) -> None:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = _owner_in(os.pread(lock, _CONTENT_BYTES_MAX, 0)) or Sentence("files.process_just_started")
        raise LockedError(
            Sentence("files.folder_in_use", folder=folder, owner=owner),
            advice=(Sentence("files.wait_for_it_to_end"), *otherwise),
        ) from error


def _owner_in(content: bytes) -> Sentence | None:
    """Return the owner of a lock by its content; None if `locked` did not write it."""
    try:
        owner = json.loads(content)
        since = f"{owner['started_at'][:19].replace('T', ' ')} UTC"
        return Sentence("files.process_since", pid=owner["pid"], host=owner["host"], since=since)
    except (ValueError, TypeError, KeyError):
        return None
