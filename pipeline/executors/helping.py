"""A worker: it asks any questions that it can claim, of the runs in a work folder."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import inf
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import anyio
import anyio.to_thread
import structlog

from pipeline.config import Profile
from pipeline.errors import IncompleteError, PrecheckError, first_of
from pipeline.executors.event_loop import in_event_loop, new_context, watched
from pipeline.executors.shared import RoundAsker, SharedAccess, SharedPart, pause
from pipeline.runs.request import Notice, Surface
from pipeline.runs.work_folder import read_questions, remove_work, work_of, works_in
from pipeline.stages.ask.values import AskingContext
from pipeline.stores.protocols import SharedRun, SharedStore
from pipeline.stores.values import RoundState
from pipeline.wording import Sentence
from schemas.outcomes import Environment
from schemas.shared import WorkRecord

SEEN_INTERVAL_S = 4.0  # how often a worker reports that it is alive
REST_S = 60.0
"""How long to skip a run whose server accepts nothing more from this process: cap used up, or pausing."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class HelpWanted(NamedTuple):
    """The runs that a worker should help with."""

    root: Path  # the work folder
    profile: Profile
    fingerprint: str  # identifies the profile: runs with other profiles are asked differently
    environment: Environment
    until_idle: bool  # True to end when no question is left, False to end only on request

    def includes(self, record: WorkRecord) -> bool:
        """True if the questions of a run are asked with this profile."""
        return (record.profile_sha256, record.environment) == (self.fingerprint, self.environment)


class HelpGiven(NamedTuple):
    """What a worker has done."""

    answered_count: int
    is_idle: bool  # True if no question was left when it ended
    ended_by: PrecheckError | None


def help_with_runs(store: SharedStore, wanted: HelpWanted, surface: Surface) -> HelpGiven:
    """Ask what it can claim of all runs, until nothing is left or it stops (OutputError: no work folder)."""
    world = new_context(surface)
    helper = _Helper(SharedAccess(store, wanted.profile), wanted, world, surface)
    with helper.runs:
        ended_by = in_event_loop(partial(watched, helper.work, world, surface))
    return HelpGiven(sum(world.tally.answered.values()), helper.is_idle, ended_by)


@dataclass(slots=True)
class _Turn:
    undone_count: int = 0  # unfinished chunks
    workable_count: int = 0  # unfinished chunks of runs that are not being skipped
    has_asked: bool = False


@dataclass(slots=True)
class _Helper:
    access: SharedAccess
    wanted: HelpWanted
    world: AskingContext
    surface: Surface
    runs: ExitStack = field(default_factory=ExitStack)
    is_idle: bool = False  # true if no question was left at the end
    _known: dict[UUID, SharedRun] = field(default_factory=dict)
    _resting: dict[UUID, float] = field(default_factory=dict)
    _seen_at: float = -inf
    _taken_up: set[tuple[UUID, int]] = field(default_factory=set)
    """The (run, round) pairs where it has asked questions."""

    async def work(self) -> None:
        while not self.world.stop.is_set():
            await self._be_seen()
            try:
                turn = await self._turn()
            except IncompleteError as error:
                if self.wanted.until_idle:
                    raise
                log.warning("nothing can be asked now", reason=error.messages[0].recorded(), vital=True)
                self.runs.close()  # they accept no more answers
                self._known.clear()
                turn = _Turn()
            if self.wanted.until_idle and turn.workable_count == 0:
                self.is_idle = turn.undone_count == 0
                return
            if not turn.has_asked:
                await pause(self.world)

    async def _be_seen(self) -> None:
        if time.monotonic() - self._seen_at > SEEN_INTERVAL_S:
            self._seen_at = time.monotonic()
            await anyio.to_thread.run_sync(self.access.store.be_seen, abandon_on_cancel=True)

    async def _turn(self) -> _Turn:
        turn = _Turn()
        for record in works_in(self.wanted.root):
            if self.world.stop.is_set():
                break
            if self.wanted.includes(record):
                await self._help(record, turn)
        return turn

    async def _help(self, record: WorkRecord, turn: _Turn) -> None:
        if (shared := await self._opened(record)) is None:
            return
        state = await shared.latest_round()
        if not state.is_open:
            await self._forget_if_finished(record.run)
            return
        if state.free_count and not self._rests(record.run):
            self._notify_once(record.run, state)
            turn.has_asked |= await self._ask(shared, record)
            state = await shared.latest_round()
        if state.is_open and state.undone_count == 0:
            await shared.end_round(state.number)
        turn.undone_count += state.undone_count
        turn.workable_count += 0 if self._rests(record.run) else state.undone_count

    def _notify_once(self, run: UUID, state: RoundState) -> None:
        """Log, once per round, that the worker has started on questions of a run."""
        if (run, state.number) not in self._taken_up:
            self._taken_up.add((run, state.number))
            facts: dict[str, str | int] = {"run": str(run), "round": state.number, "chunks": state.free_count}
            self.surface.notify(Notice(Sentence("executors.working_on_questions"), facts))

    async def _ask(self, shared: SharedRun, record: WorkRecord) -> bool:
        """Ask until no chunk can be claimed; return True if there was one."""
        tally = self.world.tally
        tally.closures.clear()
        tally.closed.clear()
        world = replace(self.world, stop=anyio.Event())  # an error ends this round, but not the worker
        asker = RoundAsker(shared, self.access, record.apis, world, self.surface.watch)
        counts = await anyio.to_thread.run_sync(lambda: shared.counts, abandon_on_cancel=True)
        if counts.answer_count:
            asker.has_answered = record.apis
        has_asked = False
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._pass_on_a_stop, world)
                has_asked = await asker.ask_what_is_free(SharedPart(shared))
                group.cancel_scope.cancel()
        except BaseExceptionGroup as failures:
            raise first_of(failures) from None
        if tally.closures:
            self._resting[record.run] = time.monotonic() + REST_S
        return has_asked

    async def _pass_on_a_stop(self, world: AskingContext) -> None:
        await self.world.stop.wait()
        world.stop.set()

    async def _opened(self, record: WorkRecord) -> SharedRun | None:
        if (known := self._known.get(record.run)) is not None:
            return known
        run = await anyio.to_thread.run_sync(self.access.store.find, record.run, abandon_on_cancel=True)
        if run is None:
            return None
        if run.finished_at is not None:
            remove_work(self.wanted.root, record.run)
            return None
        folder = work_of(self.wanted.root, record.run)
        questions = lru_cache(maxsize=2)(partial(read_questions, folder))
        opened = self.runs.enter_context(self.access.shared_run(run, questions))
        self._known[record.run] = opened
        return opened

    async def _forget_if_finished(self, run_id: UUID) -> None:
        run = await anyio.to_thread.run_sync(self.access.store.find, run_id, abandon_on_cancel=True)
        if run is not None and run.finished_at is not None:
            self._known.pop(run_id).close()
            remove_work(self.wanted.root, run_id)

    def _rests(self, run: UUID) -> bool:
        return self._resting.get(run, 0.0) > time.monotonic()
