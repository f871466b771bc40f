"""A shared run, as one process uses it: the ledger of its questions, and their source.

Chunks of questions are leased to one process at a time, by the clock of the database; later, another may take
them over. Each claim raises the fence, and no line is written under an old one. The fence is the time of the
claim, in microseconds: even if the database loses a claim, as in a failover, no process gets the same number.
"""

import json
import threading
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any
from uuid import UUID

import anyio
import psycopg

from pipeline.errors import LeaseLostError
from pipeline.frames import CHECKS, Answer, Check
from pipeline.stores.postgres import lines
from pipeline.stores.postgres.connection import Database, first_row, only_row
from pipeline.stores.postgres.recording import FencedCommit, IntentLine, LineWriter
from pipeline.stores.postgres.schema import STATEMENTS
from pipeline.stores.protocols import AccountCap, Closing, QuestionParts, RequestCopy, StoredRun
from pipeline.stores.values import (
    ABOUT_THE_QUESTION,
    FINAL,
    ChunkLease,
    FinalAnswer,
    FruitlessQuestion,
    LedgerCounts,
    PlannedChunk,
    Question,
    QuestionChunk,
    QuestionHistory,
    RecordedRequest,
    ReusedAnswer,
    RoundState,
)
from schemas.outcomes import ApiName

_FREE = STATEMENTS["shared_run.free"]
_CLAIM = f"""
UPDATE precheck.chunk SET holder = %(holder)b,
 fence = greatest(fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
 lease_until = clock_timestamp() + %(lease)b * interval '1 s'
WHERE run = %(run)b AND chunk = ({_FREE} ORDER BY chunk LIMIT 1 FOR UPDATE OF chunk SKIP LOCKED)
RETURNING chunk, fence, round, part, members
"""  # noqa: S608 (constants)
SEEN = "UPDATE precheck.holder SET seen_at = clock_timestamp() WHERE holder = %s"  # it is alive
_LOCK = "SELECT 1 FROM precheck.run WHERE run = %b FOR UPDATE"


LEASE_S = 15.0  # how long the questions of a dead process remain reserved
_BEATS_IN_A_LEASE = 4
_NOTHING = QuestionHistory(None, 0, None)


@dataclass(slots=True)
class HeldChunk:
    """A chunk that this process holds, or held."""

    hold: ChunkLease
    api: ApiName
    round: int
    until: float  # the earliest possible end of its lease, by this process's clock
    questions: dict[bytes, Check] = field(default_factory=dict)


class PostgresRun(Closing):
    """A run in a shared ledger, as one process uses it; a `SharedRun`, made by `PostgresStore.shared_run`.

    Methods that use the database raise errors like `Database.run`; those that read lines raise DiskError if
    one is corrupt. A separate thread renews its leases, so they survive a busy event loop.
    """

    is_shared = True

    def __init__(  # noqa: PLR0913
        self,
        database: Database,
        keys: lines.StoreKeys,
        run: StoredRun,
        holder: UUID,
        questions: QuestionParts,
        *,
        caps: Mapping[str, AccountCap] | None = None,
        lease_s: float = LEASE_S,
    ) -> None:
        """Open a connection, but claim no chunk yet; a silent process keeps its chunks for one lease."""
        self.run = run
        self._database = database.another()
        self._keys = keys
        self._lines = lines.RunLines(keys, run, database.address.place)
        self._holder = holder
        self._questions = questions
        self._lease_s = lease_s
        self._commits = FencedCommit(self._database, LineWriter(run.number, caps or {}), self._forget)
        self._held: dict[ChunkLease, HeldChunk] = {}
        self._claims: dict[object, ApiName] = {}  # in progress, or cancelled
        self._by_question: dict[bytes, HeldChunk] = {}
        self._in_flight: dict[tuple[bytes, int], tuple[HeldChunk, IntentLine]] = {}
        self._copy: RequestCopy | None = None
        self._taken_over: dict[int, ApiName] = {}
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None

    def copy_to(self, copy: RequestCopy) -> None:
        self._copy = copy

    def close(self) -> None:
        self._ended.set()
        self._database.close()
        if self._beating is not None:
            self._beating.join()

    # --- the ledger

    @property
    def counts(self) -> LedgerCounts:
        query, values = STATEMENTS["shared_run.counts"], {"run": self.run.number}
        return LedgerCounts(*self._database.run(lambda db: only_row(db, query, values)))

    def question_key(self, check: Check) -> bytes:
        """Return the key of a question: 32 bytes, equal for equal questions in all runs of this ledger."""
        return self._keys.question(json.dumps(check[1:]).encode())

    async def known(self, questions: Sequence[bytes]) -> Mapping[bytes, QuestionHistory]:
        assert not self._commits.accepting, "not to be read while it is written to"
        return await self._known(questions)

    async def fruitless(self) -> Mapping[bytes, FruitlessQuestion]:
        """Return open questions that finished rounds asked without an answer. Call outside `writing()`."""
        assert not self._commits.accepting, "not to be read while it is written to"
        return await self._database.run_in_thread(lambda db: lines.fruitless(db, self.run.number))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        async with self._commits.writing():
            try:
                yield
            finally:
                in_doubt = list(self._in_flight)
                for question, attempt in in_doubt:
                    await self._pass_on(question, attempt)
                self._taken_over.clear()

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """After its chunk is released, a question no longer belongs to this process."""
        chunk = self.chunk_of(question)
        line = self._lines.intent(chunk.hold, question, attempt, request_id, time, chunk.api)
        await self._commits.write(line)
        self._in_flight[question, attempt] = chunk, line

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        chunk = self._chunk_of_attempt(question, attempt)
        line = self._lines.failure(chunk.hold, question, attempt, chunk.round, code, time, detail)
        await self._commits.write(line)
        await self._pass_on(question, attempt, failed_with=code, failed_at=time, detail=detail)

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        assert answer.state in FINAL, f"{answer.state} is not a final answer"
        chunk = self._chunk_of_attempt(question, answer.attempts)
        await self._commits.write(self._lines.answer(chunk.hold, question, answer, detail))
        await self._pass_on(question, answer.attempts, answer=answer, detail=detail)

    def reuse(self, answers: Collection[ReusedAnswer]) -> None:
        rows = [(self.run.number, *answer, self._lines.reused(answer)) for answer in answers]

        def add(db: psycopg.Connection) -> None:
            with db.transaction(), db.cursor() as cursor:
                cursor.executemany(STATEMENTS["shared_run.reuse"], rows)

        self._database.run(add)

    def answers(self) -> Iterator[FinalAnswer]:
        assert not self._commits.accepting, "not to be read while it is written to"
        every = lines.recorded(self._database, self._keys, self.run)
        return (request.answer for request in every if request.answer is not None)

    def earlier_answers(
        self, questions: Sequence[bytes], not_before: str
    ) -> Mapping[str, Sequence[FinalAnswer]]:
        return self._database.run(
            lambda db: lines.earlier_answers(db, self._keys, self.run, questions, not_before)
        )

    # --- the source

    async def claim(self, api: ApiName) -> QuestionChunk | None:
        """Only chunks of the open round are claimed."""
        self._keep_leases()
        values = self._free_for(api)
        until = self._lease_end()
        self._claims[this := object()] = api

        # A chunk of this process that it does not hold was claimed by a statement whose reply was lost; this
        # process may claim it again at once.
        def claim(db: psycopg.Connection) -> tuple[Any, ...] | None:
            if this not in self._claims:  # the claim was cancelled before it reached the database
                return None
            return first_row(db, _CLAIM, values | {"lease": self._lease_s})

        row = await self._database.run_in_thread(claim)
        self._claims.pop(this, None)
        if row is None:
            return None
        chunk, fence, round_, part, members = row
        hold = ChunkLease(chunk, fence)
        self._held[hold] = held = HeldChunk(hold, api, round_, until)
        checks = await anyio.to_thread.run_sync(self._members, part, members, api)
        keys = [self.question_key(check) for check in checks]
        history_of = await self._known(keys)
        questions = []
        for check, key in zip(checks, keys, strict=True):
            before = history_of.get(key, _NOTHING)
            if before.answer is None:
                # A question is in one chunk at a time: the store lost an earlier one.
                if (earlier := self._by_question.get(key, held)).hold != hold:
                    self._forget(earlier.hold)
                self._by_question[key] = held
                held.questions[key] = check
                is_suspect = before.code in ABOUT_THE_QUESTION
                questions.append(Question(check, key, before.attempts, is_suspect))
        # Questions that earlier runs asked come last: otherwise they would use up every daily cap.
        return QuestionChunk(hold, sorted(questions, key=attrgetter("attempts", "is_suspect")))

    async def has_free(self, api: ApiName) -> bool:
        values = self._free_for(api)
        row = await self._database.run_in_thread(lambda db: first_row(db, f"SELECT EXISTS ({_FREE})", values))
        return row is not None and row[0]

    async def done(self, hold: ChunkLease) -> None:
        if hold in self._held:
            values = self.run.number, hold.chunk, hold.fence
            await self._database.run_in_thread(lambda db: db.execute(STATEMENTS["shared_run.done"], values))
            self._release(hold)

    def holds(self, hold: ChunkLease) -> bool:
        return hold in self._held

    def may_send(self, hold: ChunkLease) -> bool:
        """True if the chunk's lease cannot have ended: it was renewed less than one lease ago."""
        chunk = self._held.get(hold)
        return chunk is not None and self._database.clocks.monotonic() < chunk.until

    async def give_back(self, api: ApiName | None = None) -> None:
        """Release chunks and cancelled claims; without the database, they become free when their leases end.

        Chunks of the API that other processes took over may then be claimed again.
        """
        for chunk in [chunk for chunk, of in list(self._taken_over.items()) if of == api]:
            self._taken_over.pop(chunk, None)
        held = [hold for hold, chunk in list(self._held.items()) if api in {None, chunk.api}]
        claims = [claim for claim, of in self._claims.items() if api in {None, of}]
        for hold in held:
            self._release(hold)
        for claim in claims:
            del self._claims[claim]
        if held or claims:
            values = {"run": self.run.number, "holder": self._holder, "api": api}
            await anyio.to_thread.run_sync(
                self._database.try_once, lambda db: db.execute(STATEMENTS["shared_run.give_back"], values)
            )

    # --- the rounds

    async def latest_round(self) -> RoundState:
        self._keep_leases()
        return await self._database.run_in_thread(self._latest_round)

    async def open_round(self, chunks: Sequence[PlannedChunk], *, after: int) -> bool:
        run = self.run.number

        def open_next(db: psycopg.Connection) -> bool:
            with db.transaction(), db.cursor() as cursor:
                cursor.execute(_LOCK, (run,))
                latest = self._latest_round(db)
                if latest.is_open or latest.number != after:
                    return False
                query = "SELECT count(*) FROM precheck.chunk WHERE run = %s"
                [first] = cursor.execute(query, (run,)).fetchone() or (0,)
                cursor.execute("INSERT INTO precheck.round(run, round) VALUES (%b, %b)", (run, after + 1))
                rows = [
                    (run, number, after + 1, chunk.api, chunk.part, list(chunk.members))
                    for number, chunk in enumerate(chunks, start=first + 1)
                ]
                cursor.executemany(STATEMENTS["shared_run.add"], rows)
            return True

        return await self._database.run_in_thread(open_next)

    async def end_round(self, number: int, *, is_over: bool = False) -> bool:
        values = {"run": self.run.number, "round": number, "all": not is_over}

        def end(db: psycopg.Connection) -> bool:
            with db.transaction():
                db.execute(_LOCK, (self.run.number,))
                db.execute(STATEMENTS["shared_run.end"], values)
                latest = self._latest_round(db)
            return latest.number > number or not latest.is_open

        return await self._database.run_in_thread(end)

    def _latest_round(self, db: psycopg.Connection) -> RoundState:
        row = first_row(db, STATEMENTS["shared_run.state"], (self.run.number, self.run.number))
        return RoundState(*row) if row else RoundState(0, is_open=False, undone_count=0, free_count=0)

    def chunk_of(self, question: bytes) -> HeldChunk:
        """Return a question's chunk; a LeaseLostError if this process no longer holds it."""
        try:
            return self._by_question[question]
        except KeyError:
            raise LeaseLostError from None

    def _chunk_of_attempt(self, question: bytes, attempt: int) -> HeldChunk:
        """Like `chunk_of`, but at the time of the request: the chunk may have been released since."""
        sent = self._in_flight.get((question, attempt))
        return self.chunk_of(question) if sent is None else sent[0]

    async def _pass_on(  # noqa: PLR0913
        self,
        question: bytes,
        attempt: int,
        *,
        failed_with: str | None = None,
        failed_at: str | None = None,
        answer: Answer | None = None,
        detail: str = "",
    ) -> None:
        sent = self._in_flight.pop((question, attempt), None)
        if sent is None or self._copy is None:
            return
        chunk, line = sent
        final = None if answer is None else FinalAnswer(question, *answer[1:])
        fields = (question, attempt, line.request_id, line.time, failed_with, failed_at, final, detail)
        await self._copy(chunk.questions[question], RecordedRequest(*fields))

    async def _known(self, questions: Sequence[bytes]) -> Mapping[bytes, QuestionHistory]:
        return await self._database.run_in_thread(
            lambda db: lines.known(db, self._lines, self.run.number, questions)
        )

    def _free_for(self, api: ApiName) -> dict[str, object]:
        """Return the values that find free chunks, without lost ones that may have requests in flight."""
        but = {*self._taken_over, *(hold.chunk for hold in list(self._held))}
        return {"holder": self._holder, "run": self.run.number, "api": api, "not": list(but)}

    def _members(self, number: int, members: list[int], api: ApiName) -> list[Check]:
        """Return the questions of a chunk of a part; a DiskError if no run planned it."""
        part = self._questions(number)
        assert part.schema == CHECKS
        indexes = range(part.height)
        is_planned = len({*members}) == len(members) and all(member in indexes for member in members)
        rows = part[members] if is_planned else part.clear()
        if not is_planned or (rows["api"] != api).any():
            raise lines.damaged(self._database.address.place, self.run.number)
        return [Check(number, ApiName(named), *fields) for number, named, *fields in rows.iter_rows()]

    def _release(self, hold: ChunkLease) -> None:
        chunk = self._held.pop(hold, None)  # the lease thread may have removed it
        for key in () if chunk is None else chunk.questions:
            if self._by_question.get(key) is chunk:
                del self._by_question[key]

    def _forget(self, hold: ChunkLease) -> None:
        """Drop a chunk that another process took over, and do not claim it while requests are in flight."""
        if (chunk := self._held.get(hold)) is not None:
            self._taken_over[hold.chunk] = chunk.api
            self._release(hold)

    def _keep_leases(self) -> None:
        if self._beating is None:
            self._beating = threading.Thread(target=self._beat, name="leases", daemon=True)
            self._beating.start()

    def _beat(self) -> None:
        while not self._ended.wait(self._lease_s / _BEATS_IN_A_LEASE):
            held, until = dict(self._held), self._lease_end()
            kept = self._database.try_once(partial(self._renew, list(held)))
            for hold, chunk in held.items():
                if kept is not None and hold in kept:
                    chunk.until = until
                elif kept is not None:
                    self._forget(hold)

    def _lease_end(self) -> float:
        """Return the earliest possible end of a lease requested now; it may be granted later."""
        return self._database.clocks.monotonic() + self._lease_s

    def _renew(self, held: Sequence[ChunkLease], db: psycopg.Connection) -> Collection[ChunkLease]:
        if not held:
            db.execute(SEEN, (self._holder,))
            return ()
        chunks, fences = map(list, zip(*held, strict=True))
        values = {"lease": self._lease_s, "run": self.run.number, "holder": self._holder}
        rows = db.cursor(binary=True).execute(
            STATEMENTS["shared_run.keep"], {**values, "chunks": chunks, "fences": fences}
        )
        return {ChunkLease(*row) for row in rows}
