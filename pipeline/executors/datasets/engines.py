"""Engines run the tasks of a data set; all engines give the same results."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from pipeline.executors.datasets.tasks import Found, Task
from pipeline.runs.request import SetStep


class Engine(Protocol):
    """Runs one function for many tasks."""

    def each(self, function: Callable[[Task], Found], tasks: Sequence[Task]) -> Iterator[tuple[Task, Found]]:
        """Yield each task with its result, in any order.

        Args:
            function: a module-level function; it may be called twice for the same task.
            tasks: the arguments of the function; they may be sent to another process.

        Raises:
            IncompleteError: a worker process died.
            BaseException: as the function raises.
        """


Count = Callable[[SetStep, int, int], object]
"""Reports progress: (step, done count, total count), like `RunObserver.count`."""


def count_nothing(step: SetStep, done_count: int, all_count: int) -> None:
    """Ignore progress."""


def counted(
    found: Iterable[tuple[Task, Found]], count: Count, step: SetStep, all_count: int
) -> Iterator[tuple[Task, Found]]:
    """Yield the results, and report the progress after each."""
    for done_count, one in enumerate(found, start=1):
        count(step, done_count, all_count)
        yield one


def engine(name: str, scheduler: str | None = None) -> AbstractContextManager[Engine]:
    """Open an engine, `pool` or `dask`; `scheduler` is an address for `dask`.

    Raises:
        ConfigurationError: the engine is not installed, or its scheduler cannot be reached.
    """
    if name == "dask":
        from pipeline.executors.datasets.dask import dask_engine

        return dask_engine(scheduler)
    from pipeline.executors.datasets.pool import pool_engine

    return pool_engine()
