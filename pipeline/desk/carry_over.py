"""Carry decisions over to a corrected file, which has the same rows in the same order."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import polars as pl

from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.languages import CARRIED
from pipeline.desk.review import opened, reviewed
from pipeline.errors import InputError, PrecheckError
from pipeline.frames import Payments
from pipeline.review.corrections import BY_HAND
from pipeline.runs.families import origin_in
from pipeline.runs.manifest import read_manifest
from schemas.desk import DeskFile, RowsDecided
from schemas.review import Approval, Decision


def carry_holds(before: FileFolder, to: FileFolder, rows_before: Sequence[int] | None = None) -> int:
    """Record rows held in a file as held in its correction, by the same people; return how many."""
    review, latest = reviewed(before)
    own, count = _own_rows(rows_before), 0
    for entry in review.decisions.entries():
        if entry.decision is Decision.HOLD:
            was = [row for row in entry.rows if latest.get(row) is entry and own(row) is not None]
            if was:
                reason = (entry.reason or "").removesuffix(CARRIED).strip()
                carried = {
                    "run_id": review.summary.run_id,
                    "rows": [*map(own, was)],
                    "answers": review.answers_of(was),
                    "reason": f"{reason} {CARRIED}".strip(),
                    "at_once": False,
                    "carried_from": before.id,
                }
                to.decisions.append(partial(_carried, entry, carried))
                count += len(was)
    return count


def _carried(entry: RowsDecided, carried: Mapping[str, object], previous: str) -> RowsDecided:
    return entry.model_copy(update={**carried, "previous": previous})


def _own_rows(rows_before: Sequence[int] | None) -> Callable[[int], int | None]:
    """Return a function from a row of the earlier file to the row here, or None if it is missing."""
    if rows_before is None:
        return lambda row: row
    return {before: own for own, before in enumerate(rows_before, 1)}.get


def row_before(file: DeskFile, row: int) -> int:
    """The row of the earlier file that became this row."""
    return row if file.rows_before is None else file.rows_before[row - 1]


def held_since(home: DeskHome, folder: FileFolder) -> list[int]:
    """Rows held in the earlier file that have no decision yet in this correction."""
    file = folder.read()
    if file.corrects is None:
        return []
    latest: dict[int, Decision | None] = {}
    for entry in home.folder(file.corrects).decisions.entries():
        latest |= dict.fromkeys(entry.rows, entry.decision)
    known = {row for entry in folder.decisions.entries() for row in entry.rows}
    own = _own_rows(file.rows_before)
    held = (own(row) for row, last in latest.items() if last is Decision.HOLD)
    return sorted(row for row in held if row is not None and row not in known)


def made_from(home: DeskHome, folder: FileFolder) -> tuple[FileFolder, Sequence[int] | None] | None:
    """Return the file that this one corrects or is a split of, if any, and its rows as in `DeskFile`."""
    others = {other.run: other for other in home.folders()}
    found = origin_in(others, folder.read().sha256)
    return None if found is None else (others[found.folder], found.rows)


class CorrectedBefore(NamedTuple):
    """A row that was corrected in an earlier file."""

    file_id: str
    row: int  # row and name in that file
    name: str
    approval: Approval


class Changed(NamedTuple):
    """A cell that differs from the family's first file."""

    row: int
    field: str
    before: str
    now: str
    corrections: list[CorrectedBefore]  # newest first; empty if it was changed outside the desk


def changed_since(home: DeskHome, file: DeskFile, payments: Payments) -> list[Changed]:
    """Names and account types that differ from the family's oldest file that still has its payments."""
    rows: Sequence[int] = range(1, payments.height + 1)
    first, current = None, file
    while current.corrects is not None:
        folder = home.folder(current.corrects)
        rows, current = [row_before(current, row) for row in rows], folder.read()
        with suppress(PrecheckError):  # its names were deleted
            first = opened(folder).rows.payments[pl.Series(rows, dtype=pl.UInt32) - 1]
    if first is None:
        return []
    found = [
        (row + 1, field, first[field][row] or "", payments[field][row] or "")
        for field in BY_HAND
        for row in first[field].ne_missing(payments[field]).arg_true()
    ]
    return [Changed(*cell, corrected_before(home, file, cell[0])) for cell in sorted(found)]


def corrected_before(home: DeskHome, file: DeskFile, row: int) -> list[CorrectedBefore]:
    """The earlier files that had this row corrected, newest first."""
    found = []
    while file.corrects is not None:
        folder = home.folder(file.corrects)
        before, row = folder.read(), row_before(file, row)
        try:
            approvals = read_manifest(folder.run).approvals
        except InputError:
            approvals = []
        found += [
            CorrectedBefore(folder.id, row, before.name, approval)
            for approval in approvals
            # Only approved corrections that this file was made from.
            if approval.decision is Decision.FIX and row in approval.rows and file.sha256 in approval.what
        ]
        file = before
    return found
