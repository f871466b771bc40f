"""Group commit to PostgreSQL: many tasks write, few statements are made, and each knows of its own line."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

import anyio
import psycopg

from pipeline.errors import PrecheckError
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.recording import (
    AnswerLine,
    FailureLine,
    ForgottenLinesError,
    IntentLine,
    LineWriter,
    WrittenLines,
)
from pipeline.stores.protocols import CapSpentError, LeaseLostError
from pipeline.stores.values import ChunkLease

BATCH_MAX = 512
LINGER_BELOW = 16
LINGER_S = 0.001
"""A smaller batch waits this long for more lines: a round trip costs as much as thirty of them."""


class _Batch:
    """Lines that become durable together."""

    def __init__(self) -> None:
        self.intents: list[IntentLine] = []
        self.failures: list[FailureLine] = []
        self.answers: list[AnswerLine] = []
        self.size = 0
        self.ended = anyio.Event()
        self.is_tried = False
        self.is_written = False
        self.is_whole = False
        """Whether every line is among what was written."""
        self.lost: Collection[ChunkLease] = ()
        self.spent: Collection[tuple[bytes, int]] = ()
        self.failure: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is written, or cannot be."""
        return self.is_written or self.failure is not None


class FencedCommit:
    """The lines of one process for one run."""

    def __init__(self, database: Database, writer: LineWriter, lost: Callable[[ChunkLease], None]) -> None:
        """Accept nothing yet.

        Args:
            database: where the ledger is.
            writer: of the lines of the run.
            lost: called with each lease that turns out to be another process's now.
        """
        self._database = database
        self._writer = writer
        self._lost = lost
        self._joining: _Batch | None = None
        self.refusal: BaseException | None = None

    @property
    def accepting(self) -> bool:
        """Whether lines may be written now."""
        return self._joining is not None

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Accept lines until the block ends; when it has ended, no write is under way."""
        assert not self.accepting, "one block of writing at a time"
        self._commit_lock = anyio.Lock()
        self._joining = _Batch()
        try:
            yield
        finally:
            self._joining = None

    async def intend(self, line: IntentLine) -> None:
        """Write an intent; it is durable when this returns.

        Raises:
            LeaseLostError: another process holds its chunk; nothing was written.
            CapSpentError: its account has no unit left; nothing was written.
            IncompleteError, ConfigurationError: as `Database.run`; nothing more is accepted.
        """
        batch = self._open_batch()
        batch.intents.append(line)
        await self._written(batch)
        if not batch.is_whole:
            self._require(batch, line.lease)
            if (line.question, line.attempt) in batch.spent:
                raise CapSpentError

    async def fail(self, line: FailureLine) -> None:
        """As `intend`, of a failure."""
        batch = self._open_batch()
        batch.failures.append(line)
        await self._written(batch)
        self._require(batch, line.lease)

    async def settle(self, line: AnswerLine) -> None:
        """As `intend`, of an answer."""
        batch = self._open_batch()
        batch.answers.append(line)
        await self._written(batch)
        if not batch.is_whole:
            self._require(batch, line.lease)

    def _open_batch(self) -> _Batch:
        if self.refusal is not None:
            raise self.refusal
        assert self._joining is not None, "written to outside of writing()"
        return self._joining

    async def _written(self, batch: _Batch) -> None:
        """Wait until a batch that a line has joined is written.

        The first to join writes it; where that one was cancelled, the first of the others that goes on.
        """
        batch.size += 1
        if batch.size == BATCH_MAX:
            self._joining = _Batch()
        if batch.size > 1:
            await batch.ended.wait()
        if not batch.is_over:
            await self._commit_in_turn(batch)

    def _require(self, batch: _Batch, lease: ChunkLease) -> None:
        if lease in batch.lost:
            raise LeaseLostError
        if batch.failure is not None:
            raise batch.failure

    async def _commit_in_turn(self, batch: _Batch) -> None:
        """Commit a batch after the earlier ones, for all that joined it."""
        try:
            async with self._commit_lock:
                if batch.is_over:
                    return
                if batch.size < LINGER_BELOW:
                    await anyio.sleep(LINGER_S)
                if self._joining is batch:
                    self._joining = _Batch()
                await self._database.run_in_thread(lambda db: self._commit(db, batch))
            batch.is_written = True
            batch.is_whole = not (batch.lost or batch.spent)
        except PrecheckError as error:
            batch.failure = self.refusal = error
        except (psycopg.IntegrityError, ForgottenLinesError) as error:
            if self._database.was_lost and isinstance(error, ForgottenLinesError):
                batch.failure = self.refusal = self._database.has_forgotten()
            else:
                batch.failure = AssertionError(f"a line that the ledger refuses: {error}")
        finally:
            batch.ended.set()
        for lease in batch.lost:
            self._lost(lease)

    def _commit(self, db: psycopg.Connection, batch: _Batch) -> None:
        """Write what is not there yet. Called again after a lost connection."""
        lines = WrittenLines(batch.intents, batch.failures, batch.answers)
        if not batch.is_tried:
            batch.is_tried = True
            batch.lost, batch.spent = self._writer.write(db, lines)
            return
        try:
            batch.lost, batch.spent = self._writer.write(db, self._writer.missing(db, lines))
        except psycopg.errors.UniqueViolation:
            # The server had not noticed the end of that connection, and was still at work on the first try.
            batch.lost, batch.spent = self._writer.write(db, self._writer.missing(db, lines))
