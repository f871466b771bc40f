"""The asking of a run in this process, from first to last question, with progress and a way to stop it."""

import gc
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from math import ceil
from typing import Generic, NamedTuple, TypeVar
from uuid import uuid4

import anyio
import polars as pl

from pipeline.config import Profile
from pipeline.connections import open_channels, shares_of_this_machine
from pipeline.errors import DiskError, PrecheckError, StoppedError, first_of
from pipeline.frames import Answers, AnswerState, Bases, Checks, OwnCode, slim
from pipeline.runs.request import CheckJob, Phase, RunObserver, RunProgress, Surface
from pipeline.stages.ask import (
    DRAIN_MAX_S,
    RUNS_MAX,
    ApiChannel,
    AskingContext,
    AskingTally,
    answers_so_far,
    ask,
    count_given_up,
    remaining_questions,
)
from pipeline.stores.local_source import LocalSource
from pipeline.stores.protocols import Ledger
from schemas.outcomes import ApiName, Environment
from schemas.summary import ApiCalls

PROGRESS_INTERVAL_S = 0.2
STOP_INTERVAL_S = 0.05
"""How often a request to stop is looked for."""
Caps = Mapping[ApiName, tuple[int, datetime]]
"""API -> its daily cap, and when it resets."""
_HAS_UVLOOP = find_spec("uvloop") is not None


class AskingPlan(NamedTuple):
    """What to ask, and of whom."""

    checks: Checks
    profile: Profile
    is_ours: bool
    """Whether the server is the embedded sandbox, which no other run asks."""


@dataclass(frozen=True, slots=True)
class AskingResult:
    """The answers, and why others are missing."""

    answers: Answers
    caps: Caps
    closed: Mapping[ApiName, str]
    """API -> why nothing more was sent to its server, which turned everything away or wanted a long pause."""
    tally: AskingTally
    given_up_count: int
    """Questions that no later run asks, unless the user requests it."""
    ended_by: PrecheckError | None = None
    """What ended the run before all was asked."""

    @property
    def undecided(self) -> pl.DataFrame:
        """The answers of questions that a later run may ask."""
        return self.answers.filter(pl.col("state").is_in([AnswerState.UNANSWERED, AnswerState.DEFERRED]))

    def calls(self, bases: Bases) -> list[ApiCalls]:
        """How many questions each API had, and what became of them."""
        counts = bases.group_by("api", maintain_order=True).len()
        return calls_of({ApiName(api): count for api, count in counts.iter_rows()}, self.tally)

    def next_step(self, bases: Bases) -> str:
        """How to go on with the questions that are left, and when."""
        capped = self.undecided.filter(pl.col("code") == OwnCode.DAILY_CAP).join(bases, on="check")
        counts = {ApiName(api): count for api, count in capped.group_by("api").len().iter_rows()}
        left = QuestionsLeft(self.undecided.height, self.given_up_count, counts)
        return next_step(left, self.caps, self.closed, self.ended_by)


class QuestionsLeft(NamedTuple):
    """How many questions have no final answer."""

    open_count: int
    given_up_count: int
    """Of these, those that no later run asks, unless the user requests it."""
    capped: Mapping[ApiName, int]
    """Of these, those that a daily cap left."""


def calls_of(question_counts: Mapping[ApiName, int], tally: AskingTally) -> list[ApiCalls]:
    """How many questions each API had, and what became of them."""
    return [
        ApiCalls(
            api=api,
            question_count=question_count,
            answered_before_count=tally.answered_before[api],
            reused_count=tally.reused[api],
            request_count=tally.requests[api],
            repeat_count=tally.repeats[api],
            pause_count=tally.pauses[api],
            in_flight_least=tally.slowest.get(api),
        )
        for api, question_count in question_counts.items()
    ]


def next_step(
    left: QuestionsLeft, caps: Caps, closed: Mapping[ApiName, str], ended_by: PrecheckError | None
) -> str:
    """How to go on with the questions that are left, and when."""
    left_count = left.open_count - left.given_up_count
    given_up = (
        f"Questions given up after {RUNS_MAX} runs: {left.given_up_count:,}; ask the provider what is "
        "wrong with them, then run the same command with --retry-unanswered."
    )
    if left_count == 0:
        return given_up
    said = f"Questions left: {left_count:,}{_why_left(left, caps, closed, ended_by)}"
    return f"{said} {given_up}" if left.given_up_count else said


def _why_left(
    left: QuestionsLeft, caps: Caps, closed: Mapping[ApiName, str], ended_by: PrecheckError | None
) -> str:
    if ended_by is not None:
        return f", as the run ended early. {ended_by}"
    if closed:
        return f"; {'; '.join(closed.values())}. Then run the same command again."
    if not left.capped:
        return ". Run the same command again."
    # Where two APIs have a cap, the one that needs more days decides.
    days, cap, resets_at = max((ceil(count / caps[api][0]), *caps[api]) for api, count in left.capped.items())
    return (
        f"; the daily cap of {cap:,} is used up. Run the same command "
        f"again after {resets_at:%Y-%m-%d %H:%M} UTC (days needed at this cap: {days:,})."
    )


def ask_all(job: CheckJob, asking: AskingPlan, ledger: Ledger, surface: Surface) -> AskingResult:
    """Ask what is left to ask and report the progress, until all is asked or the run is stopped.

    Returns:
        What came back; also where an error or a request to stop ended the asking, which is part of it.

    Raises:
        DiskError: the ledger cannot be written.
        StoppedError: the run is to stop at once; what was answered is in the ledger.
    """
    carried = carry_out(
        lambda world: _answers(job, asking, ledger, world, surface.watch),
        surface,
        where=job.file.name,
        simulated=asking.profile.environment is Environment.SANDBOX,
    )
    answers, caps = carried.result or (None, {})
    if answers is None or carried.ended_by is not None:
        answers = anyio.run(answers_so_far, asking.checks, ledger)
    given_up_count = anyio.run(count_given_up, asking.checks, ledger)
    tally = carried.tally
    return AskingResult(Answers(answers), caps, tally.closed, tally, given_up_count, carried.ended_by)


_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CarriedOut(Generic[_Result]):
    """The end of an asking."""

    result: _Result | None
    """None where it ended before."""
    tally: AskingTally
    ended_by: PrecheckError | None
    """What ended it before all was asked."""


def carry_out(
    asks: Callable[[AskingContext], Awaitable[_Result]], surface: Surface, *, where: str, simulated: bool
) -> CarriedOut[_Result]:
    """Ask with progress and a way to stop it.

    Args:
        asks: opens the channels and asks.
        surface: what starts it, to report to.
        where: the file, for messages.
        simulated: whether a sandbox answers.

    Raises:
        DiskError: the ledger cannot be written.
        StoppedError: the run is to stop at once; what was answered is in the ledger.
    """
    world = AskingContext(
        surface.clock, time.monotonic, random.random, lambda: str(uuid4()), anyio.Event(), AskingTally()
    )
    surface.watch.begin(simulated=simulated)
    surface.watch.enter(Phase.CONNECTING)
    with _nothing_walked_again(), surface.stop.watched():
        result, ended_by = anyio.run(
            _watched, asks, world, surface, backend_options={"use_uvloop": _HAS_UVLOOP}
        )
    if (stopped := surface.stop.first) is not None:
        ended_by = StoppedError(f"{where}: {stopped.sentence}", stopped.exit_code)
        if surface.stop.is_urgent:
            raise ended_by
    return CarriedOut(result, world.tally, ended_by)


@contextmanager
def _nothing_walked_again() -> Iterator[None]:
    """Exclude the objects that exist already, and stay, from garbage collection (docs/adr/0012)."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def _watched(
    asks: Callable[[AskingContext], Awaitable[_Result]], world: AskingContext, surface: Surface
) -> tuple[_Result | None, PrecheckError | None]:
    """The result, and what ended the asking early."""
    result: _Result | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_heed, surface, world, group.cancel_scope)
            group.start_soon(_show, world.tally, surface.watch)
            result = await asks(world)
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        return result, _end(first_of(failures))
    return result, None


async def _answers(
    job: CheckJob, asking: AskingPlan, ledger: Ledger, world: AskingContext, watch: RunObserver
) -> tuple[pl.DataFrame, Caps]:
    """The answers, and the caps of their servers."""
    checks = asking.checks
    needed = {ApiName(api) for api in checks["api"].unique()}
    async with channels_of(job, asking.profile, needed, world, watch, is_ours=asking.is_ours) as channels:
        left = await remaining_questions(
            checks, ledger, world.tally, limit=job.limit, retry_unanswered=job.retry_unanswered
        )
        source = LocalSource(left.todo, ledger.question_key)
        asked = await ask(source, channels, ledger, world, has_answered=left.has_answered)
        caps = await caps_of(asking.profile, channels)
    return slim(left.answers, asked), caps


@asynccontextmanager
async def channels_of(  # noqa: PLR0913 (what opening them takes)
    job: CheckJob,
    profile: Profile,
    needed: Collection[ApiName],
    world: AskingContext,
    watch: RunObserver,
    *,
    is_ours: bool,
) -> AsyncIterator[Mapping[ApiName, ApiChannel]]:
    """The open channels to the servers that are asked, as soon as their shares are free."""
    shares = (
        None
        if is_ours
        else shares_of_this_machine(clock=world.now, waiting=watch.wait, wait_max_s=job.wait_max_s)
    )
    async with open_channels(profile, needed, now=world.now, shares=shares) as channels:
        watch.enter(Phase.ASKING)
        yield channels


async def caps_of(profile: Profile, channels: Mapping[ApiName, ApiChannel]) -> Caps:
    """The daily caps of the servers that were asked."""
    return {
        server.name: (server.cap, await channel.quota.resets_at())
        for server in profile.servers
        if (channel := channels.get(server.name)) is not None
        and channel.quota is not None
        and server.cap is not None
    }


def _end(failure: BaseException) -> PrecheckError:
    """An error that ends the asking and still leaves an outcome file; any other is raised again."""
    if not isinstance(failure, PrecheckError) or isinstance(failure, DiskError):
        raise failure from None
    return failure


async def _heed(surface: Surface, world: AskingContext, scope: anyio.CancelScope) -> None:
    """Stop: at the first request send no more and let what is in flight land; at the second end at once."""
    while not surface.stop.is_urgent:
        if surface.stop.first is not None and not world.stop.is_set():
            if world.tally.check_count == 0:
                scope.cancel()  # nothing is asked yet
            if world.tally.in_flight_count:
                surface.watch.stop(world.tally.in_flight_count, DRAIN_MAX_S)
            world.stop.set()
        await anyio.sleep(STOP_INTERVAL_S)
    scope.cancel()


async def _show(tally: AskingTally, watch: RunObserver) -> None:
    while True:
        # Earlier answers, and questions beyond a limit, would distort the speed.
        before_count = tally.settled_count
        done_count, check_count = tally.done_count - before_count, tally.check_count - before_count
        watch.update(RunProgress(done_count, check_count, tally.outcomes, tally.slowed))
        await anyio.sleep(PROGRESS_INTERVAL_S)
