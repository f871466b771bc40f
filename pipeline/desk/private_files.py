"""Files that only their owner may read, from their first byte on."""

import os
from pathlib import Path
from typing import BinaryIO


def opened(path: Path, flags: int) -> BinaryIO:
    """Open a file to write to it; a new one is for its owner only, and a link is not followed.

    Args:
        path: the file.
        flags: beside O_WRONLY and O_CREAT, such as O_APPEND, O_EXCL or O_TRUNC.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    return os.fdopen(descriptor, "ab" if flags & os.O_APPEND else "wb")
