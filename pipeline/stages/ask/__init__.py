"""ask: Checks -> Answers. Every question is asked at most once and within every limit, even after a crash.

Each attempt waits for a slot of the rate limit, reserves a unit of the daily cap, makes its intent durable,
sends the request, and makes the reply durable before it counts. So after a crash the run knows which requests
may have been sent: no more than can be in flight.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import polars as pl

from pipeline.errors import first_of
from pipeline.stages.ask.feed import QuestionFeed
from pipeline.stages.ask.values import AnswerBuffer, AnswerSink, ApiChannel, AskingContext
from pipeline.stages.ask.worker import ApiAsker, WorkerContext
from pipeline.stores.protocols import Ledger, QuestionSource
from schemas.outcomes import ApiName

DRAIN_MAX_S = 8.0  # how long a stop waits for requests in flight: the longest wait for a bank plus a second


async def ask(  # noqa: PLR0913 (what asking needs)
    source: QuestionSource,
    channels: Mapping[ApiName, ApiChannel],
    ledger: Ledger,
    world: AskingContext,
    *,
    has_answered: Collection[ApiName] = (),
    answers: AnswerSink | None = None,
) -> pl.DataFrame:
    """Ask every question of the source, all APIs concurrently, and return the `Answers` kept in memory.

    Chunks are asked in the order of claiming. An API's share of the account is released after its last
    question, unless the next run keeps it. After a stop no question is started, requests in flight may finish
    for a while, and unfinished questions are released. `has_answered` has the APIs that answered another
    question of this run before; `answers` takes the answers as they arrive, None keeps them in memory.

    Raises:
        CredentialsError, ConfigurationError: the server refuses access to every question.
        ProtocolError: the server broke the protocol repeatedly.
        DiskError: the ledger cannot be written.
    """
    run = WorkerContext(ledger, world, AnswerBuffer() if answers is None else answers)
    world.tally.is_asking = True
    try:
        with world.observer.asking(channels, world.tally):
            async with ledger.writing(), _workers(world) as workers:
                for name, channel in channels.items():
                    feed = QuestionFeed(source, name)
                    ApiAsker(run, channel, feed, has_answered=name in has_answered).start(workers)
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    finally:
        with anyio.CancelScope(shield=True):
            await source.give_back()
    if run.ended_by is not None:
        raise run.ended_by
    return run.answers.frame()


@asynccontextmanager
async def _workers(world: AskingContext) -> AsyncIterator[anyio.abc.TaskGroup]:
    """Run tasks and await them; after a stop, only for as long as their requests may take."""
    async with anyio.create_task_group() as watch:

        async def drain() -> None:
            await world.stop.wait()
            world.tally.landed = anyio.Event()
            if world.tally.in_flight_count:
                with anyio.move_on_after(DRAIN_MAX_S):
                    await world.tally.landed.wait()
            watch.cancel_scope.cancel()

        watch.start_soon(drain)
        async with anyio.create_task_group() as workers:
            yield workers
        watch.cancel_scope.cancel()
