"""Plain files among what others may have put into a folder."""

import errno
import os
import stat
from pathlib import Path

from pipeline.wording import Sentence


def plain_bytes(path: Path) -> bytes:
    """Read a file that only we write; a pipe in its place is refused, where reading it would never end.

    Raises:
        OSError: it cannot be read, or is not a plain file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (a path would be opened again)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, str(Sentence("files.something_not_file")), str(path))
        return file.read()
