"""Group commit to PostgreSQL: few statements for many tasks, each line guarded by its chunk's fence."""

from collections.abc import Callable

import psycopg

from pipeline.errors import CapSpentError, LeaseLostError
from pipeline.stores.group_commit import Batch, GroupCommit
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.recording import (
    AnswerLine,
    FailureLine,
    ForgottenLinesError,
    IntentLine,
    Line,
    LineWriter,
    RefusedLines,
    WrittenLines,
)
from pipeline.stores.values import ChunkLease


class _FencedBatch(Batch[Line]):
    """Lines to be written together, as far as the fences allow."""

    def __init__(self) -> None:
        super().__init__()
        self.is_tried = False
        self.refused = RefusedLines((), ())

    @property
    def as_lines(self) -> WrittenLines:
        """The lines, sorted by kind."""
        lines = self.lines
        return WrittenLines(
            [line for line in lines if isinstance(line, IntentLine)],
            [line for line in lines if isinstance(line, FailureLine)],
            [line for line in lines if isinstance(line, AnswerLine)],
        )


class FencedCommit(GroupCommit[Line, _FencedBatch]):
    """Commits one process's lines for one run. A cancelled task stops waiting for the database."""

    is_shielded = False

    def __init__(self, database: Database, writer: LineWriter, lost: Callable[[ChunkLease], None]) -> None:
        """Accept no lines yet; `lost` is called with each lease that another process has taken over."""
        super().__init__()
        self._database = database
        self._writer = writer
        self._lost = lost

    async def record(self, line: Line) -> None:
        """Write a line; it is durable when this returns.

        Raises:
            LeaseLostError: another process holds its chunk; nothing was written.
            CapSpentError: its account has no unit left; nothing was written.
            IncompleteError, ConfigurationError: see `Database.run`; nothing more is accepted.
        """
        batch = await self._written(line)
        if line.lease in batch.refused.lost:
            raise LeaseLostError
        if batch.failure is not None:
            raise batch.failure
        if isinstance(line, IntentLine) and (line.question, line.attempt) in batch.refused.spent:
            raise CapSpentError

    def _new_batch(self) -> _FencedBatch:
        return _FencedBatch()

    async def _commit(self, batch: _FencedBatch) -> None:
        try:
            await self._database.run_in_thread(lambda db: self._write(db, batch))
        except (psycopg.IntegrityError, ForgottenLinesError) as error:
            if self._database.was_lost and isinstance(error, ForgottenLinesError):
                raise self._database.has_forgotten() from None
            batch.failure = AssertionError(f"a line that the ledger refuses: {error}")
        for lease in batch.refused.lost:
            self._lost(lease)

    def _write(self, db: psycopg.Connection, batch: _FencedBatch) -> None:
        """Write the missing lines; called again if the connection was lost."""
        lines = batch.as_lines
        if not batch.is_tried:
            batch.is_tried = True
            batch.refused = self._writer.write(db, lines)
            return
        try:
            batch.refused = self._writer.write(db, self._writer.missing(db, lines))
        except psycopg.errors.UniqueViolation:
            # The server had not noticed the lost connection, and was still executing the first attempt.
            batch.refused = self._writer.write(db, self._writer.missing(db, lines))
