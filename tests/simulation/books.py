"""The ledger of a simulated run: what is durable, and the way of a write to it.

A write takes its time. It becomes durable half way, and the process hears of it later: one that is killed in
between has written and does not know.
"""

import sqlite3
from asyncio import Future
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from anyio.lowlevel import checkpoint_if_cancelled
from memory_stores import MemoryLedger
from simulation.weather import Weather
from simulation.world import Clock, Process, World

from pipeline.errors import LeaseLostError
from pipeline.frames import Answer, Check
from pipeline.stores.postgres.recording import ForgottenLinesError
from pipeline.stores.sqlite.quota import SqliteQuota
from pipeline.stores.values import FinalAnswer, FruitlessQuestion, LedgerCounts, QuestionHistory, RunIdentity

T = TypeVar("T")
RECONNECTING_S = 0.1
"""How long a process is without a connection that broke."""
_KEYS: dict[Check, bytes] = {}


class Intent(NamedTuple):
    """A request on record before it leaves."""

    question: bytes
    row: int
    time_s: float
    """When it was durable."""


class Book(MemoryLedger):
    """What is durable, whoever dies."""

    def __init__(self, checks: Iterable[Check], now_s: Callable[[], float]) -> None:
        super().__init__(RunIdentity("input", "profile", "test", "1"), "2030-01-01T09:00:00Z")
        self.rows = {self.question_key(check): check.check for check in checks}
        """Of each question its number."""
        self._now_s = now_s
        self.is_writing = True
        self.intended: dict[str, Intent] = {}
        """Correlation id -> intent, of all that were ever durable."""
        self.settled_at: dict[bytes, float] = {}
        """Question -> when its answer was durable."""

    def followed_by_another(self, checks: Iterable[Check]) -> "Book":
        """The empty book of another run, of the questions of another file; what leaves is in one list."""
        another = Book(checks, self._now_s)
        another.intended, another.settled_at = self.intended, self.settled_at
        return another

    def question_key(self, check: Check) -> bytes:
        """The key of a question; there are few questions, the same in all histories, and many look-ups."""
        if (key := _KEYS.get(check)) is None:
            key = _KEYS[check] = super().question_key(check)
        return key

    def final_now(self) -> list[FinalAnswer]:
        """Every final answer."""
        self.is_writing = False
        try:
            return list(self.answers())
        finally:
            self.is_writing = True

    def requests(self) -> Iterator[tuple[bytes, int, str, FinalAnswer | None, str | None]]:
        """Of each request its question, attempt and id; its answer, or the code that it failed with."""
        for line in self._lines:
            answer = self._answers.get(line.question)
            is_its = answer is not None and answer.request_id == line.request_id
            code = None if line.failure is None else line.failure[0]
            yield line.question, line.attempt, line.request_id, answer if is_its else None, code

    def latest_id(self, question: bytes) -> str | None:
        """The correlation id of the latest request for a question."""
        return self._latest[question].request_id if question in self._latest else None

    def write_intent(self, question: bytes, attempt: int, request_id: str) -> None:
        """Make an intent durable."""
        self.now(lambda: self.intend(question, attempt=attempt, request_id=request_id, time=""))
        self.intended[request_id] = Intent(question, self.rows[question], self._now_s())

    def write_answer(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Make an answer durable."""
        self.now(lambda: self.settle(question, answer, detail))
        self.settled_at[question] = self._now_s()

    def forgetting(self) -> Callable[[], None]:
        """What makes it forget all that it is told from now on; what had left was durable then."""
        lines, answers = [replace(line) for line in self._lines], dict(self._answers)
        finishes = list(self._finishes)

        def forget() -> None:
            for question in self._answers.keys() - answers.keys():
                self.settled_at.pop(question, None)
            self._lines, self._answers, self._finishes = lines, answers, finishes
            self._latest = {line.question: line for line in lines}

        return forget

    def go_by_answers(self, answers: Iterable[FinalAnswer]) -> None:
        """Have these answers from now on."""
        self._answers = {answer.question: answer for answer in answers}

    def now(self, write: "Callable[[], object]") -> None:
        """Make a write durable: the coroutine of the model ends at its one checkpoint."""
        step = write()
        try:
            step.send(None)  # type: ignore[attr-defined]
        except StopIteration:
            return
        finally:
            step.close()  # type: ignore[attr-defined]


class LedgerOfProcess:
    """The ledger as one process sees it."""

    def __init__(self, book: Book, process: Process, weather: Weather) -> None:
        self._book = book
        self._process = process
        self._world: World = process.world
        self._weather = weather

    @property
    def counts(self) -> LedgerCounts:
        """How many requests and answers it holds."""
        return self._book.counts

    def question_key(self, check: Check) -> bytes:
        """The key of a question."""
        return self._book.question_key(check)

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, QuestionHistory]:
        """The history of these questions."""
        return await self._unlocked(self._book.known(questions))

    async def fruitless(self) -> Mapping[bytes, FruitlessQuestion]:
        """The open questions that runs got no answer to."""
        return await self._unlocked(self._book.fruitless())

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Accept writes until the block ends."""
        yield

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:  # noqa: ARG002
        """Record that a request is about to leave."""

        await self._commit(question, attempt, lambda: self._book.write_intent(question, attempt, request_id))

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt gave nothing usable."""
        await self._commit(
            question,
            attempt,
            lambda: self._book.now(
                lambda: self._book.fail(question, attempt=attempt, code=code, time=time, detail=detail)
            ),
        )

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer."""

        await self._commit(
            question, answer.attempts, lambda: self._book.write_answer(question, answer, detail)
        )

    async def _unlocked(self, reading):
        """The model reads only while nobody writes; here each write is over at once."""
        self._book.is_writing = False
        try:
            return await reading
        finally:
            self._book.is_writing = True

    async def _commit(self, question: bytes, attempt: int, write: Callable[[], None]) -> None:
        """Write in half the time of a commit, and hear of it in the other half."""

        def work() -> None:
            self._require(question, attempt)
            write()

        await called(self._process, work, self._takes_s())

    def _takes_s(self) -> float:
        chance = self._world.chance
        takes_s = chance.uniform(0, self._weather.commit_s)
        if not self._weather.is_well(self._world.now_s) and chance.random() < self._weather.slow_commit_share:
            takes_s += 2.0
        return takes_s

    def _require(self, question: bytes, attempt: int) -> None:
        """Nobody else writes."""


async def called(process: Process, work: Callable[[], T], takes_s: float) -> T:
    """Have something done by a store that is elsewhere: half way there, half way back.

    A process that is killed meanwhile may or may not have had it done. Where the reply is lost, it is done
    again over another connection, as the product does. A task that is cancelled already has nothing done.
    """
    await checkpoint_if_cancelled()
    call = _Call(process, work, takes_s / 2, process.loop.create_future())
    process.world.after(takes_s / 2 + process.world.store_wait_s(), call.arrive)
    return await call.reply


@dataclass(slots=True)
class _Call(Generic[T]):
    """A call to a store, on its way. Nothing here refers to itself: it is gone once its reply is heard."""

    process: Process
    work: Callable[[], T]
    way_s: float
    reply: "Future[T]"

    def arrive(self) -> None:
        """It is at the store."""
        process, world = self.process, self.process.world
        if not process.is_alive:
            return  # what was still in its memory is gone
        try:
            result = self.work()
        except (LeaseLostError, ForgottenLinesError) as error:
            world.after(self.way_s, partial(self._fail, error))
        else:
            process.has_written()
            world.after(self.way_s, partial(self._hear, result, world.forgot_count))

    def _hear(self, result: T, forgot_count: int) -> None:
        world = self.process.world
        if world.loses_reply(self.process) or world.forgot_count != forgot_count:
            world.after(RECONNECTING_S + world.store_wait_s(), self.arrive)
        elif not self.reply.done():
            self.reply.set_result(result)

    def _fail(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)


class UnitsTaken:
    """The units of the daily cap that were given out, by the day in which they count.

    A day is one of our clock, which never goes back here: units that are taken once it is set back count in
    the latest day that there was.
    """

    def __init__(self) -> None:
        self.by_day = Counter[int]()
        self._latest = 0

    def note(self, now: datetime) -> None:
        """One more is given out."""
        self._latest = max(self._latest, now.toordinal())
        self.by_day[self._latest] += 1


class CapFile:
    """The file in which the product counts the daily cap, opened once for all processes of a history.

    No two of them are at it in the same moment, and no machine loses power here: what guards against both
    would only cost time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection: sqlite3.Connection | None = None

    def keep(self, opened: sqlite3.Connection) -> sqlite3.Connection:
        """Keep what the first process opened, for the others."""
        for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = MEMORY", "synchronous = OFF"):
            opened.execute(f"PRAGMA {pragma}")
        self.connection = opened
        return opened

    def close(self) -> None:
        """Close it, if there was a cap to count."""
        if self.connection is not None:
            self.connection.close()


class _CountOfProcess(SqliteQuota):
    def __init__(self, file: CapFile, cap: int, clock: Clock) -> None:
        self._file = file
        super().__init__(file.path, scope="cop.example|c", cap=cap, window="utc_day", clock=clock.now)

    def _opened(self) -> sqlite3.Connection:
        return self._file.connection or self._file.keep(super()._opened())


class QuotaOfProcess:
    """The daily cap: the product's count in its file, called at once, as there are no threads here."""

    def __init__(self, file: CapFile, cap: int, clock: Clock, taken: UnitsTaken) -> None:
        self._clock = clock
        self._taken = taken
        self._quota = _CountOfProcess(file, cap, clock)

    async def reserve(self) -> bool:
        """Take one unit."""
        is_taken = self._quota.reserve()
        if is_taken:
            self._taken.note(self._clock.now())
        return is_taken

    async def resets_at(self) -> datetime:
        """When there is more to take."""
        return self._quota.resets_at()

    async def close_for_today(self) -> None:
        """Take the server's word that nothing is left."""
        self._quota.close_for_today()

    async def go_by(self, server_now: datetime) -> None:
        """Count by the server's clock."""
        self._quota.go_by(server_now)
