"""The protocols of the stores, whatever is behind them: a file, or a database that machines share.

Each protocol is one concern, and small. What every store must keep is in tests/contract/stores.
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
    """The record of one run as asking needs it: which questions may have been sent, and what came back.

    A question has at most one answer, for ever. Its attempts are counted from 1, over all processes and all
    kills. What a write was given is durable when the write returns.
    """

    @property
    def counts(self) -> LedgerCounts:
        """How many requests and answers it holds."""

    def question_key(self, check: Check) -> bytes:
        """The key of a question in the ledger: 32 bytes, the same for the same question in this run."""

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, QuestionHistory]:
        """The history of these questions; one without a history is left out. Not while `writing()`."""

    async def fruitless(self) -> Mapping[bytes, FruitlessQuestion]:
        """The open questions that earlier runs, and this one, got no answer to. Not while `writing()`."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Accept writes until the block ends; the last of them is durable when it has ended."""

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record that a request is about to leave. It may leave once this has returned.

        The attempt is one more than the question had. Times are UTC, ISO 8601 with Z, here and below.

        Raises:
            DiskError: this or an earlier write is not durable; nothing more is accepted.
            LeaseLostError: the question is another process's now.
            CapSpentError: the cap is counted where the intent is written, and it is used up.
        """

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt gave nothing usable, with the detail of the problem; raises as `intend`."""

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer, to the latest attempt. Once: again is a mistake. Raises as `intend`."""


class RunLedger(Ledger, Protocol):
    """The record of one run as the job needs it that carries the run out."""

    @property
    def run(self) -> RunIdentity:
        """The run that it records."""

    @property
    def created_at(self) -> str:
        """When the run began."""

    @property
    def payee_key(self) -> bytes:
        """The key of this run's hashes of payees and accounts."""

    @property
    def last_finish(self) -> FinishRecord | None:
        """The latest outcome file on record, or None."""

    @property
    def finished_at(self) -> str | None:
        """When the run was finished, or None if a question still lacks its final answer."""

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer, those recorded by `reuse` last. Not while `writing()`."""

    def reuse(self, answers: Collection[ReusedAnswer]) -> None:
        """Record that these questions are not asked, as an earlier run had their answers: all or none."""

    def allow(self, reason: str, *, time: str) -> None:
        """Record why this run may ask in spite of a warning that would have stopped it."""

    @property
    def language(self) -> str | None:
        """The language of the page and the workbook, by its code; None if the run has just begun."""

    def speak(self, language: str, *, time: str) -> None:
        """Record the language of the page and the workbook."""

    def finish(
        self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str
    ) -> FinishRecord:
        """Record that the outcome file is in place; again after each resumption."""


class QuestionSource(Protocol):
    """The questions for this process to ask; each is leased to one process at a time."""

    @property
    def is_shared(self) -> bool:
        """True if other processes may ask what this one leaves."""

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Lease a chunk of questions for one API; None if none is free. It waits for no other process."""

    async def has_free(self, api: ApiName) -> bool:
        """True if there is something to claim again, as other processes have given it back."""

    async def done(self, hold: ChunkLease) -> None:
        """Every question of the chunk is done in this run."""

    def holds(self, hold: ChunkLease) -> bool:
        """True if the chunk is still this process's, as far as it knows. Only a write decides."""

    def may_send(self, hold: ChunkLease) -> bool:
        """True if the chunk's lease has not ended; after a long sleep another process may have it."""

    async def give_back(self, api: ApiName | None = None) -> None:
        """Release every chunk that is not done, of one API or all. The next holder looks up its history.

        Of one API, only once nothing of it is in flight here.
        """


class CapCount(Protocol):
    """Daily cap of one client over all processes; `Quota.reserve` or `Ledger.intend` takes its units."""

    async def resets_at(self) -> datetime:
        """When there is more to take."""

    async def close_for_today(self) -> None:
        """Take the server's word that nothing is left."""

    async def go_by(self, server_now: datetime) -> None:
        """Count by the server's clock from now on, where ours is wrong."""


@runtime_checkable
class Quota(CapCount, Protocol):
    """A daily cap that is counted apart from the ledger."""

    async def reserve(self) -> bool:
        """Take one unit, durably, for one request about to be sent; False if there is none.

        Raises:
            DiskError, IncompleteError: it is not known that a unit was taken; send nothing.
        """


class Share(Protocol):
    """A leased part of an account. The shares of all processes never add up to more than the account."""

    def follow(self, use: Callable[[ShareLimits], None], in_flight: Callable[[], int]) -> None:
        """Keep these limits from now on, also when they change; requests in flight keep their slots."""

    def pause(self, wait_s: float) -> None:
        """Have all processes send nothing for so long, as the server asks for it; they follow soon."""

    def leave(self) -> None:
        """Leave it to other processes, as there is nothing more to ask here; they have it soon."""

    async def rejoin(self) -> bool:
        """Have a share again, after `leave`, without waiting for another process to leave.

        False if one would have to; there is no share then, and it may be tried again.

        Raises:
            PrecheckError: as the lease.
        """


class Shares(Protocol):
    """Divides accounts among concurrent processes."""

    def lease(self, accounts: Collection[ServerAccount]) -> AbstractAsyncContextManager[Mapping[str, Share]]:
        """Have a share of each account until the block ends, by the name of its API.

        Raises:
            IncompleteError: none became free in time; nothing was sent.
        """
