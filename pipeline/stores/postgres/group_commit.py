"""Group commit to PostgreSQL: few statements for many tasks, each line guarded by its chunk's fence."""

from collections.abc import Callable, Sequence
from typing import Any

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
        kinds: dict[type[Line], list[Any]] = {IntentLine: [], FailureLine: [], AnswerLine: []}
        for line in self.lines:
            kinds[type(line)].append(line)
        return WrittenLines(*kinds.values())

    def require(self, lines: Sequence[Line]) -> None:
        """Raise an error if a line was not written.

        Raises:
            LeaseLostError: another process holds its chunk.
            CapSpentError: its account has no unit left.
        """
        lost, spent = self.refused
        if lost and any(line.lease in lost for line in lines):
            raise LeaseLostError
        super().require(lines)
        if spent and any(isinstance(line, IntentLine) and line[1:3] in spent for line in lines):
            raise CapSpentError


class FencedCommit(GroupCommit[Line, _FencedBatch]):
    """Commits one process's lines for one run. A cancelled task stops waiting for the database.

    `write` raises IncompleteError and ConfigurationError like `Database.run`, and then accepts nothing more.
    """

    is_shielded = False

    def __init__(self, database: Database, writer: LineWriter, lost: Callable[[ChunkLease], None]) -> None:
        """Accept no lines yet; `lost` is called with each lease that another process has taken over."""
        super().__init__()
        self._database = database
        self._writer = writer
        self._lost = lost

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
