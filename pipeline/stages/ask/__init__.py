"""ask: Checks -> Answers. Every question at most once, under every limit, whatever dies.

For each attempt, in this order: a slot of the pace is awaited, a unit of the daily cap is reserved, the
intent is made durable, the request leaves, and what came back is made durable before it counts.
So after a crash the requests that may have been sent are known, and they are at most as many as may
be in flight.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import polars as pl

from pipeline.errors import first_of
from pipeline.frames import (
    ANSWERS,
    CHECKS,
    TURNED_AWAY_CODES,
    Answer,
    AnswerState,
    Check,
    OwnCode,
    slim,
)
from pipeline.stages.ask.values import Answers, Channel, Sender, Tally, World
from pipeline.stages.ask.worker import RUNS_MAX, Asking, Run
from pipeline.stores.sqlite.ledger import Fruitless, Ledger
from schemas.outcomes import ApiName

__all__ = ["RUNS_MAX", "Channel", "Sender", "Tally", "World", "ask", "given_up", "so_far"]

DRAIN_MAX_S = 8.0
"""How long requests in flight are awaited after a stop: the longest responder's wait and a second."""

_FINAL_ANSWERS = {
    "question": pl.Binary(),
    **{column: kind for column, kind in ANSWERS.items() if column != "check"},
}


async def ask(  # noqa: PLR0913 (the last two are wishes of the caller)
    checks: pl.DataFrame,
    channels: Mapping[ApiName, Channel],
    ledger: Ledger,
    world: World,
    *,
    limit: int | None = None,
    retry_unanswered: bool = False,
) -> pl.DataFrame:
    """Ask every question that has no answer yet, each API at its own pace, all at the same time.

    Args:
        checks: a `Checks` frame, or any slice of one, in the order of asking.
        channels: one per API that occurs in `checks`.
        ledger: the record of this run, open for writing.
        world: time, chance and the wish to stop. After a stop no question is taken up, requests
            in flight are awaited for a while, and the questions left have no answer.
        limit: how many questions to take up at most; the others are deferred.
        retry_unanswered: ask also what was given up in earlier runs.

    Returns:
        `Answers`: one per check, unless stopped.

    Raises:
        CredentialsError, ConfigurationError: the server lets in no question at all.
        ProtocolError: the server broke the protocol repeatedly.
        DiskError: the ledger cannot be written.
    """
    assert checks.schema == CHECKS
    known = _answered_before(checks, ledger)
    has_answered = _apis_that_answered(known, checks)
    fruitless = ledger.fruitless()
    left = _suspects_last(
        checks.join(known, on="check", how="anti", maintain_order="left"), fruitless, ledger
    )
    run = Run(ledger, world, ledger.open_attempts(), fruitless.keys())
    if not retry_unanswered:
        hopeless = _given_up(left, fruitless, has_answered, ledger)
        for number, found in hopeless.items():
            run.answers.add(
                Answer(number, AnswerState.UNANSWERED, found.code, None, None, None, found.attempts)
            )
        left = left.filter(~pl.col("check").is_in(list(hopeless)))
    todo = left if limit is None else left.head(limit)
    for answer in _deferred(left.slice(todo.height), run):
        run.answers.add(answer)
    _count(world.tally, checks, known, run.answers.count)
    try:
        async with ledger.writing(), _workers(world) as workers:
            for (name, *_), part in todo.group_by("api", maintain_order=True):
                channel = channels[ApiName(str(name))]
                asking = Asking(run, channel, asked_count=part.height, has_answered=name in has_answered)
                questions = _each(part)
                for _ in range(min(channel.in_flight_max, part.height)):
                    workers.start_soon(asking.work, questions)
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    if run.ended_by is not None:
        raise run.ended_by
    return slim(known, run.answers.frame())


def so_far(checks: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """What is known of every question in the middle of a run, that ends here: `Answers`, one per check.

    Args:
        checks: `Checks`.
        ledger: the record of the run, which nobody writes to any more.
    """
    known = _answered_before(checks, ledger)
    left = checks.join(known, on="check", how="anti", maintain_order="left")
    attempts, failures = ledger.open_attempts(), ledger.last_failures()
    answers = Answers()
    for check in _each(left):
        question = ledger.question_key(check)
        sent_count = attempts.get(question, 0)
        state = AnswerState.UNANSWERED if sent_count else AnswerState.DEFERRED
        code = failures.get(question, OwnCode.RUN_ENDED)
        answers.add(Answer(check.check, state, code, None, None, None, sent_count))
    return slim(known, answers.frame())


def given_up(checks: pl.DataFrame, ledger: Ledger) -> int:
    """How many questions are not asked any more, unless somebody wants it.

    Args:
        checks: `Checks`.
        ledger: the record of the run, which nobody writes to now.
    """
    fruitless = ledger.fruitless()
    if not fruitless:
        return 0
    known = _answered_before(checks, ledger)
    left = checks.join(known, on="check", how="anti")
    return len(_given_up(left, fruitless, _apis_that_answered(known, checks), ledger))


def _apis_that_answered(known: pl.DataFrame, checks: pl.DataFrame) -> Collection[str]:
    answered = known.filter(pl.col("state") == AnswerState.ANSWERED)
    return set(checks.join(answered, on="check", how="semi")["api"].unique())


def _suspects_last(left: pl.DataFrame, fruitless: Mapping[bytes, Fruitless], ledger: Ledger) -> pl.DataFrame:
    """The questions in the order of asking: those that an earlier run got nowhere with come last."""
    if not fruitless:
        return left
    suspect = pl.Series([ledger.question_key(check) in fruitless for check in _each(left)], dtype=pl.Boolean)
    return pl.concat([left.filter(~suspect), left.filter(suspect)])


def _given_up(
    left: pl.DataFrame, fruitless: Mapping[bytes, Fruitless], has_answered: Collection[str], ledger: Ledger
) -> dict[int, Fruitless]:
    """The checks that so many runs got nowhere with that no other one tries it."""
    found = {}
    for check in _each(left) if fruitless else ():
        known = fruitless.get(ledger.question_key(check))
        if known is None or known.run_count < RUNS_MAX:
            continue
        if known.code in TURNED_AWAY_CODES and check.api not in has_answered:
            continue  # it may be everybody who is turned away
        found[check.check] = known
    return found


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


def _count(tally: Tally, checks: pl.DataFrame, known: pl.DataFrame, unasked_count: int) -> None:
    """Tell the watchers of a run what is done before anything is asked."""
    tally.check_count = checks.height
    tally.done_count = tally.settled_count = known.height + unasked_count
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
