"""Forgetting the names that banks returned to a run: in its ledger, and with the files that hold them too."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pipeline.disks import refused
from pipeline.errors import InputError, UsageError
from pipeline.formats.whole import unfinished
from pipeline.ledger.purge import purge as purge_ledger
from pipeline.manifest import read_manifest, record_purge, unrecorded
from pipeline.reports.documents import files_with_names
from schemas.manifest import Purge
from schemas.wire import timestamp


class Purged(NamedTuple):
    """What was forgotten, and what was not."""

    name_count: int
    """Names deleted from the ledger."""
    deleted: list[str]
    """Files that were deleted."""
    left: list[str]
    """Files that hold such names, or may, as nobody knows what is in them."""


def purge(folder: Path, older_than: timedelta, *, with_files: bool) -> Purged:
    """Delete the names that banks returned to the run in a folder.

    Args:
        folder: of the run.
        older_than: names of younger answers are kept.
        with_files: delete the files that hold the names too; all of them, also where some names are kept, but
            none where nothing is old enough.

    Raises:
        UsageError: it is no folder of a run.
        LockedError: somebody works in the folder.
        OutputError: the file there is not a ledger, or a file cannot be deleted.
        DiskError: the ledger is damaged or cannot be written to.
    """
    now = datetime.now(UTC)
    time, answers_before = timestamp(now), timestamp(now - older_than)
    deleted: list[str] = []

    def delete_files() -> None:
        files = files_with_names(folder) if with_files else []
        deleted.extend(_there(files))
        record_purge(folder, Purge(time=time, answers_before=answers_before, files=deleted))
        _delete([*files, *map(unfinished, files)])

    name_count = purge_ledger(
        folder / "ledger.db", answers_before=answers_before, now=time, first=delete_files
    )
    return Purged(name_count, deleted, [*_there(files_with_names(folder)), *_not_ours(folder)])


def _there(files: Iterable[Path]) -> list[str]:
    return [file.name for file in files if file.exists()]


def _delete(files: Iterable[Path]) -> None:
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise refused(file, error, otherwise="delete it yourself") from error


def _not_ours(folder: Path) -> list[str]:
    """Files that people have put into the folder, such as a workbook with their decisions."""
    try:
        return sorted(unrecorded(folder, read_manifest(folder)))
    except (UsageError, InputError):
        return []
