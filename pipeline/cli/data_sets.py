"""Data sets on the command line: when FILE is one, and what may be said of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from pipeline.jobs.check import RunResult
    from pipeline.runs.request import CheckJob, Surface


class DataSetWords(NamedTuple):
    """What is said of a data set on the command line."""

    engine: str | None
    scheduler: str | None
    no_ask: bool

    @property
    def options(self) -> list[str]:
        """The options that were used."""
        said = {"--engine": self.engine, "--scheduler": self.scheduler, "--no-ask": self.no_ask}
        return [option for option, word in said.items() if word]


def how_to_check(
    files: Sequence[Path], work: Path | None, words: DataSetWords
) -> "Callable[[CheckJob, Surface], RunResult]":
    """What checks the files: each by itself, or the one there is as a data set.

    Raises:
        UsageError: what is said of a data set is said of files.
    """
    from pipeline.jobs.check import check

    if words.scheduler is not None and words.engine != "dask":
        raise UsageError("is for --engine dask", option="--scheduler", advice="leave it out")
    if not words.options and not any(file.is_dir() for file in files):
        return check
    if work is None:
        if words.options:
            advice = "name its work folder with --work"
            raise UsageError("is for a data set", option=words.options[0], advice=advice)
        return check
    if len(files) > 1:
        raise UsageError(
            "is for one data set", option="--work", advice="check the files in a run of their own"
        )

    def check_as_data_set(job: "CheckJob", surface: "Surface") -> "RunResult":
        from pipeline.jobs.data_set import check_data_set
        from pipeline.runs.request import DataSetJob

        engine: Literal["pool", "dask"] = "dask" if words.engine == "dask" else "pool"
        return check_data_set(DataSetJob(job, work, engine, words.scheduler, asks=not words.no_ask), surface)

    return check_as_data_set
