"""Read files in folders that others can write to; reading a pipe there would block forever."""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from pipeline.wording import Sentence


def open_plain(path: Path) -> BufferedReader:
    """Open a file for reading (OSError: it cannot be read, or is not a plain file)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, str(Sentence("files.not_a_plain_file")), str(path))
    return open(descriptor, "rb")  # noqa: PTH123 (a path would be opened again)


def plain_bytes(path: Path) -> bytes:
    """Read a file; same errors as `open_plain`."""
    with open_plain(path) as file:
        return file.read()


def real_path(path: Path) -> Path:
    """Resolve a path; loops of links stay unresolved, whereas `Path.resolve` raises before Python 3.13."""
    return Path(os.path.realpath(path))
