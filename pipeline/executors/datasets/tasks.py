"""The arguments of the four functions: the settings shared by all tasks of a data set, and those of each.

They travel between processes, and hold no secret.
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
"""Argument and result of a task function."""


class SetTask(NamedTuple):
    """The settings that all tasks of a data set share."""

    files: PartFiles
    routes: Routes
    mapping: Mapping[str, str]
    encoding: str | None
    bucket_count: int
    country: str | None = None
    polars: str = POLARS  # the same account gets the same bucket only with the same version

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
    """The rows of a data set, by its usable parts."""

    parts: Sequence[int]  # their numbers, in order
    counts: Sequence[int]
    positions: RowPositions

    @property
    def starts(self) -> list[int]:
        """The number of rows before each part."""
        return list(accumulate(self.counts, initial=0))[:-1]


class BucketTask(NamedTuple):
    """One bucket: to plan, or to divide its answers."""

    shared: SetTask
    bucket: int
    rows: UsableRows


class DecideTask(NamedTuple):
    """One part to decide."""

    shared: SetTask
    part: DataPart
    read: PartRead
    row_start: int  # the number of rows of the data set before this part
    format: str  # format of the outcome file
    out: Path  # the folder of the outcome files
    profile: str
    environment: Environment
    tool_version: str
    answers: str  # name of the answers used
    basis: str  # name of the other data used
