"""A payment file, opened: its bytes, read once, so that what is hashed is what is parsed."""

import hashlib
import stat
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.files.memory import refuse_too_large
from pipeline.formats import HEAD_BYTES
from pipeline.formats.protocols import Format
from pipeline.formats.table import ReadingOptions

FILE_BYTES_MAX = 8 * 1024**3


class FileIdentity(NamedTuple):
    """The hash and size of a file."""

    sha256: str
    byte_count: int


def identity_of(data: bytes) -> FileIdentity:
    """The identity of the bytes of a file."""
    return FileIdentity(hashlib.sha256(data).hexdigest(), len(data))


def refuse_what_is_no_file(path: Path) -> None:
    """Refuse a folder, a pipe or a device, whatever its name ends in; a missing file is reported later."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: a folder, not a file; give the name of a payment file in it")
    if not stat.S_ISREG(mode):
        raise InputError(
            f"{path}: a pipe or a device, not a file; save the payments in a file and give its name"
        )


def head_of(path: Path) -> bytes:
    """The start of a file; a read error is reported when all of it is read."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return b""


def bytes_of(path: Path, file_format: Format, options: ReadingOptions) -> bytes:
    """The file, read once: what is hashed is what is parsed."""
    try:
        status = path.stat()
        if status.st_size > FILE_BYTES_MAX:
            raise InputError(f"{path.name}: larger than {FILE_BYTES_MAX // 1024**3} GiB; split the file")
        refuse_too_large(status.st_size, per_byte=file_format.MEMORY_PER_BYTE, where=path.name)
        with path.open("rb") as file:
            return file_format.load(file, options, where=path.name)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a name that a file can have"
        raise InputError(
            f"{path.name}: cannot be read ({reason}); check the path and its permissions"
        ) from error
