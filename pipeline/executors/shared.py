"""Ask questions of a run together with other processes, in rounds.

A round consists of the questions that are open when it begins, in chunks. A process joins an open round, or
begins one with all unanswered questions. When all chunks are done, the round ends, and so does the work of
its participants; questions that are still unanswered are left for the next round.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf

import anyio
import polars as pl

from pipeline.executors.asking import caps_of
from pipeline.executors.joining import SharedAccess
from pipeline.executors.results import Caps
from pipeline.frames import ANSWERS, Answer
from pipeline.runs.request import Phase, RunObserver
from pipeline.stages.ask import ask
from pipeline.stages.ask.values import AskingContext
from pipeline.stages.ask.worker import LOOK_INTERVAL_S
from pipeline.stores.shared import SharedRun
from pipeline.stores.values import ChunkLease, PlannedChunk, QuestionChunk, RoundState
from schemas.outcomes import ApiName

CHUNK_SIZE = 100


class SharedPart:
    """The part of a shared source that this process claims: all it can get, up to a limit."""

    is_shared = True

    def __init__(self, source: SharedRun, limit: int | None = None) -> None:
        self._source = source
        self._left = inf if limit is None else limit
        self._cut: set[ChunkLease] = set()
        self.claim_count = 0

    @property
    def is_used_up(self) -> bool:
        """True if this process has reached its limit."""
        return self._left <= 0

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Claim a chunk, or the part of one that this process may still ask."""
        if self.is_used_up or (chunk := await self._source.claim(api)) is None:
            return None
        self.claim_count += 1
        if len(chunk.questions) > self._left:
            chunk = chunk._replace(questions=chunk.questions[: int(self._left)])
            self._cut.add(chunk.hold)
        self._left -= len(chunk.questions)
        return chunk

    async def has_free(self, api: ApiName) -> bool:
        """True if this process can claim a chunk."""
        return not self.is_used_up and await self._source.has_free(api)

    async def done(self, hold: ChunkLease) -> None:
        """Leave a partly asked chunk to other processes."""
        if hold not in self._cut:
            await self._source.done(hold)

    def holds(self, hold: ChunkLease) -> bool:
        """True if this process still holds the chunk, as far as it knows."""
        return self._source.holds(hold)

    def may_send(self, hold: ChunkLease) -> bool:
        """True if the chunk's lease has not ended, as far as this process knows."""
        return self._source.may_send(hold)

    async def give_back(self, api: ApiName | None = None) -> None:
        """Return unfinished chunks to other processes."""
        await self._source.give_back(api)


@dataclass(slots=True)
class RoundAsker:
    """Asks one process's part of a shared run."""

    run: SharedRun
    access: SharedAccess
    apis: Collection[ApiName]  # the APIs that have questions
    world: AskingContext
    watch: RunObserver
    limit: int | None = None  # how many questions this process may take
    wait_max_s: float = inf  # how long to wait for a share of a server
    has_answered: Collection[ApiName] = ()  # APIs that have already answered a question of this run
    caps: Caps = field(default_factory=dict)  # daily caps of the servers that were asked
    round_number: int | None = None  # the round that this process took part in
    is_used_up: bool = False  # True if it has taken as many questions as it may

    async def ask(self, round_number: int) -> None:
        """Take part in an open round until it ends, or until this process can do no more.

        Raises:
            PrecheckError: see `ask`; also if the ledger's database is unavailable for too long.
        """
        self.round_number = round_number
        part = SharedPart(self.run, self.limit)
        while not (self.world.stop.is_set() or self.world.tally.closures or self.is_used_up):
            state = await self.run.latest_round()
            if not state.is_open or state.number != round_number:
                return
            self._show(state)
            if state.undone_count == 0:
                await self.run.end_round(round_number)
            elif state.free_count == 0 or not await self.ask_what_is_free(part):
                if self.access.kept is not None:  # the channels may hold a share that other processes can use
                    await self.access.kept.close_channels()
                await pause(self.world)

    async def ask_what_is_free(self, part: SharedPart) -> bool:
        """Ask until no chunk can be claimed; return True if there was one."""
        before = part.claim_count
        self.watch.enter(Phase.CONNECTING)
        try:
            # While this process waits for others, it takes no share, so that they can use all of it.
            async with self.access.channels(
                self.apis, self.world, self.watch, wait_max_s=self.wait_max_s
            ) as channels:
                self.watch.enter(Phase.ASKING)
                await ask(
                    part,
                    channels,
                    self.run,
                    self.world,
                    has_answered=self.has_answered,
                    answers=NoAnswers(),
                )
                self.caps |= await caps_of(self.access.profile.servers, channels)
        finally:
            self.world.tally.is_asking = (
                False  # no request can be in flight before the channels are open again
            )
        self.is_used_up = part.is_used_up
        return part.claim_count > before

    def _show(self, state: RoundState) -> None:
        """Count the answers of other processes, as closely as the chunks show them."""
        tally = self.world.tally
        tally.done_count = max(tally.done_count, tally.check_count - state.undone_count * CHUNK_SIZE)


async def pause(world: AskingContext) -> None:
    """Wait for other processes, or for a stop request."""
    with anyio.move_on_after(LOOK_INTERVAL_S):
        await world.stop.wait()


async def round_to_ask(run: SharedRun, chunks: Sequence[PlannedChunk]) -> int | None:
    """Return the open round, or begin one with these chunks in order; None if no question is left."""
    while True:
        state = await run.latest_round()
        if state.is_open and (state.undone_count or not await run.end_round(state.number)):
            return state.number
        if not chunks:
            return None
        if await run.open_round(chunks, after=state.number):
            return state.number + 1


class NoAnswers:
    """An answer sink that keeps nothing, because the shared ledger has the answers."""

    def add(self, answer: Answer) -> None:
        """Do nothing."""

    def frame(self) -> pl.DataFrame:
        """Return an empty frame."""
        return pl.DataFrame(schema=ANSWERS)
