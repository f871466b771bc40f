"""The questions of one API, from chunks that are claimed before the last is done, to the next free worker."""

from collections.abc import Iterator
from typing import NamedTuple

import anyio

from pipeline.stores.protocols import QuestionSource
from pipeline.stores.values import ChunkLease, Question
from schemas.outcomes import ApiName

RENEWAL_MAX_S = 5.0  # longer than the time between two lease renewals of a running process
_POLL_INTERVAL_S = 0.1


class ClaimedQuestion(NamedTuple):
    """A question to ask now, and its chunk."""

    question: Question
    hold: ChunkLease


class QuestionFeed:
    """The queue that supplies the workers of one API with questions."""

    def __init__(self, source: QuestionSource, api: ApiName) -> None:
        self._source = source
        self._api = api
        self._here: Iterator[ClaimedQuestion] = iter(())
        self._open: dict[ChunkLease, int] = {}  # chunk -> number of its unfinished questions
        self._claiming = anyio.Lock(fast_acquire=True)
        self._is_over = False
        self._taken_count = 0

    @property
    def count(self) -> int | None:
        """The number of questions; None while more may come."""
        return self._taken_count if self._is_over else None

    @property
    def is_shared(self) -> bool:
        """True if other processes may ask the rest."""
        return self._source.is_shared

    async def take(self) -> ClaimedQuestion | None:
        """Return the next question, or None."""
        while True:
            for taken in self._here:
                if self.has(taken.hold):
                    self._taken_count += 1
                    return taken
            if self._is_over:
                return None
            await self._claim()

    async def has_more(self) -> bool:
        """True if other processes have released questions since the last one was taken."""
        return await self._source.has_free(self._api)

    def reopen(self) -> None:
        """Let the workers claim again."""
        self._is_over = False

    async def leave(self) -> None:
        """Release all remaining questions to other processes, because none is in progress here."""
        self._open.clear()
        await self._source.give_back(self._api)

    async def ended(self, hold: ChunkLease) -> None:
        """Record that a question of this chunk is done in this run."""
        if hold not in self._open:
            return  # another process has the chunk by now
        self._open[hold] -= 1
        if self._open[hold] == 0:
            del self._open[hold]
            await self._source.done(hold)

    def has(self, hold: ChunkLease) -> bool:
        """True if the questions of this chunk are still to be asked here."""
        return hold in self._open and self._source.holds(hold)

    def may_send(self, hold: ChunkLease) -> bool:
        """True if a request of this chunk may be sent now."""
        return hold in self._open and self._source.may_send(hold)

    async def renewed(self, hold: ChunkLease) -> bool:
        """Wait a limited time for a lapsed lease to be renewed; return true if the chunk is still ours."""
        if not self.may_send(hold):
            with anyio.move_on_after(RENEWAL_MAX_S):
                while self.has(hold) and not self.may_send(hold):  # noqa: ASYNC110 (a thread renews it)
                    await anyio.sleep(_POLL_INTERVAL_S)
        return self.has(hold)

    def lose(self, hold: ChunkLease) -> None:
        """Stop handing out the questions of a chunk that another process has now."""
        self._open.pop(hold, None)

    async def give_back(self) -> None:
        """Release unfinished questions to other processes."""
        if self._open:
            self._open.clear()
            await self._source.give_back(self._api)

    async def _claim(self) -> None:
        """Claim another chunk; one worker does this for all."""
        here = self._here
        async with self._claiming:
            if self._here is not here or self._is_over:
                return
            chunk = await self._source.claim(self._api)
            if chunk is None:
                self._is_over = True
            elif chunk.questions:
                self._open[chunk.hold] = len(chunk.questions)
                self._here = (ClaimedQuestion(question, chunk.hold) for question in chunk.questions)
            else:
                await self._source.done(chunk.hold)
