"""The protocols of stores, whether files or databases that machines share.

Each protocol is small and covers one concern. tests/contract/stores tests the rules for every store.
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
    """The record of one run, as needed for asking: which questions may have been sent, and the replies.

    A question never has more than one answer. Its attempts are numbered from 1, across all processes and
    kills. A write is durable when it returns.
    """

    @property
    def counts(self) -> LedgerCounts:
        """The number of requests and answers in the ledger."""

    def question_key(self, check: Check) -> bytes:
        """Return the key of a question: 32 bytes, equal for equal questions in this run."""

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, QuestionHistory]:
        """Return the history of these questions, without those that have none. Call outside `writing()`."""

    async def fruitless(self) -> Mapping[bytes, FruitlessQuestion]:
        """Return questions that no run, this one included, got an answer to. Call outside `writing()`."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Accept writes during the block; the last of them is durable when it has ended."""

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record the intent to send a request, which may be sent once this has returned.

        `attempt` is one more than the question's attempts so far. Times are UTC, ISO 8601 with Z, here and
        below.

        Raises:
            DiskError: this or an earlier write is not durable; no more writes are accepted.
            LeaseLostError: another process has the question now.
            CapSpentError: the cap is used up, if it is counted with intents.
        """

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt had no usable result, with details of the problem; errors as in `intend`."""

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer to the latest attempt; repeating this is a bug. Same errors as `intend`."""


class RunLedger(Ledger, Protocol):
    """The record of one run, as the job that carries it out needs it."""

    @property
    def run(self) -> RunIdentity:
        """The identity of the run."""

    @property
    def created_at(self) -> str:
        """When the run began."""

    @property
    def payee_key(self) -> bytes:
        """The key that this run hashes payees and accounts with."""

    @property
    def last_finish(self) -> FinishRecord | None:
        """The latest recorded outcome file, or None."""

    @property
    def finished_at(self) -> str | None:
        """When the run was finished, or None while any question lacks its final answer."""

    def answers(self) -> Iterator[FinalAnswer]:
        """Yield every final answer, those recorded by `reuse` last. Call outside `writing()`."""

    def reuse(self, answers: Collection[ReusedAnswer]) -> None:
        """Record answers of earlier runs to these questions: either all or none."""

    def allow(self, reason: str, *, time: str) -> None:
        """Record why this run may ask despite a warning that normally stops runs."""

    @property
    def language(self) -> str | None:
        """The code of the language of page and workbook; None until the run records one."""

    def speak(self, language: str, *, time: str) -> None:
        """Record the language of page and workbook."""

    def finish(
        self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str
    ) -> FinishRecord:
        """Record a written outcome file; repeated after each resumption."""


class QuestionSource(Protocol):
    """The questions that this process may ask; each is leased to one process at a time."""

    @property
    def is_shared(self) -> bool:
        """True if other processes may ask the questions that this one leaves open."""

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Lease a chunk of questions for one API; None if none is free. Does not wait for other processes."""

    async def has_free(self, api: ApiName) -> bool:
        """True if other processes have released chunks that can be claimed."""

    async def done(self, hold: ChunkLease) -> None:
        """Record that every question of the chunk is done in this run."""

    def holds(self, hold: ChunkLease) -> bool:
        """True if this process still holds the chunk, as far as it knows; only a write makes sure."""

    def may_send(self, hold: ChunkLease) -> bool:
        """True if the chunk's lease has not ended; after a long sleep, another process may hold the chunk."""

    async def give_back(self, api: ApiName | None = None) -> None:
        """Release every unfinished chunk, for one API or all; the next holder reads their history.

        For one API, call this only when none of its requests is in flight.
        """


class CapCount(Protocol):
    """One client's daily cap, over all processes; `Quota.reserve` or `Ledger.intend` takes its units."""

    async def resets_at(self) -> datetime:
        """When more units become available."""

    async def close_for_today(self) -> None:
        """Record that the server reports the cap as used up."""

    async def go_by(self, server_now: datetime) -> None:
        """Count by the server's clock from now on, because ours is wrong."""


@runtime_checkable
class Quota(CapCount, Protocol):
    """A daily cap that is counted outside the ledger."""

    async def reserve(self) -> bool:
        """Take one unit, durably, for a request about to be sent; False if none is left.

        Raises:
            DiskError, IncompleteError: it is unknown whether a unit was taken; send nothing.
        """


class Share(Protocol):
    """A leased part of an account; the shares of all processes never exceed the account."""

    def follow(self, use: Callable[[ShareLimits], None], in_flight: Callable[[], int]) -> None:
        """Call `use` with the limits, now and at each change; requests in flight keep their slots."""

    def pause(self, wait_s: float) -> None:
        """Pause all processes for `wait_s`, as the server requested; other processes follow soon."""

    def leave(self) -> None:
        """Release the share, because nothing is left to ask; other processes soon get it."""

    async def rejoin(self) -> bool:
        """Take a share again after `leave`, without waiting for another process to leave.

        Returns False, without a share, if another process would have to leave first; the caller may retry.

        Raises:
            PrecheckError: see `Shares.lease`.
        """


class Shares(Protocol):
    """Divides accounts among concurrent processes."""

    def lease(self, accounts: Collection[ServerAccount]) -> AbstractAsyncContextManager[Mapping[str, Share]]:
        """Hold a share of each account during the block; yields API name -> share.

        Raises:
            IncompleteError: no share became free in time; nothing was sent.
        """
