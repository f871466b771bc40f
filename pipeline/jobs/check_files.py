"""Check several payment files in order; the error of one does not stop the others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from pipeline.errors import CONCERN_ONE_FILE
from pipeline.files.disk_errors import is_expected_end
from pipeline.jobs.check import RunResult, check
from pipeline.jobs.prepare import read_ahead
from pipeline.runs.request import CheckJob, Surface
from pipeline.stages.read import PaymentSource

if TYPE_CHECKING:
    from pipeline.executors.kept_open import KeptOpen


class FileResult(NamedTuple):
    """The result for one file."""

    job: CheckJob
    result: RunResult | None  # None if the file could not be checked
    end: BaseException | None  # the error, or bug, that prevented the check or ended it early


def check_files(
    jobs: Sequence[CheckJob],
    surfaces: Callable[[CheckJob], AbstractContextManager[Surface]],
    how: Callable[[CheckJob, Surface], RunResult] = check,
    kept: "KeptOpen | None" = None,
) -> Iterator[FileResult]:
    """Check payment files in order, and yield the result of each as soon as it is ready.

    `surfaces` opens a surface for each job; stopping one ends all. With `kept`, each file is read while the
    one before asks. An error that affects all later files is raised after its own result.
    """
    turn = how if kept is None else _Turns(jobs, kept)
    for job in jobs:
        result: RunResult | None = None
        end: BaseException | None = None
        try:
            with surfaces(job) as surface:
                result = turn(job, surface)
            end = result.ended_by
        except BaseException as error:
            if not concerns_one_file(error):
                raise
            end = error
        yield FileResult(job, result, end)
        if end is not None and not concerns_one_file(end):
            raise end


class _Turns:
    def __init__(self, jobs: Sequence[CheckJob], kept: "KeptOpen") -> None:
        self._left = iter(jobs[1:])
        self._kept = kept
        self._ahead: PaymentSource | None = None

    def __call__(self, job: CheckJob, surface: Surface) -> RunResult:
        ahead, self._ahead = self._ahead, None
        following = next(self._left, None)

        def read_following() -> None:
            if following is not None:
                self._ahead = read_ahead(following)

        self._kept.meanwhile = read_following
        return check(job, surface, self._kept, ahead)


def concerns_one_file(end: BaseException) -> bool:
    """True if the next file can still be checked, for example after a bug of ours."""
    return isinstance(end, CONCERN_ONE_FILE) or not is_expected_end(end)
