"""The protocols of the stores, for files and for databases that machines share.

Each protocol is small and covers one concern. tests/contract/stores has the rules for every store.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol, runtime_checkable

from pipeline.frames import Answer, Check
from pipeline.stores.values import (
    ChunkLease,
    FinalAnswer,
    FinishRecord,
    FruitlessQuestion,
    LedgerCounts,
    QuestionChunk,
    QuestionHistory,
    ReusedAnswer,
    RunIdentity,
    ServerAccount,
    ShareLimits,
)
from schemas.outcomes import ApiName


class Ledger(Protocol):
    """The record of one run for asking: which questions may have been sent, and their replies.

    A question has at most one answer, for ever. Its attempts count from 1, over all processes and kills. A
    write is durable when it returns.
    """

    @property
    def counts(self) -> LedgerCounts:
        """The number of requests and answers in it."""

    def question_key(self, check: Check) -> bytes:
        """The key of a question in the ledger: 32 bytes, equal for equal questions in this run."""

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, QuestionHistory]:
        """The history of these questions; one without a history is left out. Not while `writing()`."""

    async def fruitless(self) -> Mapping[bytes, FruitlessQuestion]:
        """The open questions that earlier runs, and this one, got no answer to. Not while `writing()`."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Accept writes until the block ends; the last of them is durable when it has ended."""

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record the intent of a request, which may be sent once this has returned.

        `attempt` is one more than the question had. Times are UTC, ISO 8601 with Z, here and below.

        Raises:
            DiskError: this or an earlier write is not durable; no more are accepted.
            LeaseLostError: another process has the question now.
            CapSpentError: the cap, if counted with intents, is used up.
        """

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt had no usable result, with the detail of the problem; raises as `intend`."""

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer to the latest attempt, once: repeating it is a bug. Raises as `intend`."""


class RunLedger(Ledger, Protocol):
    """The record of one run for the job that carries it out."""

    @property
    def run(self) -> RunIdentity:
        """The run."""

    @property
    def created_at(self) -> str:
        """When the run began."""

    @property
    def payee_key(self) -> bytes:
        """The key that hashes this run's payees and accounts."""

    @property
    def last_finish(self) -> FinishRecord | None:
        """The latest recorded outcome file, or None."""

    @property
    def finished_at(self) -> str | None:
        """When the run was finished, or None if a question still lacks its final answer."""

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer, those recorded by `reuse` last. Not while `writing()`."""

    def reuse(self, answers: Collection[ReusedAnswer]) -> None:
        """Record answers of earlier runs to these questions: all or none."""

    def allow(self, reason: str, *, time: str) -> None:
        """Record why this run may ask in spite of a warning that stops runs."""

    @property
    def language(self) -> str | None:
        """The language of page and workbook, by its code; None if the run has just begun."""

    def speak(self, language: str, *, time: str) -> None:
        """Record the language of page and workbook."""

    def finish(
        self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str
    ) -> FinishRecord:
        """Record a written outcome file; again after each resumption."""


class QuestionSource(Protocol):
    """The questions for this process to ask; each is leased to one process at a time."""

    @property
    def is_shared(self) -> bool:
        """True if other processes may ask the questions that this one leaves."""

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Lease a chunk of questions for one API; None if none is free. It waits for no other process."""

    async def has_free(self, api: ApiName) -> bool:
        """True if other processes have released a chunk to claim."""

    async def done(self, hold: ChunkLease) -> None:
        """Record that every question of the chunk is done in this run."""

    def holds(self, hold: ChunkLease) -> bool:
        """True if the chunk is still this process's, as far as it knows. Only a write decides."""

    def may_send(self, hold: ChunkLease) -> bool:
        """True if the chunk's lease has not ended; after a long sleep another process may have it."""

    async def give_back(self, api: ApiName | None = None) -> None:
        """Release every unfinished chunk, of one API or all. The next holder reads its history.

        For one API, only when none of its requests is in flight here.
        """


class CapCount(Protocol):
    """Daily cap of one client over all processes; `Quota.reserve` or `Ledger.intend` takes its units."""

    async def resets_at(self) -> datetime:
        """When more units become available."""

    async def close_for_today(self) -> None:
        """Record that the server reports the cap as used up."""

    async def go_by(self, server_now: datetime) -> None:
        """Count by the server's clock from now on, as ours is wrong."""


@runtime_checkable
class Quota(CapCount, Protocol):
    """A daily cap that is counted separately from the ledger."""

    async def reserve(self) -> bool:
        """Take one unit, durably, for one request about to be sent; False if there is none.

        Raises:
            DiskError, IncompleteError: a unit may not have been taken; send nothing.
        """


class Share(Protocol):
    """A leased part of an account. The shares of all processes never exceed the account."""

    def follow(self, use: Callable[[ShareLimits], None], in_flight: Callable[[], int]) -> None:
        """Call `use` with the limits, now and with each change; requests in flight keep their slots."""

    def pause(self, wait_s: float) -> None:
        """Pause all processes for `wait_s`, as the server requests; they follow soon."""

    def leave(self) -> None:
        """Release the share, as there is nothing more to ask; other processes get it soon."""

    async def rejoin(self) -> bool:
        """Take a share again after `leave`, without waiting for another process to leave.

        False if one would have to; then there is no share, and the caller may retry.

        Raises:
            PrecheckError: as the lease.
        """


class Shares(Protocol):
    """Divides accounts among concurrent processes."""

    def lease(self, accounts: Collection[ServerAccount]) -> AbstractAsyncContextManager[Mapping[str, Share]]:
        """Hold a share of each account until the block ends, by the name of its API.

        Raises:
            IncompleteError: none became free in time; nothing was sent.
        """
