"""The lines of a process on their way to the ledger that it shares: by the product's own group commit.

Behind it stands a database whose replies may be lost after their COMMIT, and which may fail over and forget.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from simulation.books import Book, called
from simulation.sharing import SharedQuestions, SharedRunOfProcess
from simulation.weather import Weather
from simulation.world import Process

from pipeline.errors import IncompleteError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.postgres.recording import (
    AnswerLine,
    FailureLine,
    FencedCommit,
    ForgottenLinesError,
    IntentLine,
    RefusedLines,
    WrittenLines,
)
from pipeline.stores.values import ChunkLease
from pipeline.wording import Sentence

T = TypeVar("T")


class CommittingRun(SharedRunOfProcess):
    """As its parent, over connections that may be lost."""

    def __init__(self, shared: SharedQuestions, book: Book, process: Process, weather: Weather) -> None:
        super().__init__(shared, book, process, weather)
        database, writer = _Database(process, self._takes_s), _Writer(book, shared)
        self._commits = FencedCommit(database, writer, self._lose)  # type: ignore[arg-type]

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Accept lines until the block ends."""
        async with super().writing(), self._commits.writing():
            yield

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record that a request is about to leave."""
        hold = self._hold_of[question]
        await self._commits.write(IntentLine(hold, question, attempt, request_id, time, b"", ""))
        self._hold_of_attempt[question, attempt] = hold

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt gave nothing usable."""
        hidden = detail.encode() or None
        line = FailureLine(self.hold_of(question, attempt), question, attempt, 1, code, time, hidden, b"")
        await self._commits.write(line)

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer."""
        _, state, code, name, _, time, attempt = answer
        said = attempt, state, code, time or "", name and name.encode(), detail.encode() or None, b""
        await self._commits.write(AnswerLine(self.hold_of(question, attempt), question, *said))


class _Database:
    """What the group commit needs of a connection."""

    def __init__(self, process: Process, takes_s: Callable[[], float]) -> None:
        self._process = process
        self._takes_s = takes_s
        self.was_lost = False

    async def run_in_thread(self, work: Callable[[Any], T]) -> T:
        """Do this until there is a reply."""
        tries = 0

        def once() -> T:
            nonlocal tries
            tries += 1
            has_failed_over = self._process.world.forgot_count > self._process.forgot_before
            self.was_lost |= tries > 1 or has_failed_over
            return work(None)

        return await called(self._process, once, self._takes_s())

    def has_forgotten(self) -> IncompleteError:
        """The error where what was acknowledged is not there any more."""
        return IncompleteError(
            Sentence(
                "jobs.part_unusable", problem="the ledger's database has lost records that it had confirmed"
            )
        )


class _Writer:
    """Writes lines into the book as the statements of the product do into their tables."""

    def __init__(self, book: Book, shared: SharedQuestions) -> None:
        self._book = book
        self._shared = shared

    def write(self, _db: object, lines: WrittenLines) -> RefusedLines:
        """Write lines, and none of a chunk that another process holds."""
        lost: set[ChunkLease] = set()
        for line in (*lines.intents, *lines.failures, *lines.answers):
            if not self._shared.is_latest(line.lease):
                lost.add(line.lease)
            elif not self._may_be(line):
                raise ForgottenLinesError
            else:
                self._write(line)
        return RefusedLines(lost, ())

    def missing(self, _db: object, lines: WrittenLines) -> WrittenLines:
        """Those that are not there."""
        return WrittenLines(*([line for line in some if not self._is_there(line)] for some in lines))

    def _may_be(self, line: IntentLine | FailureLine | AnswerLine) -> bool:
        """Whether what it follows is there. A line that is there already is refused by the book."""
        known = self._book.look_up(line.question)
        if isinstance(line, IntentLine):
            return line.attempt == 1 or (known.answer is None and known.attempts >= line.attempt - 1)
        return known.attempts >= line.attempt

    def _is_there(self, line: IntentLine | FailureLine | AnswerLine) -> bool:
        known = self._book.look_up(line.question)
        match line:
            case IntentLine():
                return self._book.latest_id(line.question) == line.request_id
            case FailureLine():
                return known.attempts == line.attempt and known.code == line.code
            case AnswerLine():
                return known.answer is not None

    def _write(self, line: IntentLine | FailureLine | AnswerLine) -> None:
        book, question = self._book, line.question
        match line:
            case IntentLine():
                book.write_intent(question, line.attempt, line.request_id)
            case FailureLine():
                book.now(lambda: book.fail(question, attempt=line.attempt, code=line.code, time=line.time))
            case AnswerLine():
                name = None if line.matched_name is None else line.matched_name.decode()
                request_id = book.latest_id(question)
                said = AnswerState(line.state), line.code, name, request_id, line.time, line.attempt
                book.write_answer(question, Answer(book.rows[question], *said))
