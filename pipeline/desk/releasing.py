"""Deciding about rows, and the approval by which files are made of what was decided."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.languages import gettext, gettext_noop
from pipeline.desk.people import Person
from pipeline.desk.refusals import Conflict, DeskRefusal
from pipeline.desk.review import LastWord, Review, frame_of
from pipeline.desk.states import Standing, State
from pipeline.jobs.fix import FixJob, fix_folder
from pipeline.jobs.split import SplitJob, split_folder
from pipeline.review.decisions import RunDecisions
from schemas.desk import DeskFile, RowsDecided, Signed
from schemas.folder import (
    APPROVALS,
    ATTENTION,
    CORRECTED,
    CORRECTIONS,
    HOLD,
    HOLD_REASONS,
    MANIFEST,
    PAIN002,
    PAIN002_SIMULATED,
    RELEASE,
    REPORT_HTML,
    REPORT_XLSX,
    SIGNATURE,
    SUMMARY,
)
from schemas.review import Decision, Fix, Split
from schemas.strict import timestamp

REASON_CHARS_MAX = 400


class Decided(NamedTuple):
    """What somebody wants decided."""

    rows: Sequence[int]
    decision: Decision | None
    reason: str
    claimed_by: str | None = None
    """Whom the workbook names that it stood in."""


class Made(NamedTuple):
    """What an approval made."""

    fix: Fix | None
    split: Split


def reason_of(wanted: Decided) -> str:
    """The reason as it is put on record, in one line."""
    return " ".join(wanted.reason.split())[:REASON_CHARS_MAX]


def decide(at: Standing, review: Review, wanted: Decided, person: Person, now: datetime) -> None:
    """Put a decision on record that was found to be one that can be followed.

    Raises:
        DeskRefusal: it lacks a reason.
        Conflict: nothing can be decided now.
    """
    if at.state in (State.RUNNING, State.PURGED):
        raise Conflict(
            gettext("Nothing can be decided while the file is being checked.")
            if at.state is State.RUNNING
            else gettext("Nothing can be decided any more: the names were deleted.")
        )
    reason = reason_of(wanted)
    if wanted.decision in (Decision.RELEASE, Decision.FIX) and not reason:
        raise DeskRefusal(gettext("Give a reason: one is recorded with every release and every correction."))
    at.folder.decisions.append(
        lambda previous: RowsDecided(
            previous=previous,
            time=timestamp(now),
            by=person.name,
            run_id=review.summary.run_id,
            rows=list(wanted.rows),
            answers=review.answers_of(wanted.rows),
            decision=wanted.decision,
            reason=reason or None,
            claimed_by=wanted.claimed_by,
        )
    )


def require_possible(review: Review, row: int, decision: Decision) -> None:
    """Refuse a decision about a row that nothing could follow.

    Raises:
        DeskRefusal: the policy does not leave it to anybody, or no correction is known.
    """
    if not 1 <= row <= review.summary.input.row_count:
        raise DeskRefusal(gettext("The file has no such row."))
    found = review.row(row, {})
    if found is None:
        if decision is Decision.FIX:
            raise DeskRefusal(gettext("Row %(row)s: nothing in it is known to be wrong.", row=row))
        return
    if decision is Decision.RELEASE and not found.can_release:
        raise DeskRefusal(gettext("Row %(row)s: %(why)s", row=row, why=found.policy_says))
    if decision is Decision.FIX and not found.fix:
        raise DeskRefusal(
            gettext(
                "Row %(row)s: no correction is known. Correct it in your file and upload that again.", row=row
            )
        )


def approve(  # noqa: PLR0913 (one for each thing that is approved)
    at: Standing,
    said: Mapping[int, LastWord],
    person: Person,
    now: datetime,
    *,
    shown: str,
    hold_undecided: bool,
) -> Made:
    """Make the files, in the name of who approves.

    Args:
        at: the file.
        said: row -> the decision that counts.
        person: who approves; that it may be this one was checked.
        now: the time.
        shown: the hash of the last decision on the page that was approved.
        hold_undecided: whether rows without an answer are held.

    Raises:
        Conflict: something was decided since the page was shown.
        PrecheckError: no file was made.
    """
    if at.summary is None or at.state in (State.RUNNING, State.PURGED):
        raise Conflict(gettext("There is nothing to approve now."))
    if shown != at.decisions:
        raise Conflict(gettext("Something was decided since this page was shown to you."))
    by, since = _handed_over(at)
    decisions = RunDecisions(at.summary.run_id, frame_of(said), by, since)
    fixed = None
    was_corrected = corrected_file(at.folder) is not None
    if was_corrected or any(word.decision is Decision.FIX for word in said.values()):
        fixed = fix_folder(
            FixJob(
                at.folder.run,
                decisions=decisions,
                by=person.name,
                is_identified=person.is_identified,
                allow_simulated=True,
            ),
            now=now,
        )
    done = split_folder(
        SplitJob(
            at.folder.run,
            decisions=decisions,
            by=person.name,
            is_identified=person.is_identified,
            hold_undecided=hold_undecided,
            allow_simulated=True,  # the page and the names of the files say that they are
        ),
        now=now,
    )
    released_count = 0 if done.release is None else done.release.row_count
    at.folder.change(approved=signed(at, person, now), released_count=released_count)
    return Made(fixed, done)


def _handed_over(at: Standing) -> tuple[str, str]:
    """Who wants these answers approved, since when: who handed them over, or else uploaded the file."""
    signed = at.file.handed_over
    if signed is None or at.summary is None or signed.run_id != at.summary.run_id:
        return at.file.uploaded_by, at.file.uploaded_at
    return signed.by, signed.time


def signed(at: Standing, person: Person, now: datetime) -> Signed:
    """That a person agreed with what was decided so far."""
    run_id = "" if at.summary is None else at.summary.run_id
    return Signed(by=person.name, time=timestamp(now), decisions=at.decisions, run_id=run_id)


class Offered(NamedTuple):
    """A file that may be downloaded."""

    name: str
    title: str
    byte_count: int
    has_names: bool
    """Whether it holds names of payees, so that only those may have it who work with them."""
    is_made_of_decisions: bool


_N = gettext_noop
_TITLES: Mapping[str, tuple[str, bool, bool]] = {
    f"{RELEASE}.*": (_N("Payments to release"), True, True),
    f"{HOLD}.*": (_N("Payments to hold"), True, True),
    HOLD_REASONS: (_N("Why each payment is held"), True, True),
    f"{CORRECTED}.*": (_N("The file with the corrections"), True, True),
    CORRECTIONS: (_N("Known corrections, applied or not"), True, True),
    REPORT_HTML: (_N("Report, to read and print"), True, False),
    REPORT_XLSX: (_N("Report, as a workbook"), True, False),
    ATTENTION: (
        _N("Payments that are no match or could not be checked by the bank, as a table"),
        True,
        False,
    ),
    "outcomes.*": (_N("Every payment with its outcome"), True, False),
    PAIN002: (_N("Report for bank software"), True, False),
    PAIN002_SIMULATED: (_N("Report for bank software (simulated)"), True, False),
    MANIFEST: (_N("Evidence: what was checked, decided and made"), False, False),
    SIGNATURE: (_N("Signature of the evidence"), False, False),
    APPROVALS: (_N("Evidence: who decided and who approved"), False, False),
    SUMMARY: (_N("Figures of the check"), False, False),
}
"""The only files that leave the desk: pattern -> title, whether it has names, whether decisions made it."""


def offered(at: Standing) -> list[Offered]:
    """The files of a run that may be downloaded now, those that go to the bank first.

    What was made of earlier decisions is not among them: a new decision voids the approval.
    """
    found = []
    for pattern, (title, has_names, of_decisions) in _TITLES.items():
        if of_decisions and at.state is not State.RELEASED:
            continue
        found += [
            Offered(path.name, gettext(title), path.stat().st_size, has_names, of_decisions)
            for path in sorted(at.folder.run.glob(pattern))
            if path.is_file() and not path.is_symlink() and not path.name.endswith(".part")
        ]
    return found


def voided_by(at: Standing) -> RowsDecided | None:
    """The decision by which an approval does not count any more; None where there is none.

    Raises:
        InputError: what was decided was changed.
    """
    approved = at.file.approved
    if approved is None or at.state is State.RELEASED:
        return None
    entries = at.folder.decisions.entries()
    return next((entry for entry in entries if entry.previous == approved.decisions), None)


def correctors(home: DeskHome, file: DeskFile) -> set[str]:
    """Who had rows corrected in the files that this one is the correction of: what it says is theirs.

    Raises:
        InputError: what was decided there was changed.
    """
    found = set()
    while file.corrects is not None:
        before = home.folder(file.corrects)
        found |= {entry.by for entry in before.decisions.entries() if entry.decision is Decision.FIX}
        file = before.read()
    return found


def corrected_file(folder: FileFolder) -> Path | None:
    """The corrected payment file of a run; None where there is none."""
    return next(iter(sorted(folder.run.glob(f"{CORRECTED}.*"))), None)
