"""Stores in the memory of one process: they last as long as the object.

They are the model that the others are compared with: as short as the protocols allow.
"""

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Self

import anyio

from pipeline.errors import CapSpentError, LeaseLostError
from pipeline.frames import Answer, AnswerState, Check
from pipeline.stores.leased_shares import LeasedShare, Renew, Waiting, leased_shares
from pipeline.stores.protocols import Share
from pipeline.stores.sharing import Division, ShareRenewal, ShareWish, joining, renewed
from pipeline.stores.values import (
    ABOUT_THE_QUESTION,
    ChunkLease,
    FinalAnswer,
    FinishRecord,
    FruitlessQuestion,
    LeaseHolder,
    LedgerCounts,
    Question,
    QuestionChunk,
    QuestionHistory,
    ReusedAnswer,
    RunIdentity,
    ServerAccount,
)
from schemas.outcomes import ApiName

_FINAL = frozenset({AnswerState.ANSWERED, AnswerState.REFUSED})


@dataclass(slots=True)
class _RecordedRequest:
    """One request, and how it ended."""

    question: bytes
    attempt: int
    request_id: str
    failure: tuple[str, int] | None = None
    """Its code, and how many runs had ended before."""


class MemoryLedger:
    """The record of one run."""

    def __init__(self, run: RunIdentity, created_at: str) -> None:
        self.run = run
        self.created_at = created_at
        self.payee_key = sha256(repr(run).encode()).digest()
        self._lines: list[_RecordedRequest] = []
        self._latest: dict[bytes, _RecordedRequest] = {}
        self._answers: dict[bytes, FinalAnswer] = {}
        self._finishes: list[FinishRecord] = []
        self.is_writing = False

    def after_a_crash(self) -> Self:
        """What a crash would leave behind now."""
        left = deepcopy(self)
        left.is_writing = False
        return left

    @property
    def counts(self) -> LedgerCounts:
        """How many requests and answers it holds."""
        reused = sum(answer.state is AnswerState.REUSED for answer in self._answers.values())
        return LedgerCounts(len(self._lines), len(self._answers) - reused, reused)

    @property
    def last_finish(self) -> FinishRecord | None:
        """The latest outcome file on record."""
        return self._finishes[-1] if self._finishes else None

    @property
    def finished_at(self) -> str | None:
        """When the run was finished."""
        last = self.last_finish
        return last.time if last is not None and last.unanswered_count == 0 else None

    def question_key(self, check: Check) -> bytes:
        """The key of a question."""
        return sha256(json.dumps(check[1:]).encode()).digest()

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer; those of earlier runs come last."""
        assert not self.is_writing
        return iter(sorted(self._answers.values(), key=lambda answer: answer.state is AnswerState.REUSED))

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, QuestionHistory]:
        """The history of these questions."""
        assert not self.is_writing
        return {question: self.look_up(question) for question in questions if self._has(question)}

    async def fruitless(self) -> Mapping[bytes, FruitlessQuestion]:
        """The open questions that runs got no answer to."""
        assert not self.is_writing
        last_codes: dict[bytes, dict[int, tuple[str, int]]] = {}
        for line in self._lines:
            if line.failure is not None and line.question not in self._answers:
                code, run = line.failure
                last_codes.setdefault(line.question, {})[run] = code, line.attempt
        found = {}
        for question, by_run in last_codes.items():
            about_it = [last for last in by_run.values() if last[0] in ABOUT_THE_QUESTION]
            if about_it:
                found[question] = FruitlessQuestion(len(about_it), *about_it[-1])
        return found

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Accept writes until the block ends."""
        assert not self.is_writing
        self.is_writing = True
        try:
            yield
        finally:
            self.is_writing = False

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:  # noqa: ARG002
        """Record that a request is about to leave."""
        assert self.is_writing
        assert question not in self._answers
        assert attempt == self._attempts(question) + 1
        self._latest[question] = _RecordedRequest(question, attempt, request_id)
        self._lines.append(self._latest[question])
        await asyncio.sleep(0)

    async def fail(
        self,
        question: bytes,
        *,
        attempt: int,
        code: str,
        time: str,  # noqa: ARG002
        detail: str = "",  # noqa: ARG002
    ) -> None:
        """Record that an attempt gave nothing usable."""
        self._require_latest(question, attempt)
        self._latest[question].failure = code, len(self._finishes)
        await asyncio.sleep(0)

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:  # noqa: ARG002
        """Record the final answer."""
        assert answer.state in _FINAL
        self._require_latest(question, answer.attempts)
        self._answers[question] = FinalAnswer(question, *answer[1:])
        await asyncio.sleep(0)

    def reuse(self, answers: Collection[ReusedAnswer]) -> None:
        """Record answers of an earlier run."""
        for used in answers:
            self._answers[used.question] = FinalAnswer(
                used.question,
                AnswerState.REUSED,
                used.code,
                None,
                used.request_id,
                used.time,
                self._attempts(used.question),
            )

    def allow(self, reason: str, *, time: str) -> None:  # noqa: ARG002
        """Record why this run may ask in spite of a warning that would have stopped it."""
        assert reason

    def finish(
        self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str
    ) -> FinishRecord:
        """Record that the outcome file is in place."""
        assert len(self._answers) >= question_count - unanswered_count
        self._finishes.append(FinishRecord(time, question_count, unanswered_count, outcome_sha256))
        return self._finishes[-1]

    def _has(self, question: bytes) -> bool:
        return question in self._latest or question in self._answers

    def look_up(self, question: bytes) -> QuestionHistory:
        """The history of a question now."""
        answer, line = self._answers.get(question), self._latest.get(question)
        if line is None:
            return QuestionHistory(answer, 0, None)
        return QuestionHistory(answer, line.attempt, None if line.failure is None else line.failure[0])

    def _attempts(self, question: bytes) -> int:
        return self._latest[question].attempt if question in self._latest else 0

    def _require_latest(self, question: bytes, attempt: int) -> None:
        assert self.is_writing
        assert question not in self._answers
        assert attempt == self._attempts(question) > 0


class MemoryQuestions:
    """The questions of one run, shared by all sources."""

    def __init__(self, checks: Sequence[Check], ledger: MemoryLedger, *, chunk_size: int = 10) -> None:
        self.ledger = ledger
        by_api: dict[ApiName, list[Check]] = {}
        for check in checks:
            by_api.setdefault(check.api, []).append(check)
        parts = [
            (api, some[start : start + chunk_size])
            for api, some in by_api.items()
            for start in range(0, len(some), chunk_size)
        ]
        self.chunks = dict(enumerate(parts))
        self.fences: Counter[int] = Counter()
        self.free = deque(self.chunks)

    def is_latest(self, hold: ChunkLease) -> bool:
        """Whether no other process has taken the chunk over."""
        return self.fences[hold.chunk] == hold.fence


@dataclass
class MemorySource:
    """The questions for one process."""

    is_shared = True

    _all: MemoryQuestions
    _held: set[ChunkLease] = field(default_factory=set)

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Lease a free chunk, without its answered questions."""
        for number in self._all.free:
            if self._all.chunks[number][0] == api:
                break
        else:
            return None
        self._all.free.remove(number)
        self._all.fences[number] += 1
        hold = ChunkLease(number, self._all.fences[number])
        self._held.add(hold)
        return QuestionChunk(hold, list(self._questions(number)))

    async def has_free(self, api: ApiName) -> bool:
        """Whether a chunk is free."""
        return any(self._all.chunks[number][0] == api for number in self._all.free)

    async def done(self, hold: ChunkLease) -> None:
        """Forget the lease; the chunk is not free again."""
        self._held.remove(hold)

    def holds(self, hold: ChunkLease) -> bool:
        """Whether no other process has taken the chunk over."""
        return self._all.is_latest(hold)

    def may_send(self, hold: ChunkLease) -> bool:
        """The same: no lease here ends by itself."""
        return self.holds(hold)

    async def give_back(self, api: ApiName | None = None) -> None:
        """Make the chunks free again that no other process has taken over."""
        given = {hold for hold in self._held if api in {None, self._all.chunks[hold.chunk][0]}}
        self._held -= given
        free = {hold.chunk for hold in given if self._all.is_latest(hold)} - set(self._all.free)
        self._all.free.extendleft(sorted(free, reverse=True))
        await anyio.lowlevel.checkpoint()

    def expire(self) -> None:
        """Let others take its chunks over, as after a silence of more than a lease; it is not notified."""
        self._all.free.extendleft(sorted((hold.chunk for hold in self._held), reverse=True))

    def _questions(self, number: int) -> Iterator[Question]:
        ledger = self._all.ledger
        for check in self._all.chunks[number][1]:
            key = ledger.question_key(check)
            known = ledger.look_up(key)
            if known.answer is None:
                yield Question(check, key, known.attempts, is_suspect=False)


class MemorySharedRun(MemorySource):
    """One process's view of a run that others work on too: its source, and a ledger that minds its leases."""

    def __init__(self, questions: MemoryQuestions, quota: "MemoryQuota | None" = None) -> None:
        """Hold no chunk yet.

        Args:
            questions: of the run.
            quota: what each intent takes a unit of; None where there is no cap.
        """
        super().__init__(questions)
        self._quota = quota
        self._hold_of: dict[bytes, ChunkLease] = {}
        self._hold_of_attempt: dict[tuple[bytes, int], ChunkLease] = {}

    @property
    def counts(self) -> LedgerCounts:
        """How many requests and answers the run has."""
        return self._all.ledger.counts

    def question_key(self, check: Check) -> bytes:
        """The key of a question."""
        return self._all.ledger.question_key(check)

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, QuestionHistory]:
        """The history of these questions."""
        return await self._all.ledger.known(questions)

    async def fruitless(self) -> Mapping[bytes, FruitlessQuestion]:
        """The open questions that runs got no answer to."""
        return await self._all.ledger.fruitless()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Accept writes until the block ends, from this process as from others."""
        self._all.ledger.is_writing = True
        yield

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Lease a free chunk, and remember which questions came in it."""
        chunk = await super().claim(api)
        if chunk is not None:
            self._hold_of |= {question.key: chunk.hold for question in chunk.questions}
        return chunk

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record that a request is about to leave."""
        self._require(self._hold_of[question])
        if self._quota is not None and not await self._quota.reserve():
            raise CapSpentError
        await self._all.ledger.intend(question, attempt=attempt, request_id=request_id, time=time)
        self._hold_of_attempt[question, attempt] = self._hold_of[question]

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt gave nothing usable."""
        self._require(self._hold_of_attempt[question, attempt])
        await self._all.ledger.fail(question, attempt=attempt, code=code, time=time, detail=detail)

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer."""
        self._require(self._hold_of_attempt[question, answer.attempts])
        await self._all.ledger.settle(question, answer, detail)

    def _require(self, hold: ChunkLease) -> None:
        if not self._all.is_latest(hold):
            raise LeaseLostError


@dataclass(slots=True)
class MemoryQuota:
    """The cap of one server for one client, shared by all holders of this object."""

    cap: int
    clock: Callable[[], datetime]
    used_count: int = 0
    is_closed: bool = False

    async def reserve(self) -> bool:
        """Take one unit."""
        await asyncio.sleep(0)
        if self.is_closed or self.used_count >= self.cap:
            return False
        self.used_count += 1
        return True

    async def resets_at(self) -> datetime:
        """The next midnight of its clock."""
        return self.clock().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)

    async def close_for_today(self) -> None:
        """Nothing is left."""
        self.is_closed = True

    async def go_by(self, server_now: datetime) -> None:
        """Nothing of one process is of another day."""


class MemoryShares:
    """Accounts that the tasks of one process divide among themselves, each as a process of its own."""

    def __init__(self, ticks: Callable[[], float]) -> None:
        self._ticks = ticks
        self._divisions: dict[ServerAccount, Division] = {}
        self._count = 0

    @asynccontextmanager
    async def lease(self, accounts: Collection[ServerAccount]) -> AsyncIterator[Mapping[str, Share]]:
        """Have a share of each account until the block ends."""

        def new_share(account: ServerAccount) -> LeasedShare:
            return LeasedShare(account, partial(self._new_holder, account), ticks=self._ticks)

        async with leased_shares(accounts, new_share, every_s=0.1, waiting=Waiting(print)) as shares:
            yield shares

    def _new_holder(self, account: ServerAccount) -> Renew:
        self._count += 1
        me = joining(str(self._count), LeaseHolder(account.scope, self._count), account)

        async def renew(wish: ShareWish) -> ShareRenewal:
            await anyio.lowlevel.checkpoint()
            before = self._divisions.get(account, Division())
            self._divisions[account], renewal = renewed(before, account, wish, me, self._ticks())
            return renewal

        return renew
