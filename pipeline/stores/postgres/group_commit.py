"""Group commit to PostgreSQL: the lines of many tasks in one statement, written only under the fences of their chunks.

The statement locks the chunks that this process holds by their fences, and writes the lines of those alone. It is
one transaction and one round trip. Where its reply was lost, the next try looks up which lines are there.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, NamedTuple, Protocol

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
 WHERE attempt = 1 OR EXISTS (SELECT FROM precheck.intent AS before
   WHERE before.run = %b AND before.question = line.question AND before.attempt = line.attempt - 1)
  AND NOT EXISTS (SELECT FROM precheck.answer WHERE run = %b AND answer.question = line.question)
 RETURNING 1),
answers AS (
 INSERT INTO precheck.answer(run, question, attempt, state, code, time, is_named, matched_name, detail, seal)
 SELECT run, question, attempt, state, code, line.time, name IS NOT NULL, name, detail, line.seal
 FROM unnest(%b::int[], %b::bytea[], %b::int[], %b::text[], %b::text[], %b::text[], %b::bytea[], %b::bytea[],
  %b::bytea[]) AS line(no, question, attempt, state, code, time, name, detail, seal) JOIN held USING (no)
 JOIN precheck.intent USING (question, attempt) WHERE run = %b
 RETURNING 1)
SELECT ARRAY(SELECT no FROM held), (SELECT count(*) FROM intents), (SELECT count(*) FROM answers)
"""
_FAILURES = """
WITH held AS MATERIALIZED (
 SELECT no FROM unnest(%b::int[], %b::bigint[]) WITH ORDINALITY AS mine(chunk, fence, no)
 JOIN precheck.chunk USING (chunk, fence) WHERE chunk.run = %b FOR SHARE OF chunk),
failures AS (
 INSERT INTO precheck.failure(run, question, attempt, round, code, time, detail, seal)
 SELECT run, question, attempt, round, code, line.time, detail, line.seal
 FROM unnest(%b::int[], %b::bytea[], %b::int[], %b::int[], %b::text[], %b::text[], %b::bytea[], %b::bytea[])
  AS line(no, question, attempt, round, code, time, detail, seal) JOIN held USING (no)
 JOIN precheck.intent USING (question, attempt)
 WHERE run = %b AND NOT EXISTS (SELECT FROM precheck.answer WHERE run = %b AND answer.question = line.question)
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
        self.intents: list[IntentLine] = []
        self.failures: list[FailureLine] = []
        self.answers: list[AnswerLine] = []
        self.size = 0
        self.ended = anyio.Event()
        self.is_tried = False
        self.is_written = False
        self.is_whole = False
        """Whether every line is among what was written."""
        self.lost: set[ChunkLease] = set()
        """Leases that others have taken over; nothing was written under them."""
        self.spent: set[tuple[bytes, int]] = set()
        """Question and attempt of the intents that no unit of the cap was left for."""
        self.failure: BaseException = RuntimeError("the task that was to write for others was cancelled")


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
        """Wait until a batch that a line has joined is written; the first to join writes it."""
        batch.size += 1
        if batch.size == BATCH_MAX:
            self._joining = _Batch()
        if batch.size == 1:
            await self._commit_in_turn(batch)
        else:
            await batch.ended.wait()

    def _require(self, batch: _Batch, lease: ChunkLease) -> None:
        if lease in batch.lost:
            raise LeaseLostError
        if not batch.is_written:
            raise batch.failure

    async def _commit_in_turn(self, batch: _Batch) -> None:
        """Commit a batch after the earlier ones, for all that joined it."""
        try:
            async with self._commit_lock:
                if batch.size < LINGER_BELOW:
                    await anyio.sleep(LINGER_S)
                if self._joining is batch:
                    self._joining = _Batch()
                await self._database.run_in_thread(lambda db: self._commit(db, batch))
            batch.is_written = True
            batch.is_whole = not (batch.lost or batch.spent)
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
            self._write(db, batch, batch.intents, batch.failures, batch.answers)
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
        leases, run = _numbered([*intents, *answers]), self._run
        values = [*_chunks(leases), run, run, *_columns(leases, intents, 1, 6), run, run]
        values += [*_columns(leases, answers, 1, 9), run]
        held, *counts = _row(db, _RECORD, values)
        batch.lost |= _lost(leases, held)
        _require_counts(batch, counts, intents, answers)

    def _fail(self, db: psycopg.Connection, batch: _Batch, failures: Sequence[FailureLine]) -> None:
        leases, run = _numbered(failures), self._run
        held, count = _row(
            db, _FAILURES, [*_chunks(leases), run, *_columns(leases, failures, 1, 8), run, run]
        )
        batch.lost |= _lost(leases, held)
        _require_counts(batch, [count], failures)

    def _left(
        self, db: psycopg.Connection, batch: _Batch
    ) -> tuple[list[IntentLine], list[FailureLine], list[AnswerLine]]:
        """The lines that an earlier try, whose reply was lost, did not write."""
        intents, failures, answers = batch.intents, batch.failures, batch.answers
        values: list[Any] = [
            *([line[place] for line in intents] for place in (1, 2, 3)),
            self._run,
            *([line[place] for line in failures] for place in (1, 2, 7)),
            self._run,
            *([line[place] for line in answers] for place in (1, 2, 8)),
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


def _row(db: psycopg.Connection, query: LiteralString, values: Sequence[Any]) -> tuple[Any, ...]:
    row = db.cursor(binary=True).execute(query, values).fetchone()
    assert row is not None
    return row


def _numbered(lines: Sequence[Line]) -> dict[ChunkLease, int]:
    """The leases of some lines, numbered from 1."""
    return {lease: number for number, lease in enumerate(dict.fromkeys(line[0] for line in lines), start=1)}


def _chunks(leases: Iterable[ChunkLease]) -> tuple[list[int], list[int]]:
    """Their chunks, and their fences."""
    return [lease.chunk for lease in leases], [lease.fence for lease in leases]


def _columns(
    leases: Mapping[ChunkLease, int], lines: Sequence[Line], start: int, end: int
) -> Iterator[Sequence[Any]]:
    """The number of the lease of each line, then some of its fields, each as a column."""
    if lines:
        lease_of, *columns = zip(*lines, strict=True)
        yield [leases[lease] for lease in lease_of]
        yield from map(list, columns[start - 1 : end - 1])
    else:
        yield from ([] for _ in range(end - start + 1))


def _lost(leases: Mapping[ChunkLease, int], held: Sequence[int]) -> set[ChunkLease]:
    return {lease for lease, number in leases.items() if number not in held}


def _require_counts(batch: _Batch, counts: Sequence[int], *kinds: Sequence[Line]) -> None:
    """Every line whose lease holds was written; else it was one that may not be, and this a mistake of ours."""
    for lines, count in zip(kinds, counts, strict=True):
        lost_count = sum(line[0] in batch.lost for line in lines) if batch.lost else 0
        assert count == len(lines) - lost_count, "a question with an answer, or an attempt is missing"
