"""Engines run the tasks of a data set, with the same results. This machine's is here: a process pool."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from pipeline.errors import ConfigurationError, IncompleteError
from pipeline.executors.datasets.steps import Found, Task
from pipeline.runs.request import RunObserver, SetStep
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from distributed import Client


class Engine(Protocol):
    """Runs one function for many tasks."""

    def each(self, function: Callable[[Task], Found], tasks: Sequence[Task]) -> Iterator[tuple[Task, Found]]:
        """Yield each task and result, in any order; a task may run twice (IncompleteError: a worker died)."""


def watched(
    found: Iterable[tuple[Task, Found]], watch: RunObserver, step: SetStep, all_count: int
) -> Iterator[tuple[Task, Found]]:
    """Yield the results, and report the progress after each."""
    for done_count, one in enumerate(found, start=1):
        watch.count(step, done_count, all_count)
        yield one


def engine(name: str, scheduler: str | None = None) -> AbstractContextManager[Engine]:
    """Open an engine: `pool`, or `dask` at the address `scheduler`; same errors as `dask_engine`."""
    if name == "dask":
        return dask_engine(scheduler)
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
            raise IncompleteError(Sentence("executors.part_process_died")) from error


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


CONNECT_MAX_S = 30

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class DaskEngine:
    """The workers of a Dask scheduler."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def each(self, function: Callable[[Task], Found], tasks: Sequence[Task]) -> Iterator[tuple[Task, Found]]:
        """See `Engine.each`."""
        from distributed import as_completed
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        # Not pure, because a task also writes files.
        futures = self._client.map(function, tasks, pure=False)
        of_future: dict[Any, Task] = dict(zip(futures, tasks, strict=True))
        try:
            for future in as_completed(futures):
                yield of_future.pop(future), future.result()
        except (KilledWorker, FutureCancelledError, OSError) as error:
            raise IncompleteError(Sentence("executors.dask_processes_died")) from error
        finally:
            self._client.cancel(list(of_future))


@contextmanager
def dask_engine(scheduler: str | None) -> Iterator[DaskEngine]:
    """Yield the workers of a scheduler, or of a local cluster (ConfigurationError: none is available)."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise ConfigurationError(
            Sentence("executors.dask_not_installed"), advice=Sentence("executors.install_dask")
        ) from None
    if scheduler is None:
        # The cluster's processes would print tracebacks when they end; `each` raises the errors.
        quiet = {"distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical"}
        with (
            dask.config.set(quiet),
            LocalCluster(
                threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
            ) as cluster,
            Client(cluster) as client,
        ):
            yield DaskEngine(client)
        return
    try:
        client = Client(scheduler, timeout=CONNECT_MAX_S)
    except (OSError, ValueError) as error:
        raise ConfigurationError(Sentence("executors.no_scheduler_answers", scheduler=scheduler)) from error
    with client:
        if not client.nthreads():
            log.warning(
                "the scheduler of Dask has no worker yet; the run waits for one",
                scheduler=scheduler, vital=True,
            )  # fmt: skip
        yield DaskEngine(client)
