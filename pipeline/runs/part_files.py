"""The work folder of a data set: what lies between the parts and their outcomes, and is removed at the end.

It holds names and account numbers, as the payment files do. Each file is there whole or not at all, so that a
task that is carried out twice does no harm.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import polars as pl
from pydantic import BaseModel

from pipeline.errors import DiskError
from pipeline.files.disk_errors import OTHER_WORK_FOLDER, not_writable
from pipeline.files.plain import plain_bytes
from pipeline.frames import Schema
from pipeline.wording import Sentence
from schemas.strict import OwnDocument, parse

_Document = TypeVar("_Document", bound=OwnDocument)


class PartFiles(NamedTuple):
    """The work folder of one data set."""

    root: Path

    def accepted(self, bucket: int, part: int) -> Path:
        """The accepted payments of a part to the accounts of a bucket."""
        return self.root / f"accepted-{bucket:05}" / f"{part:05}.parquet"

    def original(self, part: int) -> Path:
        """The columns of a part, untouched."""
        return self.root / "parts" / f"original-{part:05}.parquet"

    def payments(self, part: int) -> Path:
        """The payments of a part, as far as reports show them."""
        return self.root / "parts" / f"payments-{part:05}.parquet"

    def rejects(self, part: int) -> Path:
        """`Rejects` of a part."""
        return self.root / "findings" / f"rejects-{part:05}.parquet"

    def warnings(self, part: int) -> Path:
        """`Warnings` of a part, without those across parts."""
        return self.root / "findings" / f"warnings-{part:05}.parquet"

    def warnings_across(self, part: int, bucket: int) -> Path:
        """`Warnings` of a part that are known in a bucket."""
        return self.root / f"across-{part:05}" / f"{bucket:05}.parquet"

    def read_part(self, part: int) -> Path:
        """What was found in a part: a document, written last."""
        return self.root / "findings" / f"{part:05}.json"

    def questions(self, bucket: int) -> Path:
        """`Checks` of a bucket."""
        return self.root / f"questions-{bucket:05}.parquet"

    def assignments(self, bucket: int) -> Path:
        """`Assignments` of a bucket, to rows of the data set."""
        return self.root / f"assignments-{bucket:05}.parquet"

    def planned_bucket(self, bucket: int) -> Path:
        """What was planned for a bucket: a document, written last."""
        return self.root / f"planned-{bucket:05}.json"

    def left(self, bucket: int, name: str) -> Path:
        """Some questions of a bucket that are left to ask: `Checks`, with `attempts` and `is_suspect`."""
        return self.root / "left" / f"{name}-{bucket:05}.parquet"

    def answers(self, bucket: int) -> Path:
        """The folder of the `Answers` of a bucket."""
        return self.root / f"answers-{bucket:05}"

    @property
    def in_sequence(self) -> Path:
        """The unknown accounts whose numbers follow one another."""
        return self.root / "in_sequence.parquet"

    def given(self, part: int, bucket: int) -> Path:
        """The answers to the payments of a part, from a bucket."""
        return self.root / f"given-{part:05}" / f"{bucket:05}.parquet"

    def report(self, name: str, part: int) -> Path:
        """What the reports need of a part: one of the frames of `reports.data_sets.PartReport`."""
        return self.root / "decided" / f"{name}-{part:05}.parquet"

    def warned(self, part: int) -> Path:
        """`Warned` of a part, by the rows of the data set."""
        return self.root / "decided" / f"warned-{part:05}.parquet"

    def banks(self, part: int) -> Path:
        """The answers of each bank in a part, counted."""
        return self.root / "decided" / f"banks-{part:05}.parquet"

    def decided_part(self, part: int) -> Path:
        """What was decided about a part: a document, written last."""
        return self.root / "decided" / f"{part:05}.json"

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.root, ignore_errors=True)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame, whole or not at all, for its owner only; raises as `not_writable`."""
    with _replacing(path) as partial:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            # Without statistics, which take as long as the rest and which only a search would read.
            frame.write_parquet(file, compression="lz4", statistics=False)
            file.flush()
            os.fsync(file.fileno())


def write_document(document: BaseModel, path: Path) -> None:
    """Write a document, whole or not at all; what it speaks of was written before, and is on the disk."""
    with _replacing(path) as partial:
        partial.touch(mode=0o600)
        partial.write_text(document.model_dump_json(), "utf-8")


def read_document(kind: type[_Document], path: Path) -> _Document | None:
    """A document; None if there is none, or not a whole one."""
    try:
        return parse(kind, plain_bytes(path))
    except (OSError, ValueError):
        return None


def read_frame(path: Path, schema: Schema, columns: list[str] | None = None) -> pl.DataFrame:
    """A frame as it was written; without rows where there is none. Raises as `read_as_written`."""
    wanted = {name: kind for name, kind in schema.items() if columns is None or name in columns}
    if not path.exists():
        return pl.DataFrame(schema=wanted)
    frame = read_as_written(path, list(wanted))
    return frame.cast(wanted)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping


def read_as_written(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """A frame that is there, with the columns that it has; a DiskError where it cannot be read."""
    try:
        return pl.read_parquet(plain_bytes(path), columns=columns)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DiskError(Sentence("runs.cannot_read_delete", path=path, parent=path.parent)) from error


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise not_writable(path, error, otherwise=OTHER_WORK_FOLDER) from error
