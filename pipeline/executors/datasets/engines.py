"""Engines run the tasks of a data set; all give the same results. The pool is the one for this machine."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from typing import Protocol

from pipeline.errors import IncompleteError
from pipeline.executors.datasets.steps import Found, Task
from pipeline.runs.request import SetStep
from pipeline.wording import Sentence


class Engine(Protocol):
    """Runs one function for many tasks."""

    def each(self, function: Callable[[Task], Found], tasks: Sequence[Task]) -> Iterator[tuple[Task, Found]]:
        """Yield each task with its result, in any order; raises what the function raises.

        The function is at module level, and may be called twice for the same task. Tasks may be sent to
        another process (IncompleteError: it died).
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
    """Open `pool`, or `dask` at a scheduler's address (ConfigurationError: not installed or reachable)."""
    if name == "dask":
        from pipeline.executors.datasets.dask import dask_engine

        return dask_engine(scheduler)
    from pipeline.executors.datasets.engines import pool_engine

    return pool_engine()


_IN_EACH = {
    "POLARS_MAX_THREADS": "1",  # there are already as many processes as processors
    "PYTHONSAFEPATH": "1",  # the working folder may contain other people's modules
    # All threads share freed memory: allocating it again for each step costs a tenth of the time.
    "_RJEM_MALLOC_CONF": "narenas:1,dirty_decay_ms:2000",
}


class PoolEngine:
    """Worker processes that start with the first task, and end with this process even if it is killed."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._executor = executor

    def each(self, function: Callable[[Task], Found], tasks: Sequence[Task]) -> Iterator[tuple[Task, Found]]:
        """See `Engine.each`."""
        try:
            with _environment():
                futures = {self._executor.submit(function, task): task for task in tasks}
            for future in as_completed(futures):
                yield futures.pop(future), future.result()
        except BrokenProcessPool as error:
            raise IncompleteError(Sentence("executors.process_worked_on")) from error


@contextmanager
def pool_engine(process_count: int | None = None) -> Iterator[PoolEngine]:
    """Yield a pool of worker processes, by default one per processor."""
    count = process_count or len(os.sched_getaffinity(0))
    # Not forked, because polars has threads.
    executor = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield PoolEngine(executor)
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            process.terminate()
        raise
    executor.shutdown()


@contextmanager
def _environment() -> Iterator[None]:
    """Set the environment of processes that start during the block."""
    before = {name: os.environ.get(name) for name in _IN_EACH}
    os.environ.update(_IN_EACH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _begin() -> None:
    """Prepare a worker process: ignore Ctrl-C, and end with the parent."""
    os.umask(0o077)
    os.setpgid(0, 0)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
