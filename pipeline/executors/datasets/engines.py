"""An engine carries out tasks of a data set; which one makes no difference to what comes out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Found = TypeVar("Found")


class Engine(Protocol):
    """Carries out one function for many tasks."""

    def each(self, function: Callable[[Task], Found], tasks: Sequence[Task]) -> Iterator[tuple[Task, Found]]:
        """The results with their tasks, in any order, as they come.

        Args:
            function: of a module; it may be called twice for a task.
            tasks: with what the function needs; they may be sent to another process.

        Raises:
            IncompleteError: a process that carried out a task died.
            BaseException: as the function raises.
        """


def engine(name: str, scheduler: str | None = None) -> AbstractContextManager[Engine]:
    """An engine, until the block ends.

    Args:
        name: `pool`, the processes of this machine; or `dask`.
        scheduler: of `dask`, its address; None: a cluster of this machine.

    Raises:
        ConfigurationError: it is not installed, or its scheduler cannot be reached.
    """
    if name == "dask":
        from pipeline.executors.datasets.dask import dask_engine

        return dask_engine(scheduler)
    from pipeline.executors.datasets.pool import pool_engine

    return pool_engine()
