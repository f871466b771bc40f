"""Create files and folders that only their owner can read, from the first byte on, under any umask."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import ConfigurationError
from pipeline.files.disk_errors import writing
from pipeline.wording import Sentence


def user_folder(of: Callable[[str], Path]) -> Path:
    """Return a folder of the user, such as `user_state_path` (ConfigurationError: the user has no home)."""
    try:
        return of("payee-precheck")
    except RuntimeError:
        raise ConfigurationError(Sentence("files.no_home_folder")) from None


def make_folder(folder: Path) -> None:
    """Create a folder with mode 0700; an existing one is unchanged (OutputError, DiskError)."""
    with writing(folder, otherwise=Sentence("advice.other_path")):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def is_private(found: os.stat_result) -> bool:
    """True if root or we own it and only we or our groups can read it, as with Kubernetes secrets."""
    if not found.st_mode & 0o077:
        return True
    of_ours = found.st_uid in {0, os.geteuid()} and found.st_gid in {os.getegid(), *os.getgroups()}
    return of_ours and not found.st_mode & 0o037


def opened(path: Path, flags: int) -> BinaryIO:
    """Open a file for writing with mode 0600 and extra flags such as O_APPEND; links are not followed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    return os.fdopen(descriptor, "ab" if flags & os.O_APPEND else "wb")


@contextmanager
def locked(path: Path, kind: int = fcntl.LOCK_EX) -> Iterator[int]:
    """Hold a lock on a file, created if missing (BlockingIOError: another process has it, with LOCK_NB)."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, kind)
        yield descriptor
    finally:
        os.close(descriptor)


def write_private(path: Path, content: bytes) -> None:
    """Write a file whole or not at all (OutputError, DiskError); it need not survive a crash."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    with writing(path, otherwise=Sentence("advice.other_path")):
        draft.unlink(missing_ok=True)
        with opened(draft, os.O_EXCL) as file:
            file.write(content)
        draft.replace(path)
