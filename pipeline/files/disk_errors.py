"""Distinguish a full or failing disk, where the user makes room, from a place that cannot be written."""

import errno
import io
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from pipeline.errors import DiskError, IncompleteError, OutputError, PrecheckError
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TOO_FEW_FILES = frozenset({errno.EMFILE, errno.ENFILE})  # too many open files, here or in all
_FULL_OR_FAILED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
# CANTOPEN: SQLite does not report why it could not create a journal; after it has read the file, a full disk
# is likely.
_SQLITE_FULL_OR_FAILED = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
)


def is_full_or_failed(error: OSError | sqlite3.Error) -> bool:
    """True if the disk is full or failing; other SQLite errors concern the content of the file."""
    if isinstance(error, OSError):
        return error.errno in _FULL_OR_FAILED
    # The low byte is the kind; errors of the module itself have no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_FULL_OR_FAILED


def is_of_an_output(error: OSError) -> bool:
    """True if a stream failed, a disk is full or too many files are open; writers report other errors.

    >>> is_of_an_output(BrokenPipeError(32, "Broken pipe")), is_of_an_output(OSError(13, "No", "some file"))
    (True, False)
    """
    return error.filename is None or error.errno in TOO_FEW_FILES or is_full_or_failed(error)


def is_expected_end(end: BaseException) -> bool:
    """True if an end is expected: an error from `errors`, a request to exit, or a failed output."""
    if isinstance(end, OSError):
        return is_of_an_output(end)
    # A panic of polars is no `Exception`.
    return isinstance(end, (PrecheckError, SystemExit, KeyboardInterrupt, GeneratorExit))


def write_failed(path: Path, error: OSError | sqlite3.Error) -> DiskError:
    """Return the error for a write that failed."""
    return DiskError(Sentence("files.not_writable_make_room", path=path, reason=_reason(error)))


MAKE_WRITABLE, OTHER_FOLDER = Sentence("advice.make_writable"), Sentence("advice.other_folder")
OTHER_WORK_FOLDER = Sentence("advice.other_work_folder")


def not_writable(
    path: Path, error: OSError, *, otherwise: Sentence = MAKE_WRITABLE
) -> DiskError | OutputError | IncompleteError:
    """Return the error for a file that cannot be written; `otherwise` is advice besides making room."""
    if error.errno in TOO_FEW_FILES:
        return IncompleteError(Sentence("transport.open_files_limit_reached"))
    if is_full_or_failed(error):
        return write_failed(path, error)
    return OutputError(Sentence("files.not_writable", path=path, reason=_reason(error)), advice=otherwise)


@contextmanager
def writing(path: Path, *, otherwise: Sentence = MAKE_WRITABLE) -> Iterator[None]:
    """Turn an OSError of the block into the error for a file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise not_writable(path, error, otherwise=otherwise) from error


@contextmanager
def with_own_errors(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a file for polars to write to, and raise the file's own error, which polars would replace."""
    through = _Through(file)
    try:
        yield cast("IO[bytes]", through)
    except Exception:
        if through.refused is not None:
            raise through.refused from None
        raise


class _Through(io.RawIOBase):
    """Passes writes on, and keeps the error of one that failed."""

    def __init__(self, file: IO[bytes]) -> None:
        self.refused: OSError | None = None
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer") -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.refused = error
            raise


def refuse_non_file(path: Path) -> None:
    """Refuse to write if a link, folder or device has the name or no file can be created (OutputError)."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:  # such as a file where a folder should be
        raise not_writable(path, error) from error
    if stat.S_ISLNK(found.st_mode):
        what = Sentence("files.symbolic_link")
    elif not stat.S_ISREG(found.st_mode):
        what = Sentence("files.not_a_plain_file")
    elif found.st_nlink > 1:  # the second name may be another user's
        what = Sentence("files.hard_link")
    else:
        return
    raise OutputError(
        Sentence("files.name_taken_by", path=path, what=what),
        advice=(Sentence("files.remove_it"), OTHER_FOLDER),
    )


def sqlite_code(error: sqlite3.Error) -> str:
    """Return SQLite's code for an error, such as SQLITE_CORRUPT, because its message is always English."""
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _reason(error: OSError | sqlite3.Error) -> Sentence | OSError | str:
    if isinstance(error, OSError):
        return error
    code = sqlite_code(error)
    return Sentence("files.disk_full") if code == "SQLITE_FULL" else code
