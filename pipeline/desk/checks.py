"""Run the check of a file in its own process: start, watch and stop it through files.

The process holds `check.lock` until it ends, even if it is killed: if the desk can take the lock, no check is
running. Checks survive a killed desk, which finds them again when it restarts.
"""

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pipeline.desk.folders import FileFolder, parsed
from pipeline.desk.refusals import Conflict
from pipeline.errors import MistakeError
from pipeline.files import child_process as children
from pipeline.files.private import locked, opened
from pipeline.wording import Sentence
from schemas.desk import CheckProgress

CHILD = "desk-check"
"""The hidden command that the process runs."""


def start(folder: FileFolder, environment: dict[str, str]) -> None:
    """Start or resume a check (Conflict: it runs); the environment has the secrets of the configuration."""
    with _locked(folder) as lock:
        if lock is None:
            raise Conflict(Sentence("desk.checked_already"))
        folder.stop.unlink(missing_ok=True)
        folder.progress.unlink(missing_ok=True)
        with opened(folder.log, os.O_APPEND) as log:
            subprocess.Popen(  # noqa: S603 (our own interpreter and module)
                [*children.INTERPRETER, "-m", "payee_precheck", CHILD, str(folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                pass_fds=[lock],  # the child holds the lock from its start, and keeps it when the desk ends
            )


def stop(folder: FileFolder) -> None:
    """Stop the process that checks this file, after its requests in flight (Conflict: none runs)."""
    if not is_running(folder):
        raise Conflict(Sentence("desk.check_ended_already"))
    folder.stop.touch(mode=0o600)


def is_running(folder: FileFolder) -> bool:
    """True if a process is checking the file."""
    try:
        lock = os.open(folder.lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that readers do not block each other
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def progress_of(folder: FileFolder) -> CheckProgress | None:
    """The progress or the result of the last check; None before the first one."""
    is_on = is_running(folder)  # read first, because a process writes its result before it releases the lock
    read = _progress_in(folder)
    if is_on:
        progress = read or CheckProgress(phase="starting", started="")
        return progress.model_copy(update={"exit_code": None})
    if read is None:
        # The check had the lock but wrote no progress.
        return _lost(CheckProgress(phase="starting", started="")) if folder.log.exists() else None
    return read if read.exit_code is not None else _lost(read)


def _lost(progress: CheckProgress) -> CheckProgress:
    sentences = [Sentence("desk.ended_unseen").as_data()]
    return progress.model_copy(update={"exit_code": MistakeError.exit_code, "sentences": sentences})


def _progress_in(folder: FileFolder) -> CheckProgress | None:
    try:
        return parsed(CheckProgress, folder.progress)
    except (OSError, ValueError):
        return None


def write_progress(folder: FileFolder, progress: CheckProgress) -> None:
    """Write the progress of the check atomically, but without syncing it to disk."""
    part = folder.progress.with_suffix(".part")
    with opened(part, os.O_TRUNC) as file:
        file.write(progress.model_dump_json().encode())
    part.replace(folder.progress)


@contextmanager
def _locked(folder: FileFolder) -> Iterator[int | None]:
    """Lock until this block and all processes that inherit the descriptor end; None if it is taken."""
    with ExitStack() as held:
        try:
            lock = held.enter_context(locked(folder.lock, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            lock = None
        yield lock
