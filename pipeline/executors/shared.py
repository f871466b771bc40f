"""Ask questions of a run together with other processes, in rounds.

A process joins an open round, or begins one with all unanswered questions in chunks. The round ends when all
chunks are done; questions without an answer are left for the next round.
"""

import os
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from math import inf
from socket import gethostname
from typing import NamedTuple
from uuid import UUID, uuid4

import anyio
import polars as pl
from pydantic import SecretStr

from pipeline.config import Profile
from pipeline.connections import account_of, open_channels, scope_for
from pipeline.executors.asking import Caps, caps_of
from pipeline.executors.kept_open import KeptOpen, Opening
from pipeline.frames import ANSWERS, Answer
from pipeline.runs.request import Clock, Phase, RunObserver
from pipeline.stages.ask import ask
from pipeline.stages.ask.values import ApiChannel, AskingContext
from pipeline.stages.ask.worker import LOOK_INTERVAL_S
from pipeline.stores import protocols
from pipeline.stores.kinds import kind_of
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.values import ChunkLease, PlannedChunk, QuestionChunk, RoundState, RunIdentity
from schemas.outcomes import ApiName


class SharedAccess(NamedTuple):
    """A shared ledger, and access to servers within the limits shared by all its processes."""

    store: protocols.SharedStore
    profile: Profile
    kept: KeptOpen | None = None  # resources that stay open for the next file

    def shared_run(self, run: protocols.StoredRun, questions: protocols.QuestionParts) -> protocols.SharedRun:
        """Open a run for this process, counting its requests towards the caps; the caller closes it."""
        return self.store.shared_run(run, questions, caps=self._caps)

    @asynccontextmanager
    async def channels(
        self, apis: Collection[ApiName], world: AskingContext, watch: RunObserver, *, wait_max_s: float = inf
    ) -> AsyncIterator[Mapping[ApiName, ApiChannel]]:
        """Open channels to these APIs, each with a share; errors: `LeasedShares.lease`, `open_channels`."""
        shares = self.store.shares(LeaseTerms(world.now, world.clock, watch.wait, wait_max_s))
        quotas = {ApiName(api): self.store.cap(cap) for api, cap in self._caps.items()}
        opening: Opening = open_channels(self.profile, apis, now=world.now, shares=shares, quotas=quotas)
        if self.kept is not None:
            servers = [server for server in self.profile.servers if server.name in apis]
            opening = self.kept.channels(servers, opening, world.tally)
        async with opening as channels:
            yield channels

    def require_same_limits(self, apis: Collection[ApiName], clock: Clock) -> None:
        """See `SharedStore.require_same_limits`."""
        accounts = [account_of(server) for server in self.profile.servers if server.name in apis]
        self.store.require_same_limits(accounts, now=clock())

    async def spent_cap(self, api: ApiName) -> tuple[int, datetime] | None:
        """Return an API's daily cap, and when it resets, if it is used up; otherwise None."""
        if (cap := self._caps.get(api)) is None:
            return None
        quota = self.store.cap(cap)
        return (cap.cap, await quota.resets_at()) if await quota.is_spent() else None

    @property
    def _caps(self) -> dict[str, protocols.AccountCap]:
        return {
            server.name.value: protocols.AccountCap(scope_for(server), server.cap, server.cap_window)
            for server in self.profile.servers
            if server.cap is not None
        }


def open_store(url: str, secret: SecretStr, clock: Clock) -> AbstractContextManager[protocols.SharedStore]:
    """Open a shared ledger for this process (ConfigurationError, IncompleteError: see `opened_store`)."""
    process = protocols.AskingProcess(uuid4(), gethostname(), os.getpid(), version("payee-precheck"))
    return kind_of(url).opened_store(url, secret, process, protocols.StoreClocks(clock, time.monotonic))


def join(
    store: protocols.SharedStore,
    identity: RunIdentity,
    questions: Iterable[pl.DataFrame],
    run_id: UUID | None,
) -> protocols.StoredRun:
    """Join the run of a file, like `SharedStore.join`; `questions` are each part's `Checks` by number."""
    return store.join(identity, store.plan_of(questions), new_id=uuid4(), run_id=run_id)


CHUNK_SIZE = 100


class SharedPart:
    """The part of a shared source that this process claims: all it can get, up to a limit."""

    is_shared = True

    def __init__(self, source: protocols.SharedRun, limit: int | None = None) -> None:
        self._source = source
        self.holds, self.may_send, self.give_back = source.holds, source.may_send, source.give_back
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


@dataclass(slots=True)
class RoundAsker:
    """Asks one process's part of a shared run."""

    run: protocols.SharedRun
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
        """Take part in an open round until it ends, or this process can do no more; errors as in `ask`."""
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
                    part, channels, self.run, self.world, has_answered=self.has_answered, answers=NoAnswers()
                )
                self.caps |= await caps_of(self.access.profile.servers, channels)
        finally:
            self.world.tally.is_asking = False  # no request is in flight until the channels open again
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


async def round_to_ask(run: protocols.SharedRun, chunks: Sequence[PlannedChunk]) -> int | None:
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
