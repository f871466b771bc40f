"""ask: Checks -> Answers. Every question at most once, under every limit, whatever dies.

For each attempt, in this order: a slot of the pace is awaited, a unit of the daily cap is reserved, the
intent is made durable, the request leaves, and what came back is made durable before it counts.
So after a crash the requests that may have been sent are known, and they are at most as many as may
be in flight.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import polars as pl

from pipeline.errors import first_of
from pipeline.frames import ANSWERS, CHECKS, Answer, AnswerState, Check, OwnCode, slim
from pipeline.ledger import Ledger
from pipeline.stages.ask.asking import Asking, Run
from pipeline.stages.ask.values import Channel, Sender, Tally, World
from schemas.outcomes import ApiName

__all__ = ["Channel", "Sender", "Tally", "World", "ask"]

DRAIN_MAX_S = 8.0
"""How long requests in flight are awaited after a stop: the longest responder's wait and a second."""

_FINAL_ANSWERS = {
    "question": pl.Binary(),
    **{column: kind for column, kind in ANSWERS.items() if column != "check"},
}


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
    known = _answered_before(checks, ledger)
    left = checks.join(known, on="check", how="anti", maintain_order="left")
    todo = left if limit is None else left.head(limit)
    run = Run(ledger, world, ledger.open_attempts())
    for answer in _deferred(left.slice(todo.height), run):
        run.answers.add(answer)
    _count(world.tally, checks, known, run.answers.count)
    try:
        async with ledger.writing(), _workers(world) as workers:
            for (name, *_), part in todo.group_by("api", maintain_order=True):
                channel = channels[ApiName(str(name))]
                asking = Asking(run, channel)
                questions = _each(part)
                for _ in range(min(channel.in_flight_max, part.height)):
                    workers.start_soon(asking.work, questions)
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    if run.ended_by is not None:
        raise run.ended_by
    return slim(known, run.answers.frame())


def _answered_before(checks: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The `Answers` that are final already: of earlier runs in this folder or, used again, in another."""
    finals = pl.DataFrame(ledger.answers(), schema=_FINAL_ANSWERS, orient="row")
    if finals.is_empty():
        return pl.DataFrame(schema=ANSWERS)
    questions = map(ledger.question_key, _each(checks))
    asked = checks.select("check", pl.Series("question", questions, dtype=pl.Binary))
    return asked.join(finals, on="question").select(*ANSWERS)


def _deferred(checks: pl.DataFrame, run: Run) -> Iterator[Answer]:
    """What becomes of questions that are beyond the limit of this run."""
    for check in _each(checks):
        sent_count = run.attempts.get(run.ledger.question_key(check), 0)
        yield Answer(check.check, AnswerState.DEFERRED, OwnCode.LIMIT, None, None, None, sent_count)


def _count(tally: Tally, checks: pl.DataFrame, known: pl.DataFrame, deferred_count: int) -> None:
    """Tell the watchers of a run what is done before anything is asked."""
    tally.check_count = checks.height
    tally.done_count = tally.settled_count = known.height + deferred_count
    for api, state, count in known.join(checks, on="check").group_by("api", "state").len().iter_rows():
        counts = tally.reused if state == AnswerState.REUSED else tally.answered_before
        counts[ApiName(api)] += count


def _each(checks: pl.DataFrame) -> Iterator[Check]:
    return (Check(row[0], ApiName(row[1]), *row[2:]) for row in checks.iter_rows())


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
