"""Files that appear whole or not at all, readable by their owner only."""

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import DiskError, OutputError

_MODE = 0o600
_PART = ".part"

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Of the disk; every other error of the operating system means that this file cannot be here."""


@contextmanager
def write_whole(path: Path) -> Iterator[io.BufferedRandom]:
    """Write a file under another name, and give it its own name once all of it is on the disk.

    The file is open for writing and reading, so that what was written can be checked before it is
    seen. When the block raises, nothing is left, and an earlier file of this name stays as it is.

    Args:
        path: The final name; its folder must exist.

    Raises:
        OutputError: the file cannot be created here, or a symbolic link or folder has its name.
        DiskError: the disk is full or failed.
    """
    part = path.with_name(path.name + _PART)
    try:
        refuse_what_is_no_file(path)
        part.unlink(missing_ok=True)
        try:
            with _new_file(part) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            _sync_folder(path.parent)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise _explained(error, path) from error


def _new_file(part: Path) -> io.BufferedRandom:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(part, flags, _MODE)
    return os.fdopen(descriptor, "w+b")


def refuse_what_is_no_file(path: Path) -> None:
    """Refuse to write where a link, a folder or a device has the name.

    Raises:
        OutputError: it has, and which it is; or no file can be here.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:  # such as a file where a folder should be
        raise _explained(error, path) from error
    if not stat.S_ISREG(mode):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "something that is not a file"
        raise OutputError(f"{path}: {what} has this name; remove it, or say another folder with --out")


def _sync_folder(folder: Path) -> None:
    """Make the new name last, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explained(error: OSError, path: Path) -> DiskError | OutputError:
    reason = error.strerror or type(error).__name__
    if error.errno in _DISK_ERRORS:
        return DiskError(f"{path}: cannot be written ({reason}); make room on the disk and run again")
    return OutputError(f"{path}: cannot be created ({reason}); say another folder with --out")
