"""The event loop that asks questions, reports progress and obeys stop requests."""

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar
from uuid import uuid4

import anyio
import structlog

from pipeline.errors import DiskError, PrecheckError, StoppedError, first_of
from pipeline.runs.request import RunObserver, RunProgress, StopSwitch, Surface
from pipeline.stages.ask import DRAIN_MAX_S
from pipeline.stages.ask.values import UNOBSERVED, AskingContext, AskingTally
from pipeline.wording import Sentence

PROGRESS_INTERVAL_S = 0.2
STOP_INTERVAL_S = 0.05  # how often to look for stop requests
BACKEND = {"use_uvloop": find_spec("uvloop") is not None}
"""Options for anyio that select the fastest event loop available."""
log: structlog.stdlib.BoundLogger = structlog.get_logger()
T = TypeVar("T")


def new_context(surface: Surface) -> AskingContext:
    """Create the context of a run: clock, chance, ids, and the observer of its questions."""
    return AskingContext(
        surface.clock,
        time.monotonic,
        random.random,
        lambda: str(uuid4()),
        anyio.Event(),
        AskingTally(),
        surface.observer or UNOBSERVED,
    )


def in_event_loop(main: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function in the single event loop of a run."""
    return anyio.run(main, backend_options=BACKEND)


async def watched(
    asking: Callable[[], Awaitable[object]], world: AskingContext, surface: Surface
) -> PrecheckError | None:
    """Ask until `world.stop` or the end; return the error that ended the run early (DiskError: no ledger)."""
    asyncio.get_running_loop().set_exception_handler(_note)
    try:
        with _nothing_walked_again(), surface.stop.watched():
            async with anyio.create_task_group() as group:
                group.start_soon(watch_for_stop, surface.stop, world, surface.watch, group.cancel_scope)
                group.start_soon(_show, world.tally, surface.watch)
                await asking()
                group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        failure = first_of(failures)
        if not isinstance(failure, PrecheckError) or isinstance(failure, DiskError):
            raise failure from None
        return failure  # it ends the run, which still leaves an outcome file
    return None


def or_stopped(ended_by: PrecheckError | None, name: str, stop: StopSwitch) -> PrecheckError | None:
    """Return the error that ended a run early; a stop request comes first (StoppedError: stop at once)."""
    if (stopped := stop.first) is None:
        return ended_by
    error = StoppedError(Sentence("executors.stopped", name=name, why=stopped.sentence), stopped.exit_code)
    if stop.is_urgent:
        raise error
    return error


@contextmanager
def _nothing_walked_again() -> Iterator[None]:
    """Exclude existing, long-lived objects from garbage collection (docs/adr/0012)."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle errors outside any task: a connection that broke while closing, or a bug."""
    if "transport" in context:  # the request raises its own error; this traceback is noise
        log.debug("a connection broke", error=type(context.get("exception")).__name__)
    else:
        loop.default_exception_handler(context)


async def watch_for_stop(
    stop: StopSwitch, world: AskingContext, watch: RunObserver, scope: anyio.CancelScope
) -> None:
    """Watch for stop requests: the first lets requests in flight finish, the second cancels `scope`."""
    while not stop.is_urgent:
        if stop.first is not None and not world.stop.is_set():
            if not world.tally.is_asking:
                scope.cancel()  # the run may be waiting for other processes, or for a server
            if world.tally.in_flight_count:
                watch.stop(world.tally.in_flight_count, DRAIN_MAX_S)
            world.stop.set()
        await anyio.sleep(STOP_INTERVAL_S)
    scope.cancel()


async def _show(tally: AskingTally, watch: RunObserver) -> None:
    try:
        while True:
            watch.update(_progress(tally))
            await anyio.sleep(PROGRESS_INTERVAL_S)
    finally:
        watch.update(_progress(tally))


def _progress(tally: AskingTally) -> RunProgress:
    # Earlier answers, and questions beyond the limit, would distort the rate.
    before_count = tally.settled_count
    done_count, check_count = tally.done_count - before_count, tally.check_count - before_count
    answered_before_count = tally.answered_before.total() + tally.reused.total()
    return RunProgress(done_count, check_count, tally.outcomes, tally.slowed, answered_before_count)
