"""Several payment files, one after the other: one that cannot be checked does not stop the others."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from pipeline.errors import CONCERN_ONE_FILE
from pipeline.files.disk_errors import is_expected_end
from pipeline.jobs.check import RunResult, check
from pipeline.runs.request import CheckJob, Surface


class FileResult(NamedTuple):
    """What became of one file."""

    job: CheckJob
    result: RunResult | None
    """None where it could not be checked."""
    end: BaseException | None
    """What prevented the check or ended it early: an error, or a mistake of this program."""


def check_files(
    jobs: Iterable[CheckJob],
    surfaces: Callable[[CheckJob], AbstractContextManager[Surface]],
    how: Callable[[CheckJob, Surface], RunResult] = check,
) -> Iterator[FileResult]:
    """Check payment files in order, and yield the result of each as soon as it has ended.

    Each job has its surface for as long as it takes. Stopping one job ends them all.

    Raises:
        BaseException: an end that concerns the files that follow too, as soon as what is there of its own
            file has been given.
    """
    for job in jobs:
        result: RunResult | None = None
        end: BaseException | None = None
        try:
            with surfaces(job) as surface:
                result = how(job, surface)
            end = result.ended_by
        except BaseException as error:
            if not concerns_one_file(error):
                raise
            end = error
        yield FileResult(job, result, end)
        if end is not None and not concerns_one_file(end):
            raise end


def concerns_one_file(end: BaseException) -> bool:
    """Whether the next file can be checked all the same: so it is after a mistake of ours, too."""
    return isinstance(end, CONCERN_ONE_FILE) or not is_expected_end(end)
