"""One `precheck run` in a simulated process: the asking of the product, with everything around it simulated."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from ssl import SSLContext
from typing import NamedTuple
from uuid import UUID

import anyio
import httpx
import polars as pl

from pipeline.apis import cop
from pipeline.errors import PrecheckError
from pipeline.frames import CHECKS, Check, slim
from pipeline.stages.ask import (
    ApiChannel,
    AskingContext,
    AskingTally,
    answers_so_far,
    ask,
    remaining_questions,
)
from pipeline.stages.ask.concurrency import ConcurrencyLimit
from pipeline.stores.local_source import LocalSource
from pipeline.stores.protocols import Quota
from pipeline.transport.client import Client
from pipeline.transport.rate_limiter import Pace
from pipeline.transport.tokens import Tokens
from schemas.outcomes import ApiName
from schemas.token import TokenRequest
from simulation.books import Book, LedgerOfProcess
from simulation.provider import Provider, Wire
from simulation.weather import Weather
from simulation.world import Clock, Process

ATTEMPTS_MAX = 3
_REQUEST = TokenRequest.model_validate(
    {"grant_type": "client_credentials", "client_id": "c", "client_secret": "s", "scope": "p"}
)


class RunOptions(NamedTuple):
    """How a person starts a run."""

    rate: int
    in_flight_max: int
    limit: int | None = None
    retry_unanswered: bool = False


@dataclass(slots=True)
class RunEnd:
    """How a run ended."""

    answers: pl.DataFrame
    """`Answers`: one per question."""
    error: PrecheckError | None
    tally: AskingTally
    durable: frozenset[int]
    """The questions whose final answer the ledger had as the run ended."""

    @property
    def is_complete(self) -> bool:
        """Whether every question has its final answer."""
        return self.error is None and self.answers["state"].is_in(["answered", "refused", "reused"]).all()


@cache
def questions(count: int) -> pl.DataFrame:
    """`Checks`: so many for CoP, at five banks."""
    rows = [
        {
            "check": row,
            "api": "cop",
            "account": f"{row % 5:06d}{row:08d}",
            "name": f"Payee {row}",
            "account_type": "Personal",
        }
        for row in range(1, count + 1)
    ]
    return pl.DataFrame(rows, schema=CHECKS)


async def run(  # noqa: PLR0917  (a world, and what a command is given)
    process: Process,
    provider: Provider,
    book: Book,
    weather: Weather,
    clock: Clock,
    options: RunOptions,
    quota: Quota | None,
    ended: Callable[[RunEnd], None],
) -> None:
    """Ask what is left to ask, as the command does, and hand over what came of it."""
    world, checks = process.world, questions(provider.question_count)
    tally = AskingTally()
    context = AskingContext(
        clock.now,
        process.loop.time,
        world.chance.random,
        lambda: str(UUID(int=world.chance.getrandbits(128), version=4)),
        anyio.Event(),
        tally,
    )
    ledger = LedgerOfProcess(book, process, weather)
    pace, door = (Pace(options.rate, clock=process.loop.time) for _ in range(2))
    tokens = Tokens(provider.token, _REQUEST, clock=process.loop.time, chance=world.chance.random)
    client = Client(
        "https://cop.example",
        context=None,  # type: ignore[arg-type]
        in_flight_max=options.in_flight_max,
        tokens=tokens,
        door=door,
        open_transport=lambda _context, _count: Wire(process, provider),
    )
    error: PrecheckError | None = None
    asked: pl.DataFrame | None = None
    left = await remaining_questions(
        checks, ledger, tally, limit=options.limit, retry_unanswered=options.retry_unanswered
    )
    async with client:
        channel = ApiChannel(
            api=cop.API,
            sender=client,
            pace=pace,
            places=ConcurrencyLimit(options.in_flight_max, options.rate, pace.clock),
            quota=quota,
            in_flight_max=options.in_flight_max,
            attempts_max=ATTEMPTS_MAX,
            deadline_s=cop.API.responder_wait_s + 1,
        )
        source = LocalSource(left.todo, ledger.question_key)
        try:
            asked = await ask(
                source, {ApiName.COP: channel}, ledger, context, has_answered=left.has_answered
            )
        except PrecheckError as ending:
            error = ending
    answers = await answers_so_far(checks, ledger) if asked is None else slim(left.answers, asked)
    final = {answer.question for answer in book.final_now()}
    rows = {ledger.question_key(Check(*check)): check[0] for check in checks.iter_rows()}
    ended(RunEnd(answers, error, tally, frozenset(rows[question] for question in final)))
