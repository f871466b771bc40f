"""Scheduled work: delete old names and files, keep the evidence, and resume checks after daily caps."""

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from pipeline.desk.folders import FileFolder
from pipeline.desk.jobs import can_resume
from pipeline.desk.languages import BY_ITSELF
from pipeline.desk.refusals import Conflict
from pipeline.desk.review import forget_all
from pipeline.desk.states import FileStatus, State, status_of, step_of
from pipeline.errors import PrecheckError
from pipeline.jobs.purge import PurgeJob, purge
from pipeline.runs.folder import has_begun
from pipeline.runs.request import Clock
from pipeline.runs.starting import moved_from
from pipeline.wording import Sentence
from schemas.desk import Deed
from schemas.strict import timestamp


def forget(current: FileStatus, by: str, reason: str, now: datetime) -> None:
    """Delete returned names and payment files, not the evidence (Conflict: being checked, or done before)."""
    if step_of(current.state, Deed.PURGED) is None:
        raise Conflict(Sentence("desk.nothing_to_delete"))
    job = PurgeJob(with_files=True, with_payments=True, by=by, reason=reason)
    for run in filter(has_begun, (current.folder.run, *moved_from(current.folder.run))):
        purge(run, job, now=now)
    forget_all()
    folder = current.folder
    aside = folder.path.glob("failed-*")
    for path in (folder.path / "input", folder.written, folder.reports, *aside):
        shutil.rmtree(path, ignore_errors=True)
    folder.change(purged_at=timestamp(now))


def resume_capped(
    folders: Iterable[FileFolder], clock: Clock, start: Callable[..., object], record: Callable[..., object]
) -> None:
    """Resume checks that wait for their daily cap, if their users asked for it and the cap now allows it."""
    for folder in folders:
        with suppress(PrecheckError, Conflict):  # the file's page shows the error
            if not folder.read().resumes_daily:
                continue  # most files: their summaries need not be read
            if status_of(folder).state is State.CAPPED and can_resume(folder, clock):
                start(folder)
                record(BY_ITSELF, Deed.STARTED, folder.id)


def forget_old(
    folders: list[FileFolder], keep_days: int, now: datetime, record: Callable[[str, Deed, str], object]
) -> int:
    """Delete files not used for `keep_days` days, and record each; return how many."""
    before, count = timestamp(now - timedelta(days=keep_days)), 0
    for folder in folders:
        try:
            if folder.read().uploaded_at >= before:
                continue
            current = status_of(folder)
            last = current.file.uploaded_at if current.summary is None else current.summary.finished
            if last < before and step_of(current.state, Deed.PURGED) is not None:
                forget(current, BY_ITSELF, f"older than {keep_days} days", now)
                record(BY_ITSELF, Deed.PURGED, folder.id)
                count += 1
        except (PrecheckError, Conflict):
            continue  # tried again in an hour; the list of files shows which are unreadable
    return count
