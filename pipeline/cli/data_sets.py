"""Data sets on the command line: when FILE is one, and what may be said of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from pipeline.jobs.check import RunResult
    from pipeline.runs.request import CheckJob, Surface


def how_to_check(
    files: Sequence[Path], work: Path | None, engine: str | None, scheduler: str | None
) -> "Callable[[CheckJob, Surface], RunResult]":
    """What checks the files: each by itself, or the one there is as a data set.

    Raises:
        UsageError: what is said of a data set is said of files.
    """
    from pipeline.jobs.check import check

    engine_name: Literal["pool", "dask"] = "dask" if engine == "dask" else "pool"
    if scheduler is not None and engine_name != "dask":
        raise UsageError("is for --engine dask", option="--scheduler", advice="leave it out")
    if engine is None and not any(file.is_dir() for file in files):
        return check
    if work is None:
        for option, said in (("--engine", engine), ("--scheduler", scheduler)):
            if said is not None:
                raise UsageError(
                    "is for a data set", option=option, advice="name its work folder with --work"
                )
        return check
    if len(files) > 1:
        raise UsageError(
            "is for one data set", option="--work", advice="check the files in a run of their own"
        )

    def check_as_data_set(job: "CheckJob", surface: "Surface") -> "RunResult":
        from pipeline.jobs.data_set import check_data_set
        from pipeline.runs.request import DataSetJob

        return check_data_set(DataSetJob(job, work, engine_name, scheduler), surface)

    return check_as_data_set
