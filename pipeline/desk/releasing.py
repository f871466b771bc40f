"""Record decisions about rows, and approve them, which writes the release files."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.languages import gettext, gettext_noop
from pipeline.desk.listing import policy_says
from pipeline.desk.people import Person, refuse_shaper
from pipeline.desk.refusals import Conflict, DeskRefusal
from pipeline.desk.review import Review, by_entry, frame_of
from pipeline.desk.states import FileStatus, State, require
from pipeline.errors import InputError, UsageError
from pipeline.files.plain import open_plain
from pipeline.jobs.fix import FixJob, fix_folder
from pipeline.jobs.split import SplitJob, split_folder
from pipeline.review.decisions import RunDecisions
from pipeline.runs.families import ranges
from pipeline.runs.manifest import read_manifest
from pipeline.wording import Sentence
from schemas import folder as file_names
from schemas.desk import Deed, DeskFile, Release, RowsDecided, Signed
from schemas.review import Act, Decision, PaymentFile, Shaped
from schemas.strict import timestamp

REASON_CHARS_MAX = 400


class Decided(NamedTuple):
    """Decisions requested by a form."""

    rows: Sequence[int]
    decision: Decision | None
    reason: str
    claimed_by: str | None = None  # the author of the decision according to the workbook
    written: str | None = None  # the corrected cell, for a rejected row
    is_next: bool = False  # True if it counts only when no other decision was made since the page was shown
    may_void: bool = False  # True if this person agreed that it voids an approval


class ToApprove(NamedTuple):
    """An approval, or a corrected file, requested by a form."""

    review: Review
    latest: Mapping[int, RowsDecided]
    shaped: Sequence[Shaped]
    released_in: Mapping[int, str]  # row -> where the payment was released before
    hold_undecided: bool = False
    release_again: bool = False


def on_one_line(text: object) -> str:
    """A user's text on a single line of limited length, for the record."""
    return " ".join(str(text).split())[:REASON_CHARS_MAX]


def require_reason(wanted: Decided) -> None:
    """Refuse to release or correct without a reason (DeskRefusal)."""
    if wanted.decision in (Decision.RELEASE, Decision.FIX) and not on_one_line(wanted.reason):
        raise DeskRefusal(Sentence("desk.decision_without_reason"))


def decide(
    current: FileStatus, review: Review, wanted: Decided, person: Person, now: datetime
) -> RowsDecided:
    """Record a decision that passed `require_possible` (DeskRefusal: no reason; Conflict: not now)."""
    require(current, person, Deed.DECIDED)
    if current.state is State.RELEASED and not wanted.may_void:
        raise Conflict(Sentence("desk.decision_would_void"))
    require_reason(wanted)

    def entry(previous: str) -> RowsDecided:
        if wanted.is_next and previous != current.decisions:
            raise Conflict(Sentence("desk.changed_since_shown", what=[Sentence("desk.shown_decisions")]))
        return RowsDecided(
            previous=previous,
            time=timestamp(now),
            by=person.name,
            run_id=review.summary.run_id,
            rows=list(wanted.rows),
            answers=review.answers_of(wanted.rows),
            decision=wanted.decision,
            reason=on_one_line(wanted.reason) or None,
            claimed_by=wanted.claimed_by,
            written=wanted.written,
            at_once=wanted.is_next and wanted.decision is not None,
        )

    return current.folder.decisions.append(entry)


def require_possible(review: Review, row: int, decision: Decision, written: str | None = None) -> None:
    """Refuse a decision that cannot be carried out (DeskRefusal: by policy, or no correction is known)."""
    line = review.line(row)
    if line is None:
        raise DeskRefusal(Sentence("desk.no_such_row"))
    if decision is Decision.RELEASE and not line["can_release"]:
        raise DeskRefusal(Sentence("desk.row_held_by_policy", row=row, why=policy_says(line)))
    if decision is Decision.FIX and line["writes"]:
        if not written:
            raise DeskRefusal(Sentence("desk.correction_without_value", row=row))
    elif decision is Decision.FIX and not line["can_fix"]:
        raise DeskRefusal(Sentence("desk.no_correction_known", row=row))


def approve(current: FileStatus, wanted: ToApprove, person: Person, now: datetime) -> PaymentFile | None:
    """Make the files in the approver's name; return the release file, if any (Forbidden: they shaped it)."""
    require(current, person, Deed.APPROVED)
    refuse_shaper(person, wanted.shaped)
    if corrected_file(current.folder) is not None or is_corrected(wanted.latest):
        correct(current, wanted, person, now)
    done = split_folder(
        SplitJob(
            current.folder.run,
            decisions=_decisions(current, wanted),
            by=person.name,
            is_identified=person.is_identified,
            hold_undecided=wanted.hold_undecided,
            released_in=wanted.released_in,
            release_again=wanted.release_again,
            repeated_rows=[*wanted.review.repeated],
            allow_simulated=True,  # the page and the file names say that they are simulated
        ),
        now=now,
    )
    released_count, releases = 0, current.file.releases
    if done.release is not None:
        held = {*read_manifest(current.folder.run).splits[-1].held_rows}
        rows = (row for row in range(1, done.input.row_count + 1) if row not in held)
        made = Release(
            file=Path(done.release.path).name,
            sha256=done.release.sha256,
            by=person.name,
            time=timestamp(now),
            rows=[*ranges(rows)],
        )
        released_count, releases = done.release.row_count, [*releases, made]
    current.folder.change(
        approved=signed(current, person, now), released_count=released_count, releases=releases
    )
    return done.release


def approved_facts(made: PaymentFile | None) -> dict[str, str | int]:
    """Facts about an approval for the audit, taken from its release file, if any."""
    if made is None:
        return {"released_count": 0}
    sums = [f"{one.amount:f} {one.currency or ''}".strip() for one in made.totals]
    return {"released_count": made.row_count, "money": ", ".join(sums), "sha256": made.sha256}


def is_corrected(latest: Mapping[int, RowsDecided], correction: FileFolder | None = None) -> bool:
    """True if a decision asks for a correction, and was made since the last one, if any."""
    since = "" if correction is None else correction.read().uploaded_at
    return any(last.decision is Decision.FIX and last.time > since for last, _ in by_entry(latest))


def correct(current: FileStatus, wanted: ToApprove, person: Person, now: datetime) -> None:
    """Make the corrected file in this person's name; it must be checked before it is paid."""
    job = FixJob(
        current.folder.run,
        decisions=_decisions(current, wanted),
        by=person.name,
        is_identified=person.is_identified,
        released_in={},  # a released correction must stay in the evidence
        allow_simulated=True,
    )
    fix_folder(job, now=now)


def _decisions(current: FileStatus, wanted: ToApprove) -> RunDecisions:
    """Return the decisions, made by who submitted these answers for approval, or else by the uploader."""
    file, handed_over = current.file, current.file.handed_over
    by, since = file.uploaded_by, file.uploaded_at
    if handed_over is not None and current.summary is not None and handed_over.run_id == current.run_id:
        by, since = handed_over.by, handed_over.time
    texts = {row: wanted.review.text_of(last) for row, last in wanted.latest.items()}
    written = {row: text for row, text in texts.items() if text}
    return RunDecisions(current.run_id, frame_of(wanted.latest), by, since, wanted.shaped, written)


def signed(current: FileStatus, person: Person, now: datetime) -> Signed:
    """Record that a person agrees with the decisions so far."""
    return Signed(by=person.name, time=timestamp(now), decisions=current.decisions, run_id=current.run_id)


class Offered(NamedTuple):
    """A file that may be downloaded."""

    name: str
    title: str
    byte_count: int
    has_names: bool  # True if it holds payees' names: only roles that deal with payments get it
    is_first: bool  # True for the files that users need: payments to release and to hold, and the report


_N = gettext_noop
_TITLES: Mapping[str, tuple[str, bool, bool]] = {
    f"{file_names.RELEASE}.*": (_N("Payments to release"), True, True),
    f"{file_names.HOLD}.*": (_N("Payments to hold"), True, True),
    file_names.HOLD_REASONS: (_N("Why each payment is held"), True, True),
    f"{file_names.CORRECTED}.*": (_N("Corrected file"), True, True),
    file_names.CORRECTIONS: (_N("Known corrections, applied or not"), True, True),
    file_names.REPORT_HTML: (_N("Report to read and print"), True, False),
    file_names.REPORT_XLSX: (_N("Report, as a workbook"), True, False),
    file_names.ATTENTION: (
        _N("Payments that did not match or could not be checked, as a table"),
        True,
        False,
    ),
    file_names.OTHER_NAMES: (_N("Names that differ at the bank"), True, False),
    "outcomes.*": (_N("Every payment with its outcome"), True, False),
    file_names.PAIN002: (_N("Report for bank software"), True, False),
    file_names.PAIN002_SIMULATED: (_N("Report for bank software (simulated)"), True, False),
    file_names.MANIFEST: (_N("Evidence: what was checked, decided and written"), False, False),
    file_names.SIGNATURE: (_N("Signature of the evidence"), False, False),
    file_names.APPROVALS: (_N("Evidence: who decided and who approved"), False, False),
    file_names.SUMMARY: (_N("Figures of the check"), False, False),
}
"""The only files that may leave the desk: pattern -> title, contains names, made by decisions."""


def offered(current: FileStatus) -> list[Offered]:
    """List a run's downloads, the bank's first; none from voided approvals or outside the evidence."""
    found, known = [], _recorded(current)
    for pattern, (title, has_names, of_decisions) in _TITLES.items():
        if of_decisions and not current.is_released:
            continue
        is_first = of_decisions or pattern == file_names.REPORT_HTML
        found += [
            Offered(path.name, gettext(title), path.stat().st_size, has_names, is_first)
            for path in sorted(current.folder.run.glob(pattern))
            if path.is_file() and not path.is_symlink() and (path.name in known or path.name in _UNRECORDED)
        ]
    return found


_UNRECORDED = (file_names.MANIFEST, file_names.SIGNATURE, file_names.APPROVALS)
"""Files that the manifest does not list: itself, and files that are proved in other ways."""


def _recorded(current: FileStatus) -> dict[str, str]:
    """Map each file in the evidence to its SHA-256; empty without a manifest."""
    try:
        manifest = read_manifest(current.folder.run)
    except (InputError, UsageError):
        return {}
    return {file.name: file.sha256 for file in (manifest.outcome_file, *manifest.files)}


def opened_as_recorded(current: FileStatus, name: str) -> BufferedReader:
    """Open a file for download, unless it was changed after it was made or approved (Conflict).

    The open file itself is hashed, so that it cannot be exchanged in the meantime.
    """
    file = open_plain(current.folder.run / name)
    identity = file_digest(file, "sha256").hexdigest()
    file.seek(0)
    approved = {one.file: one.sha256 for one in current.file.releases[-1:]}
    if name not in _UNRECORDED and {_recorded(current).get(name), approved.get(name, identity)} != {identity}:
        file.close()
        raise Conflict(Sentence("desk.download_was_changed", file=name))
    return file


def voided_by(current: FileStatus) -> RowsDecided | None:
    """Return the decision that voids an approval, or None; same errors as `ChainedJournal.entries`."""
    approved = current.file.approved
    if approved is None or current.is_released:
        return None
    entries = current.folder.decisions.entries()
    return next((entry for entry in entries if entry.previous == approved.decisions), None)


def shaped_by(home: DeskHome, folder: FileFolder) -> list[Shaped]:
    """List the acts that shaped a file or its predecessors, latest first; undone decisions count too."""
    file, found = folder.read(), []
    found.append(shaping(file, file.uploaded_by, Act.UPLOADED, file.uploaded_at))
    found += file.shaped
    decided = [
        (entry.by, Act.CORRECTED if entry.decision is Decision.FIX else Act.DECIDED, entry.time)
        for entry in folder.decisions.entries()
        if entry.carried_from is None  # not carried over: it is about this file
    ]
    first = {(by, act): time for by, act, time in reversed(decided)}
    found += [shaping(file, by, act, time) for (by, act), time in first.items()]
    return found if file.corrects is None else found + shaped_by(home, home.folder(file.corrects))


def shaping(file: DeskFile, by: str, act: Act, time: str) -> Shaped:
    """Return a record that a person shaped a file."""
    return Shaped(by=by, act=act, file=file.sha256, time=time)


def corrected_file(folder: FileFolder) -> Path | None:
    """The corrected payment file of a run; None if there is none."""
    return next(iter(sorted(folder.run.glob(f"{file_names.CORRECTED}.*"))), None)
