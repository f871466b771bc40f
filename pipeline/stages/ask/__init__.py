"""ask: Checks -> Answers. Every question at most once, under every limit, whatever dies.

For each attempt, in this order: a slot of the pace is awaited, a unit of the daily cap is reserved, the
intent is made durable, the request leaves, and what came back is made durable before it counts.
So after a crash the requests that may have been sent are known, and they are at most as many as may
be in flight.
"""

from collections.abc import AsyncIterator, Container, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import islice

import anyio
import anyio.abc
import polars as pl

from pipeline.errors import first_of
from pipeline.frames import ANSWERS, CHECKS, Answer, Check
from pipeline.ledger import FinalAnswer, Ledger
from pipeline.stages.ask.asking import Asking, Run
from pipeline.stages.ask.values import Channel, Sender, Tally, World
from schemas.outcomes import ApiName

__all__ = ["Channel", "Sender", "Tally", "World", "ask"]

DRAIN_MAX_S = 8.0
"""How long requests in flight are awaited after a stop: the longest responder's wait and a second."""


async def ask(
    checks: pl.DataFrame,
    channels: Mapping[ApiName, Channel],
    ledger: Ledger,
    world: World,
    *,
    limit: int | None = None,
) -> pl.DataFrame:
    """Ask every question that has no answer yet, each API at its own pace, all at the same time.

    Args:
        checks: a `Checks` frame, or any slice of one, in the order of asking.
        channels: one per API that occurs in `checks`.
        ledger: the record of this run, open for writing.
        world: time, chance and the wish to stop. After a stop no question is taken up, requests
            in flight are awaited for a while, and the questions left have no answer.
        limit: how many questions to take up at most; the others are deferred.

    Returns:
        `Answers`: one per check, unless stopped.

    Raises:
        CredentialsError, ConfigurationError: the server would refuse every row alike.
        ProtocolError: the server broke the protocol repeatedly.
        DiskError: the ledger cannot be written.
    """
    assert checks.schema == CHECKS
    world.tally.check_count = checks.height
    known = {final.question: _answer_of(final) for final in ledger.answers()}
    allowed = None if limit is None else _first_open(checks, ledger, known, limit)
    run = Run(ledger, world, known, ledger.open_attempts(), allowed)
    try:
        async with ledger.writing(), _workers(world) as workers:
            for (name, *_), part in checks.group_by("api", maintain_order=True):
                channel = channels[ApiName(str(name))]
                asking = Asking(run, channel)
                todo = _each(part)
                for _ in range(min(channel.in_flight_max, part.height)):
                    workers.start_soon(asking.work, todo)
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    if run.ended_by is not None:
        raise run.ended_by
    return pl.DataFrame(run.answers, schema=ANSWERS, orient="row")


def _first_open(checks: pl.DataFrame, ledger: Ledger, known: Container[bytes], limit: int) -> frozenset[int]:
    """The first checks, in the order of asking and across all APIs, that have no answer yet."""
    opened = (check.check for check in _each(checks) if ledger.question_key(check) not in known)
    return frozenset(islice(opened, limit))


def _each(checks: pl.DataFrame) -> Iterator[Check]:
    return (Check(row[0], ApiName(row[1]), *row[2:]) for row in checks.iter_rows())


def _answer_of(final: FinalAnswer) -> Answer:
    return Answer(
        0, final.state, final.code, final.matched_name, final.request_id, final.time, final.attempts
    )


@asynccontextmanager
async def _workers(world: World) -> AsyncIterator[anyio.abc.TaskGroup]:
    """Tasks that are awaited; after a stop, only for as long as their requests may take."""
    async with anyio.create_task_group() as watch:

        async def drain() -> None:
            await world.stop.wait()
            if world.tally.in_flight_count == 0:
                world.tally.landed.set()
            with anyio.move_on_after(DRAIN_MAX_S):
                await world.tally.landed.wait()
            watch.cancel_scope.cancel()

        watch.start_soon(drain)
        async with anyio.create_task_group() as workers:
            yield workers
        watch.cancel_scope.cancel()
