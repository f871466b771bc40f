"""Run the check of a file in its own process: start, watch and stop it through files.

The process holds `check.lock` until it ends, even if it is killed; it survives a killed desk. It writes its
progress to a file, and stops when a stop file appears.
"""

import fcntl
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from pipeline.desk.folders import FileFolder, parsed
from pipeline.desk.jobs import job_of
from pipeline.desk.refusals import Conflict
from pipeline.errors import MistakeError, PrecheckError
from pipeline.files import child_process as children
from pipeline.files.private import locked, opened
from pipeline.jobs.check import check
from pipeline.jobs.import_report import ImportJob, import_report
from pipeline.runs.request import Clock, Phase, RunObserver, RunProgress, StopSwitch, Surface
from pipeline.stores.values import LeaseHolder
from pipeline.wording import Sentence
from schemas.desk import CheckProgress
from schemas.strict import timestamp

CHILD = "desk-check"  # the hidden command that the process runs


def start(folder: FileFolder, environment: dict[str, str]) -> None:
    """Start or resume a check (Conflict: it runs); the environment has the secrets of the configuration."""
    with ExitStack() as held:
        try:  # until this block and the process, which inherits the descriptor, end
            lock = held.enter_context(locked(folder.lock, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            raise Conflict(Sentence("desk.checked_already")) from None
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
    read = None
    with suppress(OSError, ValueError):
        read = parsed(CheckProgress, folder.progress)
    if is_on:
        progress = read or CheckProgress(phase="starting", started="")
        return progress.model_copy(update={"exit_code": None})
    if read is None:
        # The check had the lock but wrote no progress.
        return _lost(CheckProgress(phase="starting", started="")) if folder.log.exists() else None
    return read if read.exit_code is not None else _lost(read)


def _lost(progress: CheckProgress) -> CheckProgress:
    sentences = [Sentence("desk.check_ended_unexpectedly").as_data()]
    return progress.model_copy(update={"exit_code": MistakeError.exit_code, "sentences": sentences})


STOP_INTERVAL_S = 0.2


class ProgressFile(RunObserver):
    """Writes the progress of a check to a file."""

    def __init__(self, folder: FileFolder, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._now = CheckProgress(phase=Phase.READING, started=timestamp(clock()))
        self._write()

    def enter(self, phase: Phase) -> None:
        """Record the beginning of a phase."""
        self._write(phase=phase.value, waiting_for=None)

    def begin(self, *, simulated: bool) -> None:
        """Record whether answers will be simulated."""
        self._write(simulated=simulated)

    def wait(self, holder: LeaseHolder) -> None:
        """Record that the check waits for another one to end."""
        self._write(waiting_for=holder.waited_for.as_data())

    def update(self, so_far: RunProgress) -> None:
        """Record the counts of answers."""
        changes: dict[str, object] = {}
        if so_far.check_count:
            changes["waiting_for"] = None
            changes["asking_since"] = self._now.asking_since or timestamp(self._clock())
        self._write(
            done_count=so_far.done_count,
            check_count=so_far.check_count,
            answered_before_count=so_far.answered_before_count,
            outcomes={outcome.value: count for outcome, count in so_far.outcomes.items()},
            slowed=bool(so_far.slowed),
            **changes,
        )

    def stop(self, in_flight_count: int, wait_max_s: float) -> None:  # noqa: ARG002 (the page says less)
        """Record the request to stop."""
        self._write(stopping=True)

    def end(self, exit_code: int, *messages: Sentence) -> None:
        """Record the end."""
        self._write(exit_code=exit_code, sentences=[one.as_data() for one in messages])

    def _write(self, **changes: object) -> None:
        changed = self._now.model_copy(update=changes)
        if changes and changed == self._now:
            return
        self._now, part = changed, self._folder.progress.with_suffix(".part")
        with opened(part, os.O_TRUNC) as file:
            file.write(changed.model_dump_json().encode())
        part.replace(self._folder.progress)  # whole or not at all, but not synced to disk


def check_file(folder: Path, clock: Clock, stop: StopSwitch, request_stop: Callable[[], object]) -> int:
    """Check the file in one of the desk's folders; return the exit status of `precheck run`."""
    of_file = FileFolder(folder.name, folder)
    seen = ProgressFile(of_file, clock)
    threading.Thread(target=_watch_for_stop, args=(of_file.stop, request_stop), daemon=True).start()
    # The summary contains the notices too.
    surface = Surface(seen, clock, stop, notify=lambda _notice: None)
    try:
        job, by = job_of(of_file), of_file.read().reported_by
        reports = sorted(of_file.reports.glob("*/*"))
        result = check(job, surface) if by is None else import_report(ImportJob(job, reports, by), surface)
    except PrecheckError as error:
        seen.end(error.exit_code, *error.messages)
        return error.exit_code
    except KeyboardInterrupt:
        seen.end(143, Sentence("desk.stopped_before_asking"))
        return 143
    except BaseException:
        with suppress(OSError):
            seen.end(MistakeError.exit_code, Sentence("desk.internal_error"))
        raise
    status = result.exit_code()
    seen.end(status, *([] if result.next_step is None else [result.next_step]))
    return status


def _watch_for_stop(file: Path, request_stop: Callable[[], object]) -> None:
    pause = threading.Event()
    while not file.exists():
        pause.wait(STOP_INTERVAL_S)
    request_stop()
