"""The work folder: questions of runs that workers can help with, and intermediate files of a data set.

    WORK/RUN/questions-00000.parquet    `Checks`, one file per part, by number
    WORK/RUN/work.json                  the run; written last, after all questions

The files contain names and accounts, so only their owner can read them; the run removes them when it ends.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeVar, get_args
from uuid import UUID

import polars as pl
from pydantic import BaseModel

from pipeline.errors import DiskError, InputError, OutputError
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import OTHER_WORK_FOLDER, with_own_errors, writing
from pipeline.files.folder_lock import refuse_open
from pipeline.files.plain import plain_bytes
from pipeline.files.private import opened
from pipeline.frames import CHECKS, Schema
from pipeline.runs.folder import keep_document
from pipeline.wording import Sentence
from schemas.shared import WorkRecord
from schemas.strict import OwnDocument, parse

_Document = TypeVar("_Document", bound=OwnDocument)


Kept = Literal[
    "original", "payments", "rejects", "warnings",  # a part's columns and findings
    "questions", "assignments",  # of a bucket; rows are numbered as in the data set
    "accepted",  # of each bucket and part
    "warnings_across", "given",  # of each part and bucket
    "changes",  # of each part that was compared with earlier runs
    "batches",  # where each payment of a part is booked
    "attention", "shown", "sums", "changed",  # data of a decided part for the reports
    # These describe a decided part; the last two number rows as the data set does.
    "banks", "warned", "reasons", "differences", "matched",
]  # fmt: skip
"""The frames in the work folder."""
Done = Literal["read", "planned", "decided"]  # a step of a part or bucket, whose record is written last


class PartFiles(NamedTuple):
    """The work folder of one data set. Its files are written atomically, so repeating a task does no harm."""

    root: Path

    def frame(self, kept: Kept, first: int, second: int | None = None) -> Path:
        """The path of a frame of a part, a bucket, or both."""
        folder = self.root / kept if second is None else self.root / f"{kept}-{first:05}"
        return folder / f"{first if second is None else second:05}.parquet"

    def done(self, what: Done, number: int) -> Path:
        """The path of the record that a step of a part or a bucket has finished."""
        return self.root / what / f"{number:05}.json"

    def left(self, bucket: int, name: str) -> Path:
        """The path of a bucket's open questions: `Checks`, with `attempts` and `is_suspect`."""
        return self.root / "left" / f"{name}-{bucket:05}.parquet"

    def answers(self, bucket: int) -> Path:
        """The folder of a bucket's `Answers`."""
        return self.root / f"answers-{bucket:05}"

    @property
    def in_sequence(self) -> Path:
        """The path of the list of unknown accounts with consecutive numbers."""
        return self.root / "in_sequence.parquet"

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root, ignore_errors=True)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame atomically, readable by its owner only; same errors as `not_writable`."""
    with _replacing(path) as file, with_own_errors(file) as through:
        # Without statistics, which would take as long as the rest and only help searches.
        frame.write_parquet(through, compression="lz4", statistics=False)
        file.flush()
        os.fsync(file.fileno())


def write_document(document: BaseModel, path: Path) -> None:
    """Write a document atomically, after the files that it describes."""
    with _replacing(path) as file:
        file.write(document.model_dump_json().encode())


def read_document(kind: type[_Document], path: Path) -> _Document | None:
    """Read a document; None if it is missing or incomplete."""
    try:
        return parse(kind, plain_bytes(path))
    except (OSError, ValueError):
        return None


def read_frame(path: Path, schema: Schema, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a frame; without rows if the file is missing. Same errors as `read_as_written`."""
    wanted = {name: kind for name, kind in schema.items() if columns is None or name in columns}
    if not path.exists():
        return pl.DataFrame(schema=wanted)
    frame = read_as_written(path, list(wanted))
    return frame.cast(wanted)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


def read_as_written(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """Read an existing frame with the columns that it has (DiskError: it cannot be read)."""
    try:
        return pl.read_parquet(plain_bytes(path), columns=columns)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DiskError(Sentence("runs.work_file_unreadable", path=path, parent=path.parent)) from error


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    with writing(path, otherwise=OTHER_WORK_FOLDER):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with opened(partial, os.O_TRUNC) as file:
                yield file
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


WORK = "work.json"
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
    """Write a run's `Checks`, by part, for workers; existing files stay (OutputError, DiskError)."""
    folder = work_of(root, record.run)
    if (folder / WORK).exists():
        return folder
    with writing(folder, otherwise=OTHER_WORK_FOLDER):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    for number, part in enumerate(parts):
        assert part.schema == CHECKS
        with write_atomically(questions_file(folder, number)) as file, with_own_errors(file) as through:
            part.write_parquet(through)
    keep_document(folder / WORK, record)
    return folder


def require_private(root: Path) -> None:
    """Refuse a work folder that `refuse_open` refuses, or that users outside its group can read."""
    try:
        mode = root.stat().st_mode
    except OSError:
        return  # reported when it is used
    if mode & 0o007:
        raise OutputError(Sentence("runs.work_folder_open_to_others", root=root))
    refuse_open(root, advice=())


def read_questions(folder: Path, part: int) -> pl.DataFrame:
    """Read the `Checks` of a part (InputError: they cannot be read)."""
    path = questions_file(folder, part)
    try:
        checks = pl.read_parquet(plain_bytes(path))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            Sentence("runs.questions_unreadable", path=path), advice=Sentence("advice.rewrite_work_folder")
        ) from error
    if checks.schema != CHECKS:
        raise InputError(Sentence("runs.questions_of_other_version", path=path))
    return checks


def works_in(root: Path) -> Iterator[WorkRecord]:
    """Yield the runs with questions in a work folder, by id, except runs still being written."""
    try:
        folders = sorted(path for path in root.iterdir() if path.is_dir())
    except OSError as error:
        raise OutputError(
            Sentence("runs.work_folder_unreadable", root=root, why=error),
            advice=Sentence("advice.name_work_folder"),
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
        raise DiskError(Sentence("runs.work_not_deleted", folder=folder, why=error)) from error
    return True
