"""What a store is to those who use it, whatever keeps it: a file of this machine, a database of many, memory.

Each protocol is one concern, and small. What every store must keep is in tests/contract/stores.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from pipeline.frames import Answer, Check
from pipeline.stores.values import (
    Account,
    Chunk,
    Counts,
    Finish,
    Fruitless,
    Hold,
    Known,
    Part,
    Reuse,
    RunIdentity,
)
from schemas.outcomes import ApiName


class Ledger(Protocol):
    """The record of one run, for who asks: which questions may have been sent, and what came back.

    A question has at most one answer, for ever. Its attempts are counted from 1, over all processes and all
    kills. What a write was given is durable when the write returns.
    """

    @property
    def counts(self) -> Counts:
        """How much it holds."""

    def question_key(self, check: Check) -> bytes:
        """What the ledger knows a question by: 32 bytes, the same for the same question in this run."""

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, Known]:
        """What is on record of these questions; nothing is of one that is left out. Not while `writing()`."""

    async def fruitless(self) -> Mapping[bytes, Fruitless]:
        """The open questions that earlier runs, and this one, got nowhere with. Not while `writing()`."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Accept writes until the block ends; the last of them is durable when it has ended."""

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record that a request is about to leave. It may leave once this has returned.

        Args:
            question: its key.
            attempt: one more than it had.
            request_id: the correlation id of the request.
            time: UTC, ISO 8601 with Z.

        Raises:
            DiskError: this or an earlier write is not durable; nothing more is accepted.
        """

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt gave nothing usable, and what the server says of it."""

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer, to the latest attempt. Once: again is a mistake."""


class RunLedger(Ledger, Protocol):
    """The record of one run, for who carries the run out, and ends it."""

    @property
    def run(self) -> RunIdentity:
        """What it is the record of."""

    @property
    def created_at(self) -> str:
        """When the run began."""

    @property
    def payee_key(self) -> bytes:
        """Under which this run knows payees and accounts."""

    @property
    def last_finish(self) -> Finish | None:
        """The latest outcome file on record, or None."""

    @property
    def finished_at(self) -> str | None:
        """When the run was finished, or None where a question still lacks its final answer."""

    def reuse(self, answers: Collection[Reuse]) -> None:
        """Record that these questions are not asked, as an earlier run had their answers: all or none."""

    def allow(self, reason: str, *, time: str) -> None:
        """Record why this run may ask what would otherwise have stopped it."""

    def finish(self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str) -> Finish:
        """Record that the outcome file is in place. May be said again after each resumption."""


class QuestionSource(Protocol):
    """Where the questions come from that this process asks; each is with one process at a time."""

    async def claim(self, api: ApiName) -> Chunk | None:
        """Take a chunk of questions for one API; None where there is none to take now.

        It does not wait for what other processes hold: they may be waiting for what this one holds.
        """

    async def done(self, hold: Hold) -> None:
        """Every question of the chunk has come to its end in this run."""

    async def give_back(self) -> None:
        """Let go of every chunk that is not done. Who takes one next looks up what is known of it."""


class Quota(Protocol):
    """The daily cap of one client of a server, over all processes."""

    async def reserve(self) -> bool:
        """Take one unit, durably, for one request about to be sent; False where there is none.

        Raises:
            DiskError, IncompleteError: it is not known that a unit was taken; send nothing.
        """

    async def resets_at(self) -> datetime:
        """When there is more to take."""

    async def close_for_today(self) -> None:
        """Believe the server that nothing is left."""

    async def go_by(self, server_now: datetime) -> None:
        """Count by the server's clock from now on, where ours is wrong."""


class Share(Protocol):
    """A leased part of an account. The parts of all processes add up to no more than the account, ever."""

    def follow(self, use: Callable[[Part], None]) -> None:
        """Call this with the part as it is, at once, and with each other one that it becomes."""


class Shares(Protocol):
    """Divides accounts among the processes that ask at the same time."""

    def lease(self, accounts: Collection[Account]) -> AbstractAsyncContextManager[Mapping[str, Share]]:
        """Have a share of each account until the block ends, by the name of its API.

        Raises:
            IncompleteError: none is to be had in time; nothing was sent.
        """
