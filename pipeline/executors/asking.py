"""What all asking has in common: its plan and its result, its progress, and a way to stop it."""

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from math import ceil
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import anyio
import polars as pl
import structlog

from pipeline.config import Profile
from pipeline.errors import DiskError, PrecheckError, StoppedError, first_of
from pipeline.frames import Answers, AnswerState, Bases, Checks, OwnCode
from pipeline.runs.request import RunObserver, RunProgress, StopSwitch, Surface
from pipeline.sections.servers import Server
from pipeline.stages.ask import DRAIN_MAX_S, RUNS_MAX, UNOBSERVED, ApiChannel, AskingContext, AskingTally
from pipeline.wording import Sentence
from schemas.outcomes import ApiName
from schemas.summary import ApiCalls

PROGRESS_INTERVAL_S = 0.2
STOP_INTERVAL_S = 0.05
"""How often a request to stop is looked for."""
Caps = dict[ApiName, tuple[int, datetime]]
"""API -> its daily cap, and when it resets."""
_HAS_UVLOOP = find_spec("uvloop") is not None
_IS_UNDECIDED = pl.col("state").is_in([AnswerState.UNANSWERED, AnswerState.DEFERRED])
log: structlog.stdlib.BoundLogger = structlog.get_logger()
T = TypeVar("T")


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
        return self.answers.filter(_IS_UNDECIDED)

    def calls(self, bases: Bases) -> list[ApiCalls]:
        """How many questions each API had, and what became of them."""
        counts = bases.group_by("api", maintain_order=True).len()
        return calls_of({ApiName(api): count for api, count in counts.iter_rows()}, self.tally)

    def next_step(self, bases: Bases) -> str:
        """How to go on with the questions that are left, and when."""
        undecided = self.undecided
        counts = _capped_counts(undecided, bases) if self.caps else {}
        left = QuestionsLeft(undecided.height, self.given_up_count, counts)
        return next_step(left, self.caps, self.closed, self.ended_by)


def _capped_counts(undecided: pl.DataFrame, bases: Bases) -> dict[ApiName, int]:
    """How many questions a daily cap left, by API."""
    capped = undecided["check"].filter(undecided["code"] == OwnCode.DAILY_CAP)
    apis = bases["api"].filter(bases["check"].is_in(capped.implode()))
    return {ApiName(api): count for api, count in apis.value_counts().iter_rows()}


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
            elsewhere_count=tally.elsewhere[api],
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
        return f", as the run ended early: {ended_by}"
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


def new_context(surface: Surface) -> AskingContext:
    """Time, chance and new ids, for one asking; and who follows its questions."""
    return AskingContext(
        surface.clock,
        time.monotonic,
        random.random,
        lambda: str(uuid4()),
        anyio.Event(),
        AskingTally(),
        surface.observer or UNOBSERVED,
    )


def watched(
    asking: Callable[[], Awaitable[T]], world: AskingContext, surface: Surface
) -> tuple[T | None, PrecheckError | None]:
    """Ask in an event loop of its own, report the progress, and heed a request to stop.

    Args:
        asking: what asks, until all is asked or `world.stop` is set.
        world: what it asks with.
        surface: what starts it, to report to.

    Returns:
        What it returned, None where it came to no end; and the error that ended it early, if one did.

    Raises:
        DiskError: the ledger cannot be written.
    """
    with _nothing_walked_again(), surface.stop.watched():
        return anyio.run(_watched, asking, world, surface, backend_options={"use_uvloop": _HAS_UVLOOP})


def or_stopped(ended_by: PrecheckError | None, name: str, stop: StopSwitch) -> PrecheckError | None:
    """What ended the asking of a file early: a request to stop, or else an error.

    Raises:
        StoppedError: it is to stop at once; what was answered is in the ledger.
    """
    if (stopped := stop.first) is None:
        return ended_by
    error = StoppedError(Sentence("executors.stopped", name=name, why=stopped.sentence), stopped.exit_code)
    if stop.is_urgent:
        raise error
    return error


async def caps_of(servers: Iterable[Server], channels: Mapping[ApiName, ApiChannel]) -> Caps:
    """The caps of the servers that were asked."""
    return {
        server.name: (server.cap, await channel.quota.resets_at())
        for server in servers
        if (channel := channels.get(server.name)) is not None
        and channel.quota is not None
        and server.cap is not None
    }


@contextmanager
def _nothing_walked_again() -> Iterator[None]:
    """Exclude the objects that exist already, and stay, from garbage collection (docs/adr/0012)."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def _watched(
    asking: Callable[[], Awaitable[T]], world: AskingContext, surface: Surface
) -> tuple[T | None, PrecheckError | None]:
    asyncio.get_running_loop().set_exception_handler(_note)
    result: T | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(heed, surface.stop, world, surface.watch, group.cancel_scope)
            group.start_soon(_show, world.tally, surface.watch)
            result = await asking()
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        return result, _end(first_of(failures))
    return result, None


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Take what no task can be told of: a connection that broke while it was closed, or a mistake of ours."""
    if "transport" in context:  # whoever used it has its own error, and its traceback is no user's business
        log.debug("a connection broke", error=type(context.get("exception")).__name__)
    else:
        loop.default_exception_handler(context)


def _end(failure: BaseException) -> PrecheckError:
    """An error that ends the asking and still leaves an outcome file; any other is raised again."""
    if not isinstance(failure, PrecheckError) or isinstance(failure, DiskError):
        raise failure from None
    return failure


async def heed(stop: StopSwitch, world: AskingContext, watch: RunObserver, scope: anyio.CancelScope) -> None:
    """Wait for requests to stop: the first sends no more and lets what is in flight land, the second ends it.

    Args:
        stop: where requests to stop arrive.
        world: of the asking.
        watch: is told how much is in flight as it stops.
        scope: around the asking, to be cancelled; this function returns once it has cancelled it for good.
    """
    while not stop.is_urgent:
        if stop.first is not None and not world.stop.is_set():
            if not world.tally.is_asking:
                scope.cancel()  # it may be waiting for other processes, or for a server
            if world.tally.in_flight_count:
                watch.stop(world.tally.in_flight_count, DRAIN_MAX_S)
            world.stop.set()
        await anyio.sleep(STOP_INTERVAL_S)
    scope.cancel()


async def _show(tally: AskingTally, watch: RunObserver) -> None:
    """Show how far the asking is, now and then, and where it ended."""
    try:
        while True:
            watch.update(_progress(tally))
            await anyio.sleep(PROGRESS_INTERVAL_S)
    finally:
        watch.update(_progress(tally))


def _progress(tally: AskingTally) -> RunProgress:
    # Earlier answers, and questions beyond a limit, would distort the speed.
    before_count = tally.settled_count
    done_count, check_count = tally.done_count - before_count, tally.check_count - before_count
    answered_before_count = tally.answered_before.total() + tally.reused.total()
    return RunProgress(done_count, check_count, tally.outcomes, tally.slowed, answered_before_count)
