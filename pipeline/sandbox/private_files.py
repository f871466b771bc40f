"""Files that only their owner may read, and that appear whole or not at all."""

import os
from pathlib import Path

from pipeline.files.disk_errors import not_writable


def make_folder(folder: Path) -> None:
    """Make a folder with mode 0700; one that exists is not changed.

    Raises:
        OutputError, DiskError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise not_writable(folder, error, otherwise="choose another folder") from error


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600, whatever the umask.

    Raises:
        OutputError, DiskError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.unlink(missing_ok=True)
        # The mode is set as the file is made: there is no moment at which others could open it.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        draft.replace(path)
    except OSError as error:
        raise not_writable(path, error, otherwise="choose another folder") from error
