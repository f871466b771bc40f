"""The event loop of an asking: it reports progress and obeys requests to stop."""

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
from pipeline.stages.ask import DRAIN_MAX_S, UNOBSERVED, AskingContext, AskingTally
from pipeline.wording import Sentence

PROGRESS_INTERVAL_S = 0.2
STOP_INTERVAL_S = 0.05
"""How often a request to stop is looked for."""
BACKEND = {"use_uvloop": find_spec("uvloop") is not None}
"""The fastest event loop there is, as anyio's options say it."""
log: structlog.stdlib.BoundLogger = structlog.get_logger()
T = TypeVar("T")


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


def in_event_loop(main: Callable[[], Awaitable[T]]) -> T:
    """Run something in the one event loop of a run."""
    return anyio.run(main, backend_options=BACKEND)


async def watched(
    asking: Callable[[], Awaitable[object]], world: AskingContext, surface: Surface
) -> PrecheckError | None:
    """Ask, report the progress, and heed a request to stop.

    Args:
        asking: what asks, until all is asked or `world.stop` is set.
        world: what it asks with.
        surface: what starts it, to report to.

    Returns:
        The error that ended it early, if one did.

    Raises:
        DiskError: the ledger cannot be written.
    """
    asyncio.get_running_loop().set_exception_handler(_note)
    try:
        with _nothing_walked_again(), surface.stop.watched():
            async with anyio.create_task_group() as group:
                group.start_soon(watch_for_stop, surface.stop, world, surface.watch, group.cancel_scope)
                group.start_soon(_show, world.tally, surface.watch)
                await asking()
                group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        return _end(first_of(failures))
    return None


def or_stopped(ended_by: PrecheckError | None, name: str, stop: StopSwitch) -> PrecheckError | None:
    """The error that ended an asking early: a stop request goes before others.

    Raises:
        StoppedError: it is to stop at once; what was answered is in the ledger.
    """
    if (stopped := stop.first) is None:
        return ended_by
    error = StoppedError(Sentence("executors.stopped", name=name, why=stopped.sentence), stopped.exit_code)
    if stop.is_urgent:
        raise error
    return error


@contextmanager
def _nothing_walked_again() -> Iterator[None]:
    """Exclude the objects that exist already, and stay, from garbage collection (docs/adr/0012)."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle errors outside any task: a connection that broke while closing, or a bug."""
    if "transport" in context:  # its user gets an error of its own; this traceback is noise
        log.debug("a connection broke", error=type(context.get("exception")).__name__)
    else:
        loop.default_exception_handler(context)


def _end(failure: BaseException) -> PrecheckError:
    """An error that ends the asking and still leaves an outcome file; any other is raised again."""
    if not isinstance(failure, PrecheckError) or isinstance(failure, DiskError):
        raise failure from None
    return failure


async def watch_for_stop(
    stop: StopSwitch, world: AskingContext, watch: RunObserver, scope: anyio.CancelScope
) -> None:
    """Wait for requests to stop: the first sends no more and lets what is in flight land, the second ends it.

    Args:
        stop: where requests to stop arrive.
        world: of the asking.
        watch: called with the number of requests in flight while it stops.
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
