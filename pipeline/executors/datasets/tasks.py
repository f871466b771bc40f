"""The arguments of the four functions: settings shared by all tasks of a data set, and each task's own.

They are sent between processes, and contain no secrets.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, TypeVar

import polars as pl

from pipeline.errors import ConfigurationError
from pipeline.runs.data_set import DataPart
from pipeline.runs.part_files import PartFiles
from pipeline.stages.validate import Routes
from pipeline.wording import Sentence
from schemas.data_set import PartRead
from schemas.outcomes import Environment
from schemas.row_positions import RowPositions

POLARS = pl.__version__
Task = TypeVar("Task")
Found = TypeVar("Found")
"""The result of a task function."""


class SetTask(NamedTuple):
    """The settings that all tasks of a data set share."""

    files: PartFiles
    routes: Routes
    format: str
    mapping: Mapping[str, str]
    encoding: str | None
    bucket_count: int
    country: str | None = None
    polars: str = POLARS  # only the same version assigns an account to the same bucket

    def require_alike(self) -> None:
        """Refuse to work in a process with another version of polars.

        Raises:
            ConfigurationError: this process has another version.
        """
        if self.polars != POLARS:
            raise ConfigurationError(
                Sentence("executors.worker_polars_this", polars=POLARS, polars_2=self.polars)
            )


class PartTask(NamedTuple):
    """One part to read."""

    shared: SetTask
    part: DataPart


class UsableRows(NamedTuple):
    """The rows of a data set, in terms of its usable parts."""

    parts: Sequence[int]  # the numbers of the parts, in order
    counts: Sequence[int]
    positions: RowPositions

    @property
    def starts(self) -> list[int]:
        """The number of rows before each part."""
        return list(accumulate(self.counts, initial=0))[:-1]


class BucketTask(NamedTuple):
    """One bucket to plan, or whose answers to divide."""

    shared: SetTask
    bucket: int
    rows: UsableRows


class DecideTask(NamedTuple):
    """One part to decide."""

    shared: SetTask
    part: DataPart
    read: PartRead
    row_start: int  # number of rows in the data set before this part
    format: str  # the format of the outcome file
    out: Path  # the folder of the outcome files
    environment: Environment
    answers: str  # name of the answers to use
    basis: str  # name of the other data to use
