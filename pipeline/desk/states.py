"""The states of a file from upload to release, derived from its folder."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pipeline.desk.checks import progress_of
from pipeline.desk.folders import FileFolder, Stamp, stamp_of
from pipeline.desk.languages import gettext_noop
from pipeline.desk.people import Person, Role
from pipeline.desk.refusals import Conflict
from pipeline.frames import OwnCode
from pipeline.runs.folder import has_begun, read_summary
from pipeline.wording import Moment, Sentence
from schemas.desk import CheckProgress, Deed, DeskFile
from schemas.summary import Summary


class State(StrEnum):
    """The states of a file."""

    NEW = "new"
    PLANNED = "planned"
    RUNNING = "running"
    STOPPED = "stopped"
    CAPPED = "capped"
    REVIEW = "review"
    WAITING = "waiting"
    RELEASED = "released"
    GIVEN = "given"
    PURGED = "purged"


class StateWords(NamedTuple):
    """A state in words: its name, the next step, and the page for that step."""

    what: str
    next_step: str
    page: str


_N = gettext_noop
WORDS: Mapping[State, StateWords] = {
    State.NEW: StateWords(_N("New"), _N("See the columns"), "columns"),
    State.PLANNED: StateWords(_N("Ready to be checked"), _N("See the plan, then start"), "plan"),
    State.RUNNING: StateWords(_N("Being checked"), _N("Watch"), "progress"),
    State.STOPPED: StateWords(_N("Stopped"), _N("Resume"), "progress"),
    State.CAPPED: StateWords(_N("Waiting for the next day"), _N("See when it can resume"), "progress"),
    State.REVIEW: StateWords(_N("To review"), _N("Review"), "review"),
    State.WAITING: StateWords(_N("Waiting for approval"), _N("Review and approve"), "release"),
    State.RELEASED: StateWords(_N("Released"), _N("Get the files"), "release"),
    State.GIVEN: StateWords(_N("Given to the bank"), _N("Get the files"), "release"),
    State.PURGED: StateWords(_N("Names deleted"), _N("See what remains"), "release"),
}
_REFUSED = StateWords(_N("Cannot be read"), _N("See why"), "columns")
_SENT_BACK = StateWords(_N("Sent back"), _N("Review"), "review")
_NOTHING_RELEASED = StateWords(_N("Approved: nothing to release"), _N("Get the files"), "release")


class FileStatus(NamedTuple):
    """The current status of a file: its folder, state, progress and result."""

    folder: FileFolder
    file: DeskFile
    state: State
    progress: CheckProgress | None  # progress of the last check; None if there was none
    summary: Summary | None  # summary of the run without its long lists; None before the run has one
    decisions: str  # the hash of the last decision

    @property
    def id(self) -> str:
        """Id of the file."""
        return self.folder.id

    @property
    def run_id(self) -> str:
        """Id of the run; empty before it has a summary."""
        return "" if self.summary is None else self.summary.run_id

    @property
    def is_released(self) -> bool:
        """True if the last approval still counts."""
        return self.state in (State.RELEASED, State.GIVEN)

    @property
    def releases_nothing(self) -> bool:
        """True if the current approval held all payments."""
        return self.is_released and self.file.released_count == 0

    @property
    def is_refused(self) -> bool:
        """True if the user must choose how the file is read."""
        return self.state is State.NEW and self.file.is_refused

    @property
    def words(self) -> StateWords:
        """The words for the state on pages."""
        if self.is_refused:
            return _REFUSED
        if self.file.sent_back is not None and self.state is State.REVIEW:
            return _SENT_BACK
        return _NOTHING_RELEASED if self.releases_nothing else WORDS[self.state]


class Step(NamedTuple):
    """A permitted action: the states that allow it, the roles that may take it, and the state after it."""

    deed: Deed
    by: Collection[Role]
    of: Collection[State]
    to: State | None  # None: unchanged
    of_corrections: Collection[Role] = ()  # more roles, if the file is a correction


_UPLOADER, _REVIEWER, _APPROVER = (Role.UPLOADER,), (Role.REVIEWER,), (Role.APPROVER,)
_HALFWAY = (State.STOPPED, State.CAPPED)  # states that allow answers to only some of the payments
_ANSWERED = (*_HALFWAY, State.REVIEW, State.WAITING, State.RELEASED, State.GIVEN)
STEPS = (
    Step(Deed.READ_AS, _UPLOADER, (State.NEW, State.PLANNED), State.PLANNED),
    Step(Deed.PLANNED, _UPLOADER, (State.PLANNED,), State.PLANNED, _REVIEWER),
    Step(Deed.STARTED, _UPLOADER, (State.PLANNED, *_HALFWAY), State.RUNNING, _REVIEWER),
    Step(Deed.STOPPED, _UPLOADER, (State.RUNNING,), State.STOPPED, _REVIEWER),
    Step(Deed.STARTED_OVER, _UPLOADER, (State.STOPPED,), State.PLANNED, _REVIEWER),
    Step(Deed.DECIDED, _REVIEWER, _HALFWAY, None),
    Step(Deed.DECIDED, _REVIEWER, (State.REVIEW, State.WAITING, State.RELEASED), State.REVIEW),
    Step(Deed.HANDED_OVER, _REVIEWER, (*_HALFWAY, State.REVIEW, State.WAITING), State.WAITING),
    Step(Deed.SENT_BACK, _APPROVER, (State.REVIEW, State.WAITING), State.REVIEW),
    Step(Deed.APPROVED, _APPROVER, (*_HALFWAY, State.REVIEW, State.WAITING), State.RELEASED),
    Step(Deed.GIVEN, (Role.UPLOADER, Role.APPROVER), (State.RELEASED,), State.GIVEN),
    Step(Deed.CORRECTED, (Role.UPLOADER, Role.REVIEWER), _ANSWERED, None),
    Step(Deed.COMPARED, (Role.UPLOADER, Role.REVIEWER), _ANSWERED, None),
    Step(Deed.COMMENTED, (Role.UPLOADER, Role.REVIEWER, Role.APPROVER), (*_ANSWERED, State.PURGED), None),
    Step(Deed.PURGED, (Role.UPLOADER, Role.APPROVER), (State.NEW, State.PLANNED), State.PURGED),
    Step(Deed.PURGED, _APPROVER, _ANSWERED, State.PURGED),
)  # fmt: skip
"""All permitted actions; every other one is refused.

When a check ends, the state changes from running to review, stopped or capped. Two more rules are enforced
elsewhere: people who shaped a file do not approve it, and no payment is released twice (`families`).
"""
_OTHERWISE: Mapping[Deed, Sentence] = {
    Deed.READ_AS: Sentence("desk.reading_is_fixed"),
    Deed.PLANNED: Sentence("desk.profile_is_fixed"),
    Deed.STARTED: Sentence("desk.cannot_start_now"),
    Deed.STOPPED: Sentence("desk.check_ended_already"),
    Deed.STARTED_OVER: Sentence("desk.cannot_start_now"),
    Deed.DECIDED: Sentence("desk.undecidable_while_checked"),
    Deed.HANDED_OVER: Sentence("desk.nothing_to_hand_over"),
    Deed.SENT_BACK: Sentence("desk.nothing_to_approve"),
    Deed.APPROVED: Sentence("desk.nothing_to_approve"),
    Deed.GIVEN: Sentence("desk.nothing_to_give"),
    Deed.CORRECTED: Sentence("desk.no_corrected_file"),
    Deed.COMPARED: Sentence("desk.nothing_to_compare"),
    Deed.COMMENTED: Sentence("desk.nothing_to_tell_yet"),
    Deed.PURGED: Sentence("desk.nothing_to_delete"),
}
NEXT: Mapping[State, Deed] = {
    State.NEW: Deed.READ_AS,
    **dict.fromkeys((State.PLANNED, *_HALFWAY), Deed.STARTED),
    State.REVIEW: Deed.HANDED_OVER,
    State.WAITING: Deed.APPROVED,
    State.RELEASED: Deed.GIVEN,
}
"""The usual next action in each state."""


def step_of(state: State, deed: Deed) -> Step | None:
    """Return the step that permits an action in this state; None if there is none."""
    return next((step for step in STEPS if step.deed is deed and state in step.of), None)


def may(current: FileStatus, person: Person, deed: Deed) -> bool:
    """True if this person may take this action now."""
    return step_of(current.state, deed) is not None and person.can(*_actors(current, deed))


def require(current: FileStatus, person: Person, deed: Deed) -> None:
    """Refuse an action that needs another role (Forbidden) or is impossible in this state (Conflict)."""
    person.require(*_actors(current, deed))
    if step_of(current.state, deed) is None:
        raise Conflict(_why_not(current, deed))


def may_compare(current: FileStatus, person: Person) -> bool:
    """True if this person may compare the check with a bank's report: only for real checks of a pain.001."""
    summary = current.summary
    is_check = summary is not None and not (summary.simulated or summary.is_bank_answered)
    return is_check and current.file.is_pain001 and may(current, person, Deed.COMPARED)


def _why_not(current: FileStatus, deed: Deed) -> Sentence:
    if current.state is State.GIVEN and (given := current.file.given) is not None:
        return Sentence("desk.file_given_is_final", name=given.by, time=Moment(given.time))
    return Sentence("desk.names_deleted") if current.state is State.PURGED else _OTHERWISE[deed]


def _actors(current: FileStatus, deed: Deed) -> list[Role]:
    """The roles that may take the action in this state, or else in any state."""
    open_now = step_of(current.state, deed)
    steps = [step for step in STEPS if step.deed is deed] if open_now is None else [open_now]
    more = [role for step in steps for role in step.of_corrections if current.file.corrects is not None]
    return [*dict.fromkeys(role for step in steps for role in step.by), *more]


def status_of(folder: FileFolder) -> FileStatus:
    """Determine the current status of a file; same errors as `FileFolder.read`."""
    file, progress = folder.read(), progress_of(folder)
    summary, head = _summary_of(folder), folder.decisions.head
    return FileStatus(folder, file, _state(folder, file, progress, summary, head), progress, summary, head)


def _state(
    folder: FileFolder,
    file: DeskFile,
    progress: CheckProgress | None,
    summary: Summary | None,
    decisions: str,
) -> State:
    if file.purged_at is not None or file.given is not None:
        return State.GIVEN if file.purged_at is None else State.PURGED
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


def _summary_of(folder: FileFolder) -> Summary | None:
    with suppress(FileNotFoundError):
        return _summary(folder.run, stamp_of(folder.summary))
    return None


@lru_cache(maxsize=256)
def _summary(run: Path, _stamp: Stamp) -> Summary:
    """Read a summary without its long lists; cached until the file changes: the start page shows 250."""
    return read_summary(run, emptied=("attention", "banks", "warnings"))
