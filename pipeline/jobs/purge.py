"""Delete the names that banks returned: from the ledgers of runs, and with the files that contain them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from pipeline.errors import IncompleteError, InputError, UsageError
from pipeline.files.atomic import delete, partial_name
from pipeline.files.disk_errors import writing
from pipeline.files.signatures import is_signed
from pipeline.runs.data_set import read_record
from pipeline.runs.folder import decider, files_with_names, ledger_of, matching_folders, read_store_record
from pipeline.runs.manifest import read_manifest, record_purge, replaced_manifest, unrecorded
from pipeline.runs.proof import opened_to_read, proof_of_purge, sign, signer_again
from pipeline.runs.starting import moved_from
from pipeline.runs.work_folder import holds_only_ours, remove_work, work_of
from pipeline.stores.kinds import kind_of
from pipeline.stores.protocols import StoreClocks
from pipeline.stores.sqlite.purge import purge as purge_ledger
from pipeline.wording import Sentence
from schemas.folder import OUTCOMES, PAYEES, files_of_review
from schemas.manifest import Purge
from schemas.strict import timestamp

_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class PurgeJob:
    """The arguments of `precheck purge`."""

    older_than: timedelta = timedelta()  # keeps younger names; 0 deletes all, even of unfinished runs
    with_files: bool = False  # also delete all files that contain the names, if any answer is old enough
    with_payments: bool = False  # with `with_files`: also the files of split, and the keyed hashes of payees
    by: str | None = None  # the user's name; None if unknown, as in a container
    reason: str | None = None
    sign_with: Path | None = None  # the private key that signs the manifest; None means the profile's, if any
    dry_run: bool = False


class PurgeResult(NamedTuple):
    """The result of a purge."""

    name_count: int  # how many names were deleted from the ledger
    detail_count: int  # how many details of problems, which are texts of servers, were deleted from it
    deleted: list[str]  # deleted files
    left: list[str]  # remaining files that contain such names, or may, as their content is unknown
    was_due: bool = True  # False if nothing changed: no answer was old enough, or no names were left


class PurgeForecast(NamedTuple):
    """What a purge would delete."""

    name_count: int
    detail_count: int
    files_are_due: bool


def folders_named(words: Sequence[Path]) -> dict[Path, bool]:
    """Return the folders to purge, in order; True if given by name (UsageError: a pattern matches none)."""
    folders: dict[Path, bool] = {}
    for word in words:
        if word.exists() or not _PATTERN.intersection(str(word)):
            folders[word] = True
            continue
        found = [path for path in matching_folders(str(word)) if path.is_dir()]
        if not found:
            raise UsageError(Sentence("jobs.no_folder_matches_pattern", word=word))
        moved = [aside for path in found for aside in moved_from(path)]
        folders |= {path: folders.get(path, False) for path in (*found, *moved)}
    return folders


def purge(folder: Path, job: PurgeJob, *, now: datetime) -> PurgeResult:
    """Delete the names that banks returned to a run, and record that in its folder.

    Raises UsageError if the folder is no run's, IncompleteError if names of an unfinished run are old enough
    or its shared ledger does not answer, LockedError if another process works there, InputError if another
    signer signed it, ConfigurationError for an unreadable key, and OutputError or DiskError for unusable
    files.
    """
    time, answers_before, by = timestamp(now), timestamp(now - job.older_than), job.by and decider(job.by)
    look = _look(folder, job, answers_before, time)
    files = _files_to_delete(folder, job)
    is_due = not job.older_than or look.name_count + look.detail_count > 0
    is_due = is_due or (look.files_are_due and bool(_there(files)))
    if not is_due or job.dry_run:
        deleted = [*_there(files), *map(str, filter(holds_only_ours, _works(folder, job)))] if is_due else []
        return PurgeResult(look.name_count, look.detail_count, deleted, [], was_due=is_due)
    manifest, deleted = replaced_manifest(folder), []
    # An unsigned or unreadable manifest is left unsigned, and the purge continues.
    signer = signer_again(folder, manifest, job.sign_with) if manifest and is_signed(folder) else None
    every = _works(folder, job)
    works = [work for work in every if holds_only_ours(work)]

    def delete_files() -> None:
        deleted.extend(_there(files))
        entry = Purge(time=time, answers_before=answers_before, files=deleted, by=by, reason=job.reason)
        if manifest is not None:
            sign(folder, signer, record_purge(folder, manifest, entry))
        # Partial files are useless.
        for file in (*files, *map(partial_name, {*files, *_holding_names(folder)})):
            with writing(file, otherwise=Sentence("advice.delete_it")):
                delete(file)
        for work in works:
            remove_work(work.parent, UUID(work.name))

    _purge_shared(folder, answers_before, now)
    proof = proof_of_purge(signer)
    name_count = purge_ledger(
        ledger_of(folder), answers_before=answers_before, now=time, first=delete_files, proof=proof
    )
    left = [*_there(_holding_names(folder)), *_not_ours(folder)]
    left += [str(work) for work in every if work not in works]
    return PurgeResult(name_count, look.detail_count, [*deleted, *map(str, works)], left)


def _look(folder: Path, job: PurgeJob, answers_before: str, now: str) -> PurgeForecast:
    """Find what is old enough to delete (IncompleteError: that includes data of an unfinished run)."""
    with opened_to_read(folder, now=now, proves=False) as record:
        finish = record.last_finish
        has_finished = finish is not None and finish.unanswered_count == 0
        if job.older_than and not has_finished and record.created_at < answers_before:
            raise IncompleteError(
                Sentence("jobs.purge_run_not_finished", folder=folder),
                advice=Sentence("jobs.finish_or_purge_any_age"),
            )
        name_count = record.name_count(answers_before)
        has_ended_before = finish is not None and finish.time < answers_before
        files_are_due = name_count > 0 or record.has_purged_names or has_ended_before
        return PurgeForecast(name_count, record.detail_count(answers_before), files_are_due)


def _purge_shared(folder: Path, answers_before: str, now: datetime) -> None:
    """Purge the run's shared ledger, if any. This comes first, because the ledger may be unavailable."""
    if (record := read_store_record(folder)) is None:
        return
    at_once = StoreClocks(lambda: now, lambda: 0.0, wait_max_s=0.0)
    with kind_of(record.ledger).cared_for(record.ledger, at_once) as care:
        care.purge_names(record.run, answers_before=answers_before)


def _files_to_delete(folder: Path, job: PurgeJob) -> list[Path]:
    if not (job.with_files or job.with_payments):
        return []
    files = _holding_names(folder)
    if job.with_payments:
        files += [folder / PAYEES, *(path for path in files_of_review(folder) if path not in files)]
    return files


def _holding_names(folder: Path) -> list[Path]:
    """List the files with names, like `files_with_names`; for a data set also the folder of outcome files."""
    return [*files_with_names(folder), folder / OUTCOMES]


def _works(folder: Path, job: PurgeJob) -> list[Path]:
    """List the run's work folders, which exist until it finishes: they contain payees and accounts."""
    works = []
    if (job.with_files or job.with_payments) and (data_set := read_record(folder)) is not None:
        works.append(Path(data_set.work))
    if job.with_payments and (shared := read_store_record(folder)) is not None and shared.work is not None:
        works.append(work_of(Path(shared.work), shared.run))
    # Work folders are named by the id of their run.
    return [work for work in works if _is_id(work.name) and work.is_dir() and not work.is_symlink()]


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _there(files: Iterable[Path]) -> list[str]:
    return [file.name for file in files if file.exists()]


def _not_ours(folder: Path) -> list[str]:
    """List files that people have put into the folder, for example a workbook with their decisions."""
    try:
        return sorted(unrecorded(folder, read_manifest(folder)))
    except (UsageError, InputError):
        return []
