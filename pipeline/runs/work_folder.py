"""The work folder: questions of runs that workers can help with.

    WORK/RUN/questions-00000.parquet    `Checks`, one file per part, by number
    WORK/RUN/work.json                  the run; written last, after all questions

The files contain names and account numbers, so only their owner can read them, and they are removed when the
run finishes.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args
from uuid import UUID

import polars as pl

from pipeline.errors import DiskError, InputError, OutputError
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import OTHER_WORK_FOLDER, with_own_errors, writing
from pipeline.files.folder_lock import refuse_open
from pipeline.files.plain import plain_bytes
from pipeline.frames import CHECKS
from pipeline.runs.folder import keep_document
from pipeline.runs.part_files import Done, Kept
from pipeline.wording import Sentence
from schemas.shared import WorkRecord
from schemas.strict import parse

WORK = "work.json"
_FOLDER_MODE = 0o700
_NAMES = ("work", "rows", "in_sequence", "left", "answers", *get_args(Kept), *get_args(Done))
_OURS = re.compile(rf"({'|'.join(_NAMES)})(-[0-9]{{5,}})?(\..*)?")
"""Names of files with a run's questions, or of a data set's parts."""


def questions_file(folder: Path, part: int) -> Path:
    """The path of a part's questions."""
    return folder / f"questions-{part:05}.parquet"


def holds_only_ours(folder: Path) -> bool:
    """True if a work folder contains nothing but precheck's files, or cannot be listed."""
    try:
        return all(_OURS.fullmatch(path.name) for path in folder.iterdir())
    except OSError:
        return True  # deleting it will report the error


def work_of(root: Path, run: UUID) -> Path:
    """The folder with the questions of a run."""
    return root / str(run)


def write_work(root: Path, record: WorkRecord, parts: Iterable[pl.DataFrame]) -> Path:
    """Write the `Checks` of a run, by part, for workers; existing files are kept.

    Raises:
        OutputError, DiskError: the folder is not writable.
    """
    folder = work_of(root, record.run)
    if (folder / WORK).exists():
        return folder
    with writing(folder, otherwise=OTHER_WORK_FOLDER):
        root.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    for number, part in enumerate(parts):
        assert part.schema == CHECKS
        with write_atomically(questions_file(folder, number)) as file, with_own_errors(file) as through:
            part.write_parquet(through)
    keep_document(folder / WORK, record)
    return folder


def require_private(root: Path) -> None:
    """Refuse a work folder that every user can read, or that `refuse_open` refuses.

    Its group may read it, as in container volumes.

    Raises:
        OutputError: other users can read or replace it.
    """
    try:
        mode = root.stat().st_mode
    except OSError:
        return  # reported when it is used
    if mode & 0o007:
        raise OutputError(Sentence("runs.others_can_look", root=root))
    refuse_open(root, advice=())


def read_questions(folder: Path, part: int) -> pl.DataFrame:
    """Read the `Checks` of a part (InputError: they cannot be read)."""
    path = questions_file(folder, part)
    try:
        checks = pl.read_parquet(plain_bytes(path))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            Sentence("runs.cannot_read_3", path=path), advice=Sentence("advice.write_work")
        ) from error
    if checks.schema != CHECKS:
        raise InputError(Sentence("runs.not_questions_run", path=path))
    return checks


def works_in(root: Path) -> Iterator[WorkRecord]:
    """Yield the runs with questions in a work folder, by id, except runs still being written."""
    try:
        folders = sorted(path for path in root.iterdir() if path.is_dir())
    except OSError as error:
        raise OutputError(
            Sentence("runs.cannot_read_4", root=root, why=error), advice=Sentence("advice.name_work")
        ) from error
    for folder in folders:
        try:
            yield parse(WorkRecord, plain_bytes(folder / WORK))
        except (OSError, ValueError):
            continue


def remove_work(root: Path, run: UUID) -> bool:
    """Delete the questions of a run (DiskError: that fails); False if there were none."""
    folder = work_of(root, run)
    if not folder.is_dir() or folder.is_symlink():
        return False
    (folder / WORK).unlink(missing_ok=True)
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return True  # another process is removing it too
    except OSError as error:
        raise DiskError(Sentence("runs.cannot_deleted_delete", folder=folder, why=error)) from error
    return True
