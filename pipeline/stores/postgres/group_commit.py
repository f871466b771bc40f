"""Group commit to PostgreSQL: the lines of many tasks in one statement, written only under the fences of their chunks.

The statement locks the chunks that this process holds by their fences, and writes the lines of those alone. It is
one transaction and one round trip. Where its reply was lost, the next try looks up which lines are there.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

import anyio
import psycopg

from pipeline.errors import PrecheckError
from pipeline.stores.postgres.connection import Database
from pipeline.stores.protocols import CapSpentError, LeaseLostError
from pipeline.stores.values import ChunkLease

BATCH_MAX = 512
LINGER_BELOW = 16
LINGER_S = 0.001
"""A smaller batch waits this long for more lines: a round trip costs as much as thirty of them."""


class IntentLine(NamedTuple):
    """A request that is about to leave."""

    lease: ChunkLease
    question: bytes
    attempt: int
    request_id: str
    time: str
    seal: bytes
    api: str


class FailureLine(NamedTuple):
    """A request that brought nothing usable."""

    lease: ChunkLease
    question: bytes
    attempt: int
    round: int
    code: str
    time: str
    detail: bytes | None
    seal: bytes


class AnswerLine(NamedTuple):
    """A final answer."""

    lease: ChunkLease
    question: bytes
    attempt: int
    state: str
    code: str
    time: str
    matched_name: bytes | None
    detail: bytes | None
    seal: bytes


Line = IntentLine | FailureLine | AnswerLine


class Units(Protocol):
    """The daily caps of accounts, as an intent's transaction takes from them."""

    def take(self, db: psycopg.Connection, wanted: Sequence[str]) -> Sequence[bool]:
        """Take a unit for each intent, where its account has one left.

        Args:
            db: in a transaction, which also writes the intents.
            wanted: the API of each intent.

        Returns:
            For each, whether it may be written.
        """

    def put_back(self, db: psycopg.Connection, unused: Sequence[str]) -> None:
        """Put back, in the same transaction, units whose intents were not written, by their APIs."""


_RECORD = """
WITH held AS MATERIALIZED (
 SELECT no FROM unnest(%b::int[], %b::bigint[]) WITH ORDINALITY AS mine(chunk, fence, no)
 JOIN precheck.chunk USING (chunk, fence) WHERE chunk.run = %b FOR SHARE OF chunk),
intents AS (
 INSERT INTO precheck.intent(run, question, attempt, request_id, time, seal)
 SELECT %b, question, attempt, request_id, time, seal
 FROM unnest(%b::int[], %b::bytea[], %b::int[], %b::text[], %b::text[], %b::bytea[])
  AS line(no, question, attempt, request_id, time, seal) JOIN held USING (no)
 WHERE NOT EXISTS (SELECT FROM precheck.answer WHERE run = %b AND answer.question = line.question)
  AND (attempt = 1 OR EXISTS (SELECT FROM precheck.intent AS before
   WHERE before.run = %b AND before.question = line.question AND before.attempt = line.attempt - 1))
 RETURNING 1),
answers AS (
 INSERT INTO precheck.answer(run, question, attempt, state, code, time, is_named, matched_name, detail, seal)
 SELECT %b, question, attempt, state, code, time, name IS NOT NULL, name, detail, seal
 FROM unnest(%b::int[], %b::bytea[], %b::int[], %b::text[], %b::text[], %b::text[], %b::bytea[], %b::bytea[],
  %b::bytea[]) AS line(no, question, attempt, state, code, time, name, detail, seal) JOIN held USING (no)
 RETURNING 1)
SELECT ARRAY(SELECT no FROM held), (SELECT count(*) FROM intents), (SELECT count(*) FROM answers)
"""
_FAILURES = """
WITH held AS MATERIALIZED (
 SELECT no FROM unnest(%b::int[], %b::bigint[]) WITH ORDINALITY AS mine(chunk, fence, no)
 JOIN precheck.chunk USING (chunk, fence) WHERE chunk.run = %b FOR SHARE OF chunk),
failures AS (
 INSERT INTO precheck.failure(run, question, attempt, round, code, time, detail, seal)
 SELECT %b, question, attempt, round, code, time, detail, seal
 FROM unnest(%b::int[], %b::bytea[], %b::int[], %b::int[], %b::text[], %b::text[], %b::bytea[], %b::bytea[])
  AS line(no, question, attempt, round, code, time, detail, seal) JOIN held USING (no)
 WHERE NOT EXISTS (SELECT FROM precheck.answer WHERE run = %b AND answer.question = line.question)
 RETURNING 1)
SELECT ARRAY(SELECT no FROM held), (SELECT count(*) FROM failures)
"""
_THERE = """
SELECT 0, ord FROM unnest(%b::bytea[], %b::int[], %b::text[]) WITH ORDINALITY AS line(question, attempt, request_id, ord)
 JOIN precheck.intent AS written USING (question, attempt, request_id) WHERE run = %b
UNION ALL SELECT 1, ord FROM unnest(%b::bytea[], %b::int[], %b::bytea[]) WITH ORDINALITY AS line(question, attempt, seal, ord)
 JOIN precheck.failure AS written USING (question, attempt, seal) WHERE run = %b
UNION ALL SELECT 2, ord FROM unnest(%b::bytea[], %b::int[], %b::bytea[]) WITH ORDINALITY AS line(question, attempt, seal, ord)
 JOIN precheck.answer AS written USING (question, attempt, seal) WHERE run = %b
"""


class _Batch:
    """Lines that become durable together."""

    def __init__(self) -> None:
        self.lines: tuple[list[IntentLine], list[FailureLine], list[AnswerLine]] = ([], [], [])
        self.size = 0
        self.ended = anyio.Event()
        self.is_tried = False
        self.lost: set[ChunkLease] = set()
        """Leases that others have taken over; nothing was written under them."""
        self.spent: set[tuple[bytes, int]] = set()
        """Question and attempt of the intents that no unit of the cap was left for."""
        self.failure: BaseException | None = None


class FencedCommit:
    """The lines of one process for one run."""

    def __init__(
        self, database: Database, run: int, lost: Callable[[ChunkLease], None], units: Units | None = None
    ) -> None:
        """Accept nothing yet.

        Args:
            database: where the ledger is.
            run: its number.
            lost: called with each lease that turns out to be another process's now.
            units: of the daily caps; None where no account has one.
        """
        self._database = database
        self._run = run
        self._lost = lost
        self._units = units
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

    async def write(self, line: Line) -> None:
        """Write a line; it is durable when this returns.

        Raises:
            LeaseLostError: another process holds its chunk; nothing was written.
            CapSpentError: its account has no unit left; nothing was written.
            IncompleteError, ConfigurationError: as `Database.run`; nothing more is accepted.
        """
        if self.refusal is not None:
            raise self.refusal
        batch = self._joining
        assert batch is not None, "written to outside of writing()"
        is_first = batch.size == 0
        match line:
            case IntentLine():
                batch.lines[0].append(line)
            case FailureLine():
                batch.lines[1].append(line)
            case AnswerLine():
                batch.lines[2].append(line)
        batch.size += 1
        if batch.size >= BATCH_MAX:
            self._joining = _Batch()
        if is_first:
            await self._commit_in_turn(batch)
        else:
            await batch.ended.wait()
        if batch.failure is not None:
            raise batch.failure
        if line.lease in batch.lost:
            raise LeaseLostError
        if batch.spent and isinstance(line, IntentLine) and (line.question, line.attempt) in batch.spent:
            raise CapSpentError

    async def _commit_in_turn(self, batch: _Batch) -> None:
        """Commit a batch after the earlier ones, for all that joined it."""
        batch.failure = RuntimeError("the task that wrote for others was cancelled")
        try:
            async with self._commit_lock:
                if batch.size < LINGER_BELOW:
                    await anyio.sleep(LINGER_S)
                if self._joining is batch:
                    self._joining = _Batch()
                await self._database.run_in_thread(lambda db: self._commit(db, batch))
            batch.failure = None
        except PrecheckError as error:
            batch.failure = self.refusal = error
        except (psycopg.IntegrityError, AssertionError) as error:
            batch.failure = AssertionError(f"a line that the ledger refuses: {error}")
        finally:
            batch.ended.set()
        for lease in batch.lost:
            self._lost(lease)

    def _commit(self, db: psycopg.Connection, batch: _Batch) -> None:
        """Write what is not there yet. Called again after a lost connection."""
        if not batch.is_tried:
            batch.is_tried = True
            self._write(db, batch, *batch.lines)
            return
        try:
            self._write(db, batch, *self._left(db, batch))
        except psycopg.errors.UniqueViolation:
            # The server had not noticed the end of that connection, and was still at work on the first try.
            self._write(db, batch, *self._left(db, batch))

    def _write(
        self,
        db: psycopg.Connection,
        batch: _Batch,
        intents: Sequence[IntentLine],
        failures: Sequence[FailureLine],
        answers: Sequence[AnswerLine],
    ) -> None:
        batch.lost, batch.spent = set(), set()
        if self._units is None or not intents:
            if failures and (intents or answers):
                with db.transaction():
                    self._record(db, batch, intents, answers)
                    self._fail(db, batch, failures)
            elif failures:
                self._fail(db, batch, failures)
            elif intents or answers:
                self._record(db, batch, intents, answers)
            return
        with db.transaction():
            granted = self._units.take(db, [line.api for line in intents])
            may = [line for line, is_granted in zip(intents, granted, strict=True) if is_granted]
            batch.spent = {
                (line.question, line.attempt)
                for line, is_granted in zip(intents, granted, strict=True)
                if not is_granted
            }
            if may or answers:
                self._record(db, batch, may, answers)
            if failures:
                self._fail(db, batch, failures)
            if unused := [line.api for line in may if line.lease in batch.lost]:
                self._units.put_back(db, unused)

    def _record(
        self,
        db: psycopg.Connection,
        batch: _Batch,
        intents: Sequence[IntentLine],
        answers: Sequence[AnswerLine],
    ) -> None:
        leases = _numbered([*intents, *answers])
        run = self._run
        values: list[Any] = [*_columns(leases, 2), run, run]
        values += [[leases[line.lease] for line in intents], *_fields(intents, IntentLine, 1, 6)]
        values += [run, run, run]
        values += [[leases[line.lease] for line in answers], *_fields(answers, AnswerLine, 1, 9)]
        row = db.cursor(binary=True).execute(_RECORD, values).fetchone()
        assert row is not None
        held, *written = row
        batch.lost |= _lost(leases, held)
        expected = [sum(line.lease not in batch.lost for line in lines) for lines in (intents, answers)]
        assert written == expected, "a question that has its answer, or an attempt was skipped"

    def _fail(self, db: psycopg.Connection, batch: _Batch, failures: Sequence[FailureLine]) -> None:
        leases = _numbered(failures)
        values: list[Any] = [*_columns(leases, 2), self._run, self._run]
        values += [
            [leases[line.lease] for line in failures],
            *_fields(failures, FailureLine, 1, 8),
            self._run,
        ]
        row = db.cursor(binary=True).execute(_FAILURES, values).fetchone()
        assert row is not None
        held, written = row
        batch.lost |= _lost(leases, held)
        expected = sum(line.lease not in batch.lost for line in failures)
        assert written == expected, "a question that has its answer"

    def _left(
        self, db: psycopg.Connection, batch: _Batch
    ) -> tuple[list[IntentLine], list[FailureLine], list[AnswerLine]]:
        """The lines that an earlier try, whose reply was lost, did not write."""
        intents, failures, answers = batch.lines
        values = [*_fields(intents, IntentLine, 1, 4), self._run]
        for lines, kind in ((failures, FailureLine), (answers, AnswerLine)):
            values += [
                [line.question for line in lines],
                [line.attempt for line in lines],
                [line.seal for line in lines],
                self._run,
            ]
        there: list[set[int]] = [set(), set(), set()]
        for kind, place in db.cursor(binary=True).execute(_THERE, values):
            there[kind].add(place - 1)
        return (
            [line for place, line in enumerate(intents) if place not in there[0]],
            [line for place, line in enumerate(failures) if place not in there[1]],
            [line for place, line in enumerate(answers) if place not in there[2]],
        )


def _numbered(lines: Sequence[Line]) -> dict[ChunkLease, int]:
    """The leases of some lines, numbered from 1."""
    return {
        lease: number for number, lease in enumerate(dict.fromkeys(line.lease for line in lines), start=1)
    }


def _columns(rows: Any, count: int) -> list[list[Any]]:  # noqa: ANN401
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(count)]


def _fields(lines: Sequence[Any], kind: type, start: int, end: int) -> list[list[Any]]:  # noqa: ARG001
    return [list(column) for column in zip(*lines, strict=True)][start:end] or [
        [] for _ in range(end - start)
    ]


def _lost(leases: dict[ChunkLease, int], held: Sequence[int]) -> set[ChunkLease]:
    if len(held) == len(leases):
        return set()
    return {lease for lease, number in leases.items() if number not in held}
