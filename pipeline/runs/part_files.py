"""The work folder of a data set, with its intermediate files; removed at the end.

It contains names and account numbers, like the payment files. Files are written atomically, so that repeating
a task does no harm.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import polars as pl
from pydantic import BaseModel

from pipeline.errors import DiskError
from pipeline.files.disk_errors import OTHER_WORK_FOLDER, with_own_errors, writing
from pipeline.files.plain import plain_bytes
from pipeline.frames import Schema
from pipeline.wording import Sentence
from schemas.strict import OwnDocument, parse

_Document = TypeVar("_Document", bound=OwnDocument)


Kept = Literal[
    "original", "payments", "rejects", "warnings",  # a part's columns and findings
    "questions", "assignments",  # of a bucket; rows are numbered as in the data set
    "accepted",  # of each bucket and part
    "warnings_across", "given",  # of each part and bucket
    "changes",  # of each part that was compared with earlier runs
    "attention", "shown", "sums", "changed",  # data of a decided part for the reports
    "banks", "warned", "reasons", "matched",  # of a decided part; the rows of `matched` are the data set's
]  # fmt: skip
"""The frames in the work folder."""
Done = Literal["read", "planned", "decided"]
"""A finished step of a part or a bucket; its record is written last."""


class PartFiles(NamedTuple):
    """The work folder of one data set."""

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
    with _replacing(path) as partial:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file, with_own_errors(file) as through:
            # Without statistics, which would take as long as the rest and only help searches.
            frame.write_parquet(through, compression="lz4", statistics=False)
            file.flush()
            os.fsync(file.fileno())


def write_document(document: BaseModel, path: Path) -> None:
    """Write a document atomically, after the files that it describes."""
    with _replacing(path) as partial:
        partial.touch(mode=0o600)
        partial.write_text(document.model_dump_json(), "utf-8")


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
        raise DiskError(Sentence("runs.cannot_read_delete", path=path, parent=path.parent)) from error


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    with writing(path, otherwise=OTHER_WORK_FOLDER):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
