"""What processes share in the simulated world: the division of the account, and the chunks of a run.

They are what a store on another machine keeps: they outlive every process, and a call to them takes its time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter

from simulation.books import Book, LedgerOfProcess, called
from simulation.weather import Weather
from simulation.world import Process, World

from pipeline.errors import LeaseLostError
from pipeline.frames import Check
from pipeline.stores.leased_shares import LeasedShare, Renew, Waiting, leased_shares
from pipeline.stores.sharing import Division, SharePart, ShareRenewal, ShareWish, joining, renewed
from pipeline.stores.values import (
    ABOUT_THE_QUESTION,
    ChunkLease,
    LeaseHolder,
    Question,
    QuestionChunk,
    RoundState,
    ServerAccount,
)
from schemas.outcomes import ApiName

CHUNK_SIZE = 10
CHUNK_LEASE_S = 10.0
RENEWED_EVERY_S = 1.0


@dataclass
class DividedAccount:
    """The provider's account, divided among the processes that ask."""

    world: World
    account: ServerAccount
    division: Division = field(default_factory=Division)
    joined_count: int = 0

    def share(self, process: Process) -> LeasedShare:
        """A share that a process has nothing of yet."""
        server = self.account.scope.partition("|")[0]

        def new_holder() -> Renew:
            self.joined_count += 1
            who = LeaseHolder(server, len(process.name))
            me = joining(f"{process.name} {self.joined_count}", who, self.account)

            async def renew(wish: ShareWish) -> ShareRenewal:
                def divide() -> ShareRenewal:
                    self.division, renewal = renewed(self.division, self.account, wish, me, self.world.now_s)
                    return renewal

                return await called(process, divide, self.world.chance.uniform(0, 0.05))

            return renew

        return LeasedShare(self.account, new_holder, ticks=process.loop.time)


@asynccontextmanager
async def leased(
    accounts: Mapping[ApiName, DividedAccount], process: Process
) -> AsyncIterator[Mapping[ApiName, LeasedShare]]:
    """Hold a share of each account, as a process does."""
    async with leased_shares(
        [each.account for each in accounts.values()],
        lambda account: accounts[ApiName(account.api)].share(process),
        every_s=RENEWED_EVERY_S,
        waiting=Waiting(lambda _: None),
    ) as shares:
        yield {ApiName(name): share for name, share in shares.items()}


def parts_of(division: Division) -> dict[str, tuple[SharePart, SharePart]]:
    """Who has what of an account, or gave up what."""
    return {share.holder: (share.part, share.given_up) for share in division.shares}


@dataclass(slots=True)
class Chunk:
    """Questions that one process asks at a time."""

    checks: list[Check]
    api: ApiName
    fence: int = 0
    holder: str = ""
    lease_until: float = -1.0
    is_done: bool = False


@dataclass
class SharedQuestions:
    """The questions of a run that several processes ask."""

    world: World
    chunks: list[Chunk] = field(default_factory=list)
    """Of all rounds: those of the rounds that have ended are done."""
    round_number: int = 0
    """Of the latest."""
    is_open: bool = False
    """Whether it has not ended."""

    def open_round(self, checks: list[Check]) -> int:
        """Divide what is left into chunks, unless others are at it; the number of the round."""
        if all(chunk.is_done for chunk in self.chunks):
            self.round_number, self.is_open = self.round_number + 1, True
            for api in dict.fromkeys(check.api for check in checks):
                some = [check for check in checks if check.api is api]
                starts = range(0, len(some), CHUNK_SIZE)
                self.chunks += [Chunk(some[start : start + CHUNK_SIZE], api) for start in starts]
        return self.round_number

    def end_round(self, number: int, *, is_over: bool) -> None:
        """End a round of which all is done, or where it is over: nobody holds a chunk of it.

        What is undone is asked in the next one.
        """
        undone = [chunk for chunk in self.chunks if not chunk.is_done]
        if number == self.round_number and len(undone) == (self.free_count if is_over else 0):
            self.is_open = False
            for chunk in undone:
                chunk.is_done = True
                chunk.fence = self.fence_after(chunk)

    def fence_after(self, chunk: Chunk) -> int:
        """The time of now, in microseconds: no process was given the same, whatever is forgotten."""
        return max(chunk.fence + 1, int(self.world.now_s * 1e6))

    @property
    def undone_count(self) -> int:
        """Chunks that are still to be done, by whomever."""
        return sum(not chunk.is_done for chunk in self.chunks)

    @property
    def free_count(self) -> int:
        """Those of them that nobody holds."""
        now = self.world.now_s
        return sum(not chunk.is_done and chunk.lease_until <= now for chunk in self.chunks)

    def forgetting(self) -> Callable[[], None]:
        """What makes it forget all that happens to it from now on."""
        chunks, round_ = [replace(chunk) for chunk in self.chunks], (self.round_number, self.is_open)

        def forget() -> None:
            self.chunks, (self.round_number, self.is_open) = chunks, round_

        return forget

    def is_latest(self, hold: ChunkLease) -> bool:
        """Whether the chunk is still its holder's: not taken over, its round neither ended nor forgotten."""
        return hold.chunk < len(self.chunks) and self.chunks[hold.chunk].fence == hold.fence


class SharedRunOfProcess(LedgerOfProcess):
    """One process's view of a run that others ask, too: its ledger, and the source of its questions."""

    is_shared = True

    def __init__(self, shared: SharedQuestions, book: Book, process: Process, weather: Weather) -> None:
        super().__init__(book, process, weather)
        self._shared = shared
        self._held: dict[ChunkLease, float] = {}  # when the lease ends at the earliest, by our clock
        self._api_of: dict[ChunkLease, ApiName] = {}
        self._taken_over: set[int] = set()
        self._claims: dict[object, ApiName] = {}  # under way, or cancelled
        self._hold_of: dict[bytes, ChunkLease] = {}
        self._hold_of_attempt: dict[tuple[bytes, int], ChunkLease] = {}
        self.round_number: int | None = None
        """Of the round that it takes part in."""

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Take a chunk of an API that nobody holds."""
        self._claims[this := object()] = api

        def take() -> QuestionChunk | None:
            if this not in self._claims:
                return None  # cancelled before it reached the store
            for number, chunk in self._free(api):
                chunk.fence = self._shared.fence_after(chunk)
                chunk.holder = self._process.name
                chunk.lease_until = self._world.now_s + CHUNK_LEASE_S
                return QuestionChunk(ChunkLease(number, chunk.fence), self._questions(chunk))
            return None

        until = self._process.loop.time() + CHUNK_LEASE_S
        taken = await called(self._process, take, self._takes_s())
        self._claims.pop(this, None)
        if taken is not None:
            self._held[taken.hold], self._api_of[taken.hold] = until, api
            for question in taken.questions:
                if (earlier := self._hold_of.get(question.key, taken.hold)) != taken.hold:
                    self._lose(earlier)  # a question is in one chunk at a time: the store forgot that one
                self._hold_of[question.key] = taken.hold
        return taken

    async def has_free(self, api: ApiName) -> bool:
        """Whether there is one to take."""
        return await called(self._process, lambda: any(self._free(api)), self._takes_s())

    def _free(self, api: ApiName) -> Iterator[tuple[int, Chunk]]:
        """The chunks of an API that this process may take, with their numbers."""
        mine = {hold.chunk for hold in self._held}
        for number, chunk in enumerate(self._shared.chunks):
            if chunk.api is not api or number in mine or number in self._taken_over:
                continue  # questions of it may still be under way here
            is_ours = chunk.holder == self._process.name  # by a claim whose reply was lost
            if not chunk.is_done and (is_ours or chunk.lease_until <= self._world.now_s):
                yield number, chunk

    def _questions(self, chunk: Chunk) -> list[Question]:
        found = []
        for check in chunk.checks:
            key = self.question_key(check)
            known = self._book.look_up(key)
            if known.answer is None:
                found.append(
                    Question(check, key, known.attempts, is_suspect=known.code in ABOUT_THE_QUESTION)
                )
        return sorted(found, key=attrgetter("attempts", "is_suspect"))

    def holds(self, hold: ChunkLease) -> bool:
        """Whether the chunk is still ours, as far as this process knows."""
        return hold in self._held

    def may_send(self, hold: ChunkLease) -> bool:
        """Whether its lease cannot have ended."""
        return self._process.loop.time() < self._held.get(hold, -1.0)

    async def keep(self) -> None:
        """Renew the leases of the chunks that are held, for ever."""
        while True:
            await asyncio.sleep(CHUNK_LEASE_S / 3)

            def renew() -> list[ChunkLease]:
                lost = [hold for hold in self._held if not self._shared.is_latest(hold)]
                for hold in self._held:
                    if hold not in lost:
                        self._shared.chunks[hold.chunk].lease_until = self._world.now_s + CHUNK_LEASE_S
                return lost

            held, until = list(self._held), self._process.loop.time() + CHUNK_LEASE_S
            lost = await called(self._process, renew, self._takes_s())
            for hold in lost:
                self._lose(hold)
            self._held |= {hold: until for hold in held if hold in self._held}

    def _lose(self, hold: ChunkLease) -> None:
        """Another process has the chunk now."""
        if hold in self._held:
            del self._held[hold]
            self._taken_over.add(hold.chunk)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Accept writes until the block ends, and with it all that is under way."""
        yield
        self._taken_over.clear()

    async def latest_round(self) -> RoundState:
        """How far the latest round has come."""
        shared = self._shared

        def state() -> RoundState:
            return RoundState(shared.round_number, shared.is_open, shared.undone_count, shared.free_count)

        return await called(self._process, state, self._takes_s())

    async def end_round(self, number: int, *, is_over: bool = False) -> None:
        """End a round; where it is over also one with undone chunks that nobody holds: for who leaves."""
        await called(self._process, lambda: self._shared.end_round(number, is_over=is_over), self._takes_s())

    async def done(self, hold: ChunkLease) -> None:
        """All of it is asked."""
        self._held.pop(hold, None)

        def end() -> None:
            if self._shared.is_latest(hold):
                self._shared.chunks[hold.chunk].is_done = True

        await called(self._process, end, self._takes_s())

    async def give_back(self, api: ApiName | None = None) -> None:
        """Leave the rest, of one API or all, to others."""
        self._taken_over -= {hold.chunk for hold, of in self._api_of.items() if of is api}
        for hold in [hold for hold in self._held if api in {None, self._api_of[hold]}]:
            del self._held[hold]
        for claim in [claim for claim, of in self._claims.items() if api in {None, of}]:
            del self._claims[claim]

        def leave() -> None:
            for chunk in self._mine():
                if api in {None, chunk.api}:
                    chunk.holder, chunk.lease_until = "", -1.0

        await called(self._process, leave, self._takes_s())

    @property
    def undone_count(self) -> int:
        """How many chunks it holds that are not done, as the store has it."""
        return sum(1 for _ in self._mine())

    def _mine(self) -> Iterator[Chunk]:
        return (
            each for each in self._shared.chunks if each.holder == self._process.name and not each.is_done
        )

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record that a request is about to leave."""
        hold = self._hold_of[question]
        await super().intend(question, attempt=attempt, request_id=request_id, time=time)
        self._hold_of_attempt[question, attempt] = hold

    def hold_of(self, question: bytes, attempt: int) -> ChunkLease:
        """The lease of the chunk that a question came in, as it was when the request left."""
        return self._hold_of_attempt.get((question, attempt), self._hold_of[question])

    def _require(self, question: bytes, attempt: int) -> None:
        """Nothing is written under an older fence."""
        hold = self.hold_of(question, attempt)
        if not self._shared.is_latest(hold):
            self._lose(hold)
            raise LeaseLostError
