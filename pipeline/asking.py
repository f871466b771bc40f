"""The asking of a run, from its first question to its last: signals are heard, and somebody may watch."""

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from math import ceil
from typing import NamedTuple

import anyio
import polars as pl

from pipeline.channels import Waiting, open_channels
from pipeline.errors import StoppedError, first_of, stopped_by
from pipeline.frames import ANSWERS, AnswerState, OwnCode
from pipeline.jobs import Job, Planned, Watch
from pipeline.ledger import Ledger
from pipeline.stages.ask import DRAIN_MAX_S, Tally, World, ask
from schemas.outcomes import ApiName, Environment
from schemas.summary import ApiCalls

PROGRESS_INTERVAL_S = 0.2
_HAS_UVLOOP = find_spec("uvloop") is not None


class Asked(NamedTuple):
    """The answers, and the daily caps that may have stopped some of them."""

    answers: pl.DataFrame
    caps: dict[ApiName, tuple[int, datetime]]
    """API -> its cap, and when it begins anew."""

    @property
    def undecided(self) -> pl.DataFrame:
        """The answers of questions that a later run may ask."""
        return self.answers.filter(pl.col("state").is_in([AnswerState.UNANSWERED, AnswerState.DEFERRED]))

    def next_step(self, bases: pl.DataFrame) -> str:
        """How to go on with the questions that are left, and when."""
        left = self.undecided
        capped = left.filter(pl.col("code") == OwnCode.DAILY_CAP).join(bases, on="check")
        if capped.is_empty():
            return f"Questions left: {left.height:,}. Run the same command again."
        # Where two APIs have a cap, the one that needs more days decides.
        days, cap, resets_at = max(
            (ceil(count / self.caps[ApiName(api)][0]), *self.caps[ApiName(api)])
            for api, count in capped.group_by("api").len().iter_rows()
        )
        return (
            f"Questions left: {left.height:,}; the daily cap of {cap:,} is used up. Run the same command "
            f"again after {resets_at:%Y-%m-%d %H:%M} UTC (days needed at this cap: {days:,})."
        )


def ask_all(job: Job, planned: Planned, ledger: Ledger, world: World, watch: Watch) -> Asked:
    """Ask what is left to ask, while signals are heard and the progress is shown.

    Raises:
        StoppedError: a signal said so; what was answered is in the ledger.
        PrecheckError: as `stages.ask`.
    """
    with _garbage_rarely_collected():
        return anyio.run(
            _ask, job, planned, ledger, world, watch, backend_options={"use_uvloop": _HAS_UVLOOP}
        )


def calls(bases: pl.DataFrame, tally: Tally) -> list[ApiCalls]:
    """How many questions each API had, and what became of them."""
    counts = bases.group_by("api", maintain_order=True).len()
    return [
        ApiCalls(
            api=ApiName(api),
            question_count=question_count,
            answered_before_count=tally.answered_before[ApiName(api)],
            reused_count=tally.reused[ApiName(api)],
            request_count=tally.requests[ApiName(api)],
            repeat_count=tally.repeats[ApiName(api)],
        )
        for api, question_count in counts.iter_rows()
    ]


@contextmanager
def _garbage_rarely_collected() -> Iterator[None]:
    """Spare the checks what finds nothing: thousands of requests in flight are no garbage (docs/adr/0012)."""
    before = gc.get_threshold()
    gc.freeze()  # what is here stays, and is not walked again
    gc.set_threshold(200_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def _ask(job: Job, planned: Planned, ledger: Ledger, world: World, watch: Watch) -> Asked:
    checks = planned.plan.checks
    needed = {ApiName(api) for api in checks["api"].unique()}
    stopper = _Stopper(world, watch)
    watch.begin(simulated=planned.profile.environment is Environment.SANDBOX)
    answers = pl.DataFrame(schema=ANSWERS)
    caps: dict[ApiName, tuple[int, datetime]] = {}
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(stopper.listen, group.cancel_scope)
            group.start_soon(_show, world.tally, watch)
            waiting = None if planned.chosen.config is None else Waiting(watch.wait, job.wait_max_s)
            async with open_channels(planned.profile, needed, now=world.now, waiting=waiting) as channels:
                answers = await ask(checks, channels, ledger, world, limit=job.limit)
                for server in planned.profile.servers:
                    channel = channels.get(server.name)
                    if channel is not None and channel.quota is not None and server.cap is not None:
                        caps[server.name] = (server.cap, channel.quota.resets_at())
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    if stopper.received is not None:
        raise StoppedError(f"{job.file.name}: {stopped_by(stopper.received)}", stopper.received)
    return Asked(answers, caps)


class _Stopper:
    """Turns the first signal into a wish to stop, and the second into an immediate end."""

    def __init__(self, world: World, watch: Watch) -> None:
        self.received: signal.Signals | None = None
        self._watch = watch
        self._stop = world.stop
        self._tally = world.tally

    async def listen(self, scope: anyio.CancelScope) -> None:
        on_term = signal.getsignal(signal.SIGTERM)
        try:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for number in signals:
                    if self.received is not None or self._tally.check_count == 0:
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
        watch.update(tally.done_count - before_count, tally.check_count - before_count, tally.outcomes)
        await anyio.sleep(PROGRESS_INTERVAL_S)
