"""Families of files that contain the same payments: corrections, splits, repeated uploads.

No payment of a family is released twice. A payment is identified by the SHA-256 of the family's first file
and its row in that file.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.states import status_of
from pipeline.errors import InputError
from pipeline.runs.families import listed
from schemas.desk import AuditEntry, Deed, DeskFile, Release


class Released(NamedTuple):
    """An earlier release, which prevents its payments from being released again."""

    file_id: str
    name: str  # the released file's name
    release: Release
    taken: AuditEntry | None  # the first user who downloaded the release file, if any
    rows: Sequence[int]  # the rows of the file in question that it released
    is_same_file: bool  # True if it is a repeated upload of that file or release: payments may be due again

    def __str__(self) -> str:
        """The release, as named in the evidence."""
        return f"{self.release.file} of {self.name}, SHA-256 {self.release.sha256}"


def earlier_files(home: DeskHome, folders: Sequence[FileFolder]) -> dict[str, list[FileFolder]]:
    """Map the newest file of each family to its other files; both newest first, as `folders` must be."""
    files = home.files()
    families: dict[str, list[FileFolder]] = {}
    for folder in folders:
        families.setdefault(_first(files, folder.id), []).append(folder)
    return {newest.id: others for newest, *others in families.values()}


def members(home: DeskHome, folder: FileFolder) -> dict[str, DeskFile]:
    """Return all files that share payments with this one, itself included, by id, oldest first."""
    files = home.files()
    above = folder
    while (before := above.read().corrects) is not None:  # every predecessor must be readable
        above = home.folder(before)
    first = files[_first(files, folder.id)].sha256
    return {
        current: files[current] for current in sorted(files) if files[_first(files, current)].sha256 == first
    }


def released_before(home: DeskHome, folder: FileFolder) -> list[Released]:
    """Find releases that share payments with a file: downloaded ones, or offered ones of other files.

    An offered release of the file itself does not count: the next approval replaces it (InputError: the audit
    or an earlier file is unreadable).
    """
    files = members(home, folder)
    if not any(file.releases for file in files.values()):
        return []
    audit, found = home.audit.entries(), []
    own = _rows_of_first(files, folder.id)
    at_row = None if own is None else {row: current for current, row in enumerate(own, 1)}
    is_simulated = _is_simulated(folder)
    for file_id, file in files.items():
        is_same = _first(files, file_id) != _first(files, folder.id)
        if _is_simulated(home.folder(file_id)) and (is_same or not is_simulated):
            continue  # simulated releases pay nothing
        theirs = _rows_of_first(files, file_id)
        for release in file.releases:
            taken = taken_by(audit, file_id, release)
            is_last = release is file.releases[-1]
            is_offered = is_last and (file.given is not None or _is_offered(home, file_id, release))
            # Voided before its download, it bars nothing. Otherwise it bars other files; its own file only if
            # it was voided after its download: the bank may have it, and an approval would not replace it.
            if not (is_offered or taken) or (file_id == folder.id and is_offered):
                continue
            rows = listed(release.rows)
            of_first = rows if theirs is None else (theirs[row - 1] for row in rows)
            mine = of_first if at_row is None else (at_row[row] for row in of_first if row in at_row)
            if of_this := [*mine]:
                is_again = is_same or files[folder.id].sha256 == release.sha256
                found.append(Released(file_id, file.name, release, taken, of_this, is_again))
    return found


def by_row(released: Iterable[Released]) -> dict[int, str]:
    """Map each row to its earlier release, as named in the evidence."""
    return {row: name for one in released for name in (str(one),) for row in one.rows}


def may_be_due_again(released: Sequence[Released]) -> bool:
    """True if an approver may declare payments due again: none is in a correction."""
    return bool(released) and all(one.is_same_file for one in released)


REPEATED_WITHIN = timedelta(days=20)


def released_near(folder: FileFolder) -> tuple[tuple[str, tuple[tuple[int, int], ...]], ...]:
    """Other families' files that released payments around the same time, with the rows as ranges."""
    home = DeskHome(folder.path.parent.parent)
    if folder.path.parent != home.runs:
        return ()
    own, found = members(home, folder), []
    uploaded = datetime.fromisoformat(folder.read().uploaded_at)
    for other in home.folders():
        with suppress(InputError):
            releases = other.read().releases
            apart = ((one, abs(datetime.fromisoformat(one.time) - uploaded)) for one in releases)
            near = [span for one, time in apart if time <= REPEATED_WITHIN for span in one.rows]
            if near and other.id not in own and not _is_simulated(other):
                found.append((other.id, tuple(near)))
    return tuple(found)


def taken_by(audit: Iterable[AuditEntry], file_id: str, release: Release) -> AuditEntry | None:
    """The first user who downloaded a release file, if any."""
    took = (entry for entry in audit if entry.deed is Deed.DOWNLOADED and entry.run == file_id)
    return next((entry for entry in took if entry.facts.get("sha256") == release.sha256), None)


def _is_simulated(folder: FileFolder) -> bool:
    summary = status_of(folder).summary
    return summary is not None and summary.simulated


def _is_offered(home: DeskHome, file_id: str, release: Release) -> bool:
    current = status_of(home.folder(file_id))
    approved = current.file.approved
    return current.is_released and approved is not None and approved.time == release.time


def _first(files: Mapping[str, DeskFile], file_id: str) -> str:
    while file_id in files and (before := files[file_id].corrects) is not None:
        file_id = before
    return file_id


def _rows_of_first(files: Mapping[str, DeskFile], file_id: str) -> Sequence[int] | None:
    """For each row of a file, its row in the family's first file; None if they have the same rows."""
    rows: Sequence[int] | None = None
    while (file := files[file_id]).corrects is not None:
        if (before := file.rows_before) is not None:
            rows = before if rows is None else [before[row - 1] for row in rows]
        file_id = file.corrects
    return rows
