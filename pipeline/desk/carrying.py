"""What was decided about a file that counts for its correction, which has all of its rows, in their order."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.releasing import corrected_file
from pipeline.desk.review import LastWord, Review, reviewed
from pipeline.errors import InputError
from pipeline.runs.manifest import identity_of, read_manifest
from schemas.desk import DeskFile, RowsDecided
from schemas.review import Approval, Decision

CARRIED = "(carried over from the earlier file)"
"""Ends the reason of such a decision, also in the evidence, which is in English."""


def carry_holds(before: FileFolder, to: FileFolder) -> int:
    """Put the rows that people held in a file on record for its correction, by them; return how many."""
    review, said = reviewed(before)
    held = [(row, word) for row, word in said.items() if word.decision is Decision.HOLD]

    def made(word: LastWord) -> tuple[str, str, str, str]:
        return word.time, word.by, word.reason or "", word.claimed_by or ""

    for _, some in groupby(
        sorted(held, key=lambda one: (made(one[1]), one[0])), key=lambda one: made(one[1])
    ):
        rows, [word, *_] = zip(*some, strict=True)
        _record(to, before, review, rows, word)
    return len(held)


def _record(to: FileFolder, before: FileFolder, review: Review, rows: Iterable[int], word: LastWord) -> None:
    listed = list(rows)
    own = (word.reason or "").removesuffix(CARRIED).strip()
    to.decisions.append(
        lambda previous: RowsDecided(
            previous=previous,
            time=word.time,
            by=word.by,
            run_id=review.summary.run_id,
            rows=listed,
            answers=review.answers_of(listed),
            decision=word.decision,
            reason=f"{own} {CARRIED}".strip(),
            claimed_by=word.claimed_by,
            carried_from=before.id,
        )
    )


def held_since(home: DeskHome, folder: FileFolder) -> list[int]:
    """The rows held in the earlier file, and of which this, its correction, has nothing on record."""
    file = folder.read()
    if file.corrects is None:
        return []
    words: dict[int, Decision | None] = {}
    for entry in home.folder(file.corrects).decisions.entries():
        words |= dict.fromkeys(entry.rows, entry.decision)
    known = {row for entry in folder.decisions.entries() for row in entry.rows}
    return sorted(row for row, word in words.items() if word is Decision.HOLD and row not in known)


def made_from(home: DeskHome, folder: FileFolder) -> FileFolder | None:
    """The file whose corrected file this one is, taken away and uploaded again; None where there is none."""
    file = folder.read()
    for other in home.folders():
        path = corrected_file(other)
        if (
            path is not None
            and path.stat().st_size == file.byte_count
            and identity_of(path)[0] == file.sha256
        ):
            return other
    return None


class CorrectedBefore(NamedTuple):
    """That a row was corrected in an earlier file."""

    file_id: str
    name: str
    """Of that file."""
    approval: Approval


def corrected_before(home: DeskHome, file: DeskFile, row: int) -> list[CorrectedBefore]:
    """The earlier files in which a row was corrected on the way to this one, newest first."""
    found = []
    while file.corrects is not None:
        folder = home.folder(file.corrects)
        before = folder.read()
        try:
            approvals = read_manifest(folder.run).approvals
        except InputError:
            approvals = []
        found += [
            CorrectedBefore(folder.id, before.name, approval)
            for approval in approvals
            # Of all that were approved there, those by which this very file was made.
            if approval.decision is Decision.FIX and row in approval.rows and file.sha256 in approval.what
        ]
        file = before
    return found
