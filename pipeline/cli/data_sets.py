"""Data sets on the command line: find out whether FILE is one, and read its options."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

from pipeline.cli.options import Given
from pipeline.errors import UsageError
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pipeline.executors.kept_open import KeptOpen
    from pipeline.jobs.check import RunResult
    from pipeline.runs.request import CheckJob, Surface


def how_to_check(
    given: Given, stack: ExitStack
) -> "tuple[Callable[[CheckJob, Surface], RunResult], KeptOpen | None]":
    """Return a function that checks files one by one or as a data set, and the resources to share.

    The resources stay open until the stack is closed.

    Raises:
        UsageError: an option for data sets is given with files.
    """
    from pipeline.executors.kept_open import KeptOpen
    from pipeline.jobs.check import check

    if given.scheduler is not None and given.engine != "dask":
        raise UsageError(Sentence("cli.dask"), advice=Sentence("cli.leave_out"))
    used = {"--engine": given.engine, "--scheduler": given.scheduler, "--no-ask": given.no_ask}
    first_used = next((option for option, value in used.items() if value), None)
    if first_used is not None and given.work is None:
        advice = Sentence("cli.name_work_folder")
        raise UsageError(Sentence("cli.option_of_a_data_set", option=first_used), advice=advice)
    if given.work is None or (first_used is None and not any(file.is_dir() for file in given.files)):
        return check, stack.enter_context(KeptOpen()) if len(given.files) > 1 else None
    if len(given.files) > 1:
        raise UsageError(Sentence("cli.one_data_set"), advice=Sentence("cli.check_files_run"))

    def check_as_data_set(job: "CheckJob", surface: "Surface") -> "RunResult":
        from pipeline.jobs.data_set import check_data_set
        from pipeline.runs.request import DataSetJob

        engine: Literal["pool", "dask"] = given.engine or "pool"
        return check_data_set(
            DataSetJob(job, given.work, engine, given.scheduler, asks=not given.no_ask), surface
        )

    return check_as_data_set, None
