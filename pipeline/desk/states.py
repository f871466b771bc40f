"""Where a file stands on its way from upload to release, found from what lies in its folder."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pipeline.desk.checks import progress_of
from pipeline.desk.folders import FileFolder
from pipeline.desk.languages import gettext_noop
from pipeline.desk.people import Role
from pipeline.frames import OwnCode
from pipeline.runs.folder import has_begun, read_summary
from schemas.desk import CheckProgress, DeskFile
from schemas.folder import SUMMARY
from schemas.summary import Summary


class State(StrEnum):
    """Where a file stands."""

    NEW = "new"
    PLANNED = "planned"
    RUNNING = "running"
    STOPPED = "stopped"
    CAPPED = "capped"
    REVIEW = "review"
    WAITING = "waiting"
    RELEASED = "released"
    PURGED = "purged"


class StateWords(NamedTuple):
    """A state for people: what it is, what comes next, and the page for that."""

    what: str
    next_step: str
    page: str


_N = gettext_noop
WORDS: Mapping[State, StateWords] = MappingProxyType({
    State.NEW: StateWords(_N("New"), _N("See the columns"), "columns"),
    State.PLANNED: StateWords(_N("Ready to be checked"), _N("See the plan, then start"), "plan"),
    State.RUNNING: StateWords(_N("Being checked"), _N("Watch"), "progress"),
    State.STOPPED: StateWords(_N("Stopped"), _N("Resume"), "progress"),
    State.CAPPED: StateWords(_N("Waiting for the next day"), _N("See when it can resume"), "progress"),
    State.REVIEW: StateWords(_N("To review"), _N("Review"), "review"),
    State.WAITING: StateWords(_N("Waiting for approval"), _N("Review and approve"), "release"),
    State.RELEASED: StateWords(_N("Released"), _N("Get the files"), "release"),
    State.PURGED: StateWords(_N("Names deleted"), _N("See what remains"), "release"),
})  # fmt: skip
_REFUSED = StateWords(_N("Cannot be read"), _N("See why"), "columns")
_GIVEN = StateWords(_N("Given to the bank"), _N("Get the files"), "release")
_SENT_BACK = StateWords(_N("Sent back"), _N("Review"), "review")
_NOTHING_RELEASED = StateWords(_N("Approved: nothing to release"), _N("Get the files"), "release")


class FileStatus(NamedTuple):
    """What the desk knows of one file now: its folder, state, progress and result."""

    folder: FileFolder
    file: DeskFile
    state: State
    progress: CheckProgress | None
    """Of the last check; None where there was none."""
    summary: Summary | None
    """Of its run, without the rows to look at, which are many; None where none has written one."""
    decisions: str
    """The hash of the last decision."""

    @property
    def id(self) -> str:
        """Of the file."""
        return self.folder.id

    @property
    def releases_nothing(self) -> bool:
        """Whether all payments were held by the approval that counts."""
        return self.state is State.RELEASED and self.file.released_count == 0

    @property
    def is_refused(self) -> bool:
        """Whether it waits for somebody to say how it can be read."""
        return self.state is State.NEW and self.file.is_refused

    @property
    def words(self) -> StateWords:
        """The words that pages use for the state."""
        if self.is_refused:
            return _REFUSED
        if self.file.given is not None and self.state is State.RELEASED:
            return _GIVEN
        if self.file.sent_back is not None and self.state is State.REVIEW:
            return _SENT_BACK
        return _NOTHING_RELEASED if self.releases_nothing else WORDS[self.state]


NEXT_BY: Mapping[State, Collection[Role]] = MappingProxyType({
    **dict.fromkeys((State.NEW, State.PLANNED, State.STOPPED, State.CAPPED), (Role.UPLOADER,)),
    State.REVIEW: (Role.REVIEWER,),
    State.WAITING: (Role.APPROVER,),
    State.RELEASED: (Role.UPLOADER, Role.APPROVER),
})  # fmt: skip
"""Who does what comes next: a released file is given to the bank."""


def starters(current: FileStatus) -> list[Role]:
    """Who may have a file checked: a correction also who made it in a review."""
    return [Role.UPLOADER, *([] if current.file.corrects is None else [Role.REVIEWER])]


def status_of(folder: FileFolder) -> FileStatus:
    """The present status of a file; raises as `FileFolder.read`."""
    file, progress = folder.read(), progress_of(folder)
    summary, head = _summary_of(folder.run), folder.decisions.head
    return FileStatus(folder, file, _state(folder, file, progress, summary, head), progress, summary, head)


def _state(
    folder: FileFolder,
    file: DeskFile,
    progress: CheckProgress | None,
    summary: Summary | None,
    decisions: str,
) -> State:
    if file.purged_at is not None:
        return State.PURGED
    if progress is not None and progress.exit_code is None:
        return State.RUNNING
    if summary is None:
        has_run = has_begun(folder.run) or progress is not None
        return State.STOPPED if has_run else State.PLANNED if file.planned else State.NEW
    for signed, state in ((file.approved, State.RELEASED), (file.handed_over, State.WAITING)):
        if signed is not None and (signed.decisions, signed.run_id) == (decisions, summary.run_id):
            return state
    if summary.complete:
        return State.REVIEW
    waits = any(count.code == OwnCode.DAILY_CAP for count in summary.codes)
    return State.CAPPED if waits else State.STOPPED


def _summary_of(run: Path) -> Summary | None:
    path = run / SUMMARY
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return _summary(run, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=256)
def _summary(run: Path, _changed_ns: int, _inode: int) -> Summary:
    """A summary, read once as long as it stays the same: a list shows all of them."""
    return read_summary(run).model_copy(update={"attention": []})
