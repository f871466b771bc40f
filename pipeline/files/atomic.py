"""Write files that appear whole or not at all, readable only by their owner unless stated otherwise."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from pipeline.files.disk_errors import refuse_non_file, writing

_MODE = 0o600
_MODE_FOR_ALL = 0o644
_PART = ".part"


@contextmanager
def write_atomically(path: Path, *, readable_by_all: bool = False) -> Iterator[io.BufferedRandom]:
    """Write a file under another name and rename it once it is synced to disk. Its folder must exist.

    The file is open for writing and reading, so the caller can check it before it appears. If the block
    raises, an earlier file of this name is unchanged. Only files without payment data may be readable by all.

    Raises OutputError: the file cannot be created, or a link or folder has its name; DiskError: the disk.
    """
    part = partial_name(path)
    with writing(path):
        refuse_non_file(path)
        part.unlink(missing_ok=True)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(part, flags, _MODE), "w+b") as file:
                yield file
                if readable_by_all:
                    os.fchmod(file.fileno(), _MODE_FOR_ALL)  # independent of the umask
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            sync_folder(path.parent)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def write_folder_atomically(path: Path) -> Iterator[Path]:
    """Write the files of a folder, which gets its name when the block ends; else like `write_atomically`."""
    part = partial_name(path)
    with writing(path):
        delete(part)
        part.mkdir(mode=0o700)
        try:
            yield part
            delete(path)
            part.rename(path)
            sync_folder(path.parent)
        finally:
            delete(part)


def delete(path: Path) -> None:
    """Delete a file, a link, or a folder with its files, if it exists; raises OSError."""
    if path.is_dir() and not path.is_symlink():
        rmtree(path)
    else:
        path.unlink(missing_ok=True)


def partial_name(path: Path) -> Path:
    """Return the name of a file while it is written; a killed process leaves the file behind."""
    return path.with_name(path.name + _PART)


def sync_folder(folder: Path) -> None:
    """Sync a folder, which makes a rename in it durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
