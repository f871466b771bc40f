"""The asking of a run, from its first question to its last: signals are heard, and somebody may watch."""

import gc
import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from math import ceil
from typing import NamedTuple
from uuid import uuid4

import anyio
import polars as pl

from pipeline.config import Profile
from pipeline.connections import Waiting, open_channels
from pipeline.errors import DiskError, PrecheckError, StoppedError, first_of, stopped_by
from pipeline.frames import Answers, AnswerState, Bases, Checks, OwnCode
from pipeline.runs.request import Clock, Job, Watch
from pipeline.stages.ask import DRAIN_MAX_S, RUNS_MAX, Tally, World, ask, given_up, so_far
from pipeline.stores.sqlite.ledger import Ledger
from schemas.outcomes import ApiName, Environment
from schemas.summary import ApiCalls

PROGRESS_INTERVAL_S = 0.2
Caps = Mapping[ApiName, tuple[int, datetime]]
"""API -> its daily cap, and when it begins anew."""
_HAS_UVLOOP = find_spec("uvloop") is not None


class Asking(NamedTuple):
    """What is to be asked, and of whom."""

    checks: Checks
    profile: Profile
    is_ours: bool
    """Whether the server is the embedded sandbox, which no other run asks."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers, and what kept others from coming."""

    answers: Answers
    caps: Caps
    closed: Mapping[ApiName, str]
    """API -> why nothing more was sent to its server, which turned everything away."""
    tally: Tally
    given_up_count: int
    """Questions that no later run asks, unless somebody wants it."""
    ended_by: PrecheckError | None = None
    """What ended the run before all was asked."""

    @property
    def undecided(self) -> pl.DataFrame:
        """The answers of questions that a later run may ask."""
        return self.answers.filter(pl.col("state").is_in([AnswerState.UNANSWERED, AnswerState.DEFERRED]))

    def calls(self, bases: Bases) -> list[ApiCalls]:
        """How many questions each API had, and what became of them."""
        counts = bases.group_by("api", maintain_order=True).len()
        return [
            ApiCalls(
                api=ApiName(api),
                question_count=question_count,
                answered_before_count=self.tally.answered_before[ApiName(api)],
                reused_count=self.tally.reused[ApiName(api)],
                request_count=self.tally.requests[ApiName(api)],
                repeat_count=self.tally.repeats[ApiName(api)],
                pause_count=self.tally.pauses[ApiName(api)],
                in_flight_least=self.tally.slowest.get(ApiName(api)),
            )
            for api, question_count in counts.iter_rows()
        ]

    def next_step(self, bases: Bases) -> str:
        """How to go on with the questions that are left, and when."""
        left_count = self.undecided.height - self.given_up_count
        given_up = (
            f"Questions given up after {RUNS_MAX} runs: {self.given_up_count:,}; ask the provider what is "
            "wrong with them, then run the same command with --retry-unanswered."
        )
        if left_count == 0:
            return given_up
        said = f"Questions left: {left_count:,}{self._why_left(bases)}"
        return f"{said} {given_up}" if self.given_up_count else said

    def _why_left(self, bases: Bases) -> str:
        if self.ended_by is not None:
            return f", as the run ended early. {self.ended_by}"
        if self.closed:
            return f"; {'; '.join(self.closed.values())}. Then run the same command again."
        capped = self.undecided.filter(pl.col("code") == OwnCode.DAILY_CAP).join(bases, on="check")
        if capped.is_empty():
            return ". Run the same command again."
        # Where two APIs have a cap, the one that needs more days decides.
        days, cap, resets_at = max(
            (ceil(count / self.caps[ApiName(api)][0]), *self.caps[ApiName(api)])
            for api, count in capped.group_by("api").len().iter_rows()
        )
        return (
            f"; the daily cap of {cap:,} is used up. Run the same command "
            f"again after {resets_at:%Y-%m-%d %H:%M} UTC (days needed at this cap: {days:,})."
        )


def ask_all(job: Job, asking: Asking, ledger: Ledger, watch: Watch, clock: Clock) -> Asked:
    """Ask what is left to ask, while signals are heard and the progress is shown.

    Returns:
        What came back; also where an error or a signal ended the asking, which is told with it.

    Raises:
        DiskError: the ledger cannot be written.
        StoppedError: a second signal wants the end at once; what was answered is in the ledger.
    """
    world = World(clock, time.monotonic, random.random, lambda: str(uuid4()), anyio.Event(), Tally())
    with _nothing_walked_again():
        return anyio.run(_ask, job, asking, ledger, world, watch, backend_options={"use_uvloop": _HAS_UVLOOP})


@contextmanager
def _nothing_walked_again() -> Iterator[None]:
    """Spare the checks the search for garbage in what is here already, and stays (docs/adr/0012)."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def _ask(job: Job, asking: Asking, ledger: Ledger, world: World, watch: Watch) -> Asked:
    checks = asking.checks
    stopper = _Stopper(world, watch)
    watch.begin(simulated=asking.profile.environment is Environment.SANDBOX)
    answers: pl.DataFrame | None = None
    caps: Caps = {}
    ended_by: PrecheckError | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(stopper.listen, group.cancel_scope)
            group.start_soon(_show, world.tally, watch)
            answers, caps = await _answers(job, asking, ledger, world, watch)
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        ended_by = _end(first_of(failures))
    if stopper.received is not None:
        ended_by = StoppedError(f"{job.file.name}: {stopped_by(stopper.received)}", stopper.received)
        if stopper.is_impatient:
            raise ended_by
    if answers is None or ended_by is not None:
        answers = so_far(checks, ledger)
    return Asked(Answers(answers), caps, world.tally.closed, world.tally, given_up(checks, ledger), ended_by)


async def _answers(
    job: Job, asking: Asking, ledger: Ledger, world: World, watch: Watch
) -> tuple[pl.DataFrame, Caps]:
    """Ask at servers that are opened for it."""
    checks = asking.checks
    needed = {ApiName(api) for api in checks["api"].unique()}
    waiting = None if asking.is_ours else Waiting(watch.wait, job.wait_max_s)
    async with open_channels(asking.profile, needed, now=world.now, waiting=waiting) as channels:
        answers = await ask(
            checks, channels, ledger, world, limit=job.limit, retry_unanswered=job.retry_unanswered
        )
        caps = {
            server.name: (server.cap, channel.quota.resets_at())
            for server in asking.profile.servers
            if (channel := channels.get(server.name)) is not None
            and channel.quota is not None
            and server.cap is not None
        }
    return answers, caps


def _end(failure: BaseException) -> PrecheckError:
    """An end of the asking that leaves an outcome file all the same; any other goes on."""
    if not isinstance(failure, PrecheckError) or isinstance(failure, DiskError):
        raise failure from None
    return failure


class _Stopper:
    """Turns the first signal into a wish to stop, and the second into an immediate end."""

    def __init__(self, world: World, watch: Watch) -> None:
        self.received: signal.Signals | None = None
        self.is_impatient = False
        """Whether there was a second one."""
        self._watch = watch
        self._stop = world.stop
        self._tally = world.tally

    async def listen(self, scope: anyio.CancelScope) -> None:
        on_term = signal.getsignal(signal.SIGTERM)
        try:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for number in signals:
                    self.is_impatient = self.received is not None
                    if self.is_impatient or self._tally.check_count == 0:
                        scope.cancel()  # the second signal, or nothing is asked yet
                    self.received = self.received or number
                    if self._tally.in_flight_count and not self._stop.is_set():
                        self._watch.stop(self._tally.in_flight_count, DRAIN_MAX_S)
                    self._stop.set()
        finally:
            # The receiver leaves the system's default behind, which ends a process without a word.
            signal.signal(signal.SIGTERM, on_term)


async def _show(tally: Tally, watch: Watch) -> None:
    while True:
        # Answers that were there before cost nothing, and tell no speed; nor does what a limit leaves.
        before_count = tally.settled_count
        watch.update(
            tally.done_count - before_count, tally.check_count - before_count, tally.outcomes, tally.slowed
        )
        await anyio.sleep(PROGRESS_INTERVAL_S)
