"""The engine for several machines: Dask workers that have the same folders under the same paths."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from pipeline.errors import ConfigurationError, IncompleteError
from pipeline.executors.datasets.steps import Found, Task
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from distributed import Client

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
            raise IncompleteError(Sentence("executors.workers_scheduler_dask")) from error
        finally:
            self._client.cancel(list(of_future))


@contextmanager
def dask_engine(scheduler: str | None) -> Iterator[DaskEngine]:
    """Yield the workers of a scheduler, or of a local cluster (ConfigurationError: none, or no Dask)."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise ConfigurationError(
            Sentence("executors.library_dask_not"), advice=Sentence("executors.install_payee_precheck_dask")
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
        raise ConfigurationError(Sentence("executors.no_scheduler_dask", scheduler=scheduler)) from error
    with client:
        if not client.nthreads():
            log.warning(
                "the scheduler of Dask has no worker yet; the run waits for one",
                scheduler=scheduler, vital=True,
            )  # fmt: skip
        yield DaskEngine(client)
