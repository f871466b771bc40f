"""Write a process's lines to a run in one statement, guarded by the fences of their chunks.

The statement locks the chunks that the process still holds, and writes only their lines, in one transaction
and one round trip. If the reply was lost, `missing` finds the lines that were not written.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg

from pipeline.errors import CapSpentError, LeaseLostError
from pipeline.stores.group_commit import Batch, GroupCommit
from pipeline.stores.postgres.connection import Database, only_row
from pipeline.stores.postgres.daily_caps import take_units
from pipeline.stores.postgres.schema import STATEMENTS
from pipeline.stores.protocols import AccountCap
from pipeline.stores.values import ChunkLease


class IntentLine(NamedTuple):
    """A request about to be sent."""

    lease: ChunkLease
    question: bytes
    attempt: int
    request_id: str
    time: str
    seal: bytes
    api: str


class FailureLine(NamedTuple):
    """A request whose result is unusable."""

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


class WrittenLines(NamedTuple):
    """Lines to be written together."""

    intents: Sequence[IntentLine]
    failures: Sequence[FailureLine]
    answers: Sequence[AnswerLine]


class RefusedLines(NamedTuple):
    """Lines that were not written, for reasons that are not bugs."""

    lost: Collection[ChunkLease]  # leases that other processes have taken over, so their lines are refused
    spent: Collection[tuple[bytes, int]]  # question and attempt of each intent without a unit left in the cap


class ForgottenLinesError(Exception):
    """The ledger lost earlier lines that these depend on: a request's intent, or the previous attempt."""


class LineWriter:
    """Writes the lines of one run."""

    def __init__(self, run: int, caps: Mapping[str, AccountCap]) -> None:
        self._run = run
        self._caps = caps

    def write(self, db: psycopg.Connection, lines: WrittenLines) -> RefusedLines:
        """Write lines in one transaction, except lines of chunks that another process holds.

        IntegrityError: a forbidden line; ForgottenLinesError: an earlier line was lost. What was written is
        unknown.
        """
        intents, failures, answers = lines
        if self._caps and intents:
            with db.transaction():
                return self._write_and_spend(db, lines)
        if failures and (intents or answers):
            with db.transaction():
                lost = self._record(db, intents, answers) | self._fail(db, failures)
        elif failures:
            lost = self._fail(db, failures)
        else:
            lost = self._record(db, intents, answers)
        return RefusedLines(lost, ())

    def missing(self, db: psycopg.Connection, lines: WrittenLines) -> WrittenLines:
        """Return the lines that an earlier attempt, whose reply was lost, did not write."""
        intents, failures, answers = lines
        values: list[Any] = [
            *([line[field] for line in intents] for field in (1, 2, 3)),
            self._run,
            *([line[field] for line in failures] for field in (1, 2, 7)),
            self._run,
            *([line[field] for line in answers] for field in (1, 2, 8)),
            self._run,
        ]
        there = {
            (kind, place - 1)
            for kind, place in db.cursor(binary=True).execute(STATEMENTS["recording.there"], values)
        }
        return WrittenLines(
            [line for place, line in enumerate(intents) if (0, place) not in there],
            [line for place, line in enumerate(failures) if (1, place) not in there],
            [line for place, line in enumerate(answers) if (2, place) not in there],
        )

    def _write_and_spend(self, db: psycopg.Connection, lines: WrittenLines) -> RefusedLines:
        """Like `write`, but take a unit for each intent."""
        leases = _numbered(lines.intents)
        held = db.cursor(binary=True).execute(STATEMENTS["recording.held"], [*_chunks(leases), self._run])
        lost = _lost(leases, [leases[ChunkLease(*row)] for row in held])
        mine = [line for line in lines.intents if line.lease not in lost]
        granted = take_units(self._caps, db, [line.api for line in mine])
        may = [line for line, is_granted in zip(mine, granted, strict=True) if is_granted]
        if may or lines.answers:
            lost |= self._record(db, may, lines.answers)
        if lines.failures:
            lost |= self._fail(db, lines.failures)
        spent = {
            (line.question, line.attempt)
            for line, is_granted in zip(mine, granted, strict=True)
            if not is_granted
        }
        return RefusedLines(lost, spent)

    def _record(
        self, db: psycopg.Connection, intents: Sequence[IntentLine], answers: Sequence[AnswerLine]
    ) -> set[ChunkLease]:
        leases, run = _numbered([*intents, *answers]), self._run
        values = [*_chunks(leases), run, run, *_columns(leases, intents, 6), run, run]
        values += [*_columns(leases, answers, 9), run]
        held, *counts = only_row(db, STATEMENTS["recording.record"], values)
        lost = _lost(leases, held)
        _require_counts(lost, counts, intents, answers)
        return lost

    def _fail(self, db: psycopg.Connection, failures: Sequence[FailureLine]) -> set[ChunkLease]:
        leases, run = _numbered(failures), self._run
        values = [*_chunks(leases), run, *_columns(leases, failures, 8), run, run]
        held, count = only_row(db, STATEMENTS["recording.failures"], values)
        lost = _lost(leases, held)
        _require_counts(lost, [count], failures)
        return lost


def _numbered(lines: Sequence[Line]) -> dict[ChunkLease, int]:
    return {lease: number for number, lease in enumerate(dict.fromkeys(line[0] for line in lines), start=1)}


def _chunks(leases: Iterable[ChunkLease]) -> tuple[list[int], list[int]]:
    return [lease.chunk for lease in leases], [lease.fence for lease in leases]


def _columns(leases: Mapping[ChunkLease, int], lines: Sequence[Line], end: int) -> Iterator[Sequence[Any]]:
    """Yield the lease number of each line, then its fields before `end`, as columns."""
    if lines:
        lease_of, *columns = zip(*lines, strict=True)
        yield [leases[lease] for lease in lease_of]
        yield from map(list, columns[: end - 1])
    else:
        yield from ([] for _ in range(end))


def _lost(leases: Mapping[ChunkLease, int], held: Sequence[int]) -> set[ChunkLease]:
    return {lease for lease, number in leases.items() if number not in held}


def _require_counts(lost: Collection[ChunkLease], counts: Sequence[int], *kinds: Sequence[Line]) -> None:
    """Require that every line with a valid lease was written, unless earlier lines were lost."""
    for lines, count in zip(kinds, counts, strict=True):
        lost_count = sum(line[0] in lost for line in lines) if lost else 0
        if count != len(lines) - lost_count:
            raise ForgottenLinesError("a question with an answer, or an attempt is missing")


class _FencedBatch(Batch[Line]):
    """Lines to be written together, as far as the fences allow."""

    def __init__(self) -> None:
        super().__init__()
        self.is_tried = False
        self.refused = RefusedLines((), ())

    @property
    def as_lines(self) -> WrittenLines:
        kinds: dict[type[Line], list[Any]] = {IntentLine: [], FailureLine: [], AnswerLine: []}
        for line in self.lines:
            kinds[type(line)].append(line)
        return WrittenLines(*kinds.values())

    def require(self, lines: Sequence[Line]) -> None:
        """Raise LeaseLostError if another process holds a line's chunk, CapSpentError if no unit was left."""
        lost, spent = self.refused
        if lost and any(line.lease in lost for line in lines):
            raise LeaseLostError
        super().require(lines)
        if spent and any(isinstance(line, IntentLine) and line[1:3] in spent for line in lines):
            raise CapSpentError


class FencedCommit(GroupCommit[Line, _FencedBatch]):
    """Commits one process's lines for one run; after an error of `Database.run`, it accepts nothing more."""

    def __init__(self, database: Database, writer: LineWriter, lost: Callable[[ChunkLease], None]) -> None:
        """Accept no lines yet; `lost` is called with each lease that another process has taken over."""
        super().__init__(_FencedBatch, self._write_batch, is_shielded=False)
        self._database = database
        self._writer = writer
        self._lost = lost

    async def _write_batch(self, batch: _FencedBatch) -> None:
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
