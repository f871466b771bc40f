"""A shared store that lasts as long as a process: the protocols of `pipeline.stores.protocols` over memory.

Nothing here knows PostgreSQL. It is a `StoreKind`; the recipe puts it beside that one, with `memory_stores`.
"""

from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime

from memory_stores import MemoryLedger, MemoryQuestions, MemoryQuota, MemorySharedRun, MemoryShares

from pipeline.frames import Check
from pipeline.stores.protocols import QuestionPlan, StoredRun
from pipeline.stores.values import FinalAnswer, RecordedRequest, RoundState
from schemas.outcomes import ApiName

SCHEME = "remembered"


def require_address(url):
    if url != f"{SCHEME}://here":
        raise ValueError(f"is not an address; write {SCHEME}://here")


def opened_store(url, secret, process, clocks):
    del url, secret, process
    return nullcontext(RememberedStore(clocks.now, clocks.monotonic))


def cared_for(url, clocks, *, role=None):
    raise NotImplementedError


class RememberedRun(MemorySharedRun):
    """A run and its rounds."""

    def __init__(self, ledger, quota):
        super().__init__(MemoryQuestions([], ledger), quota)
        self.questions = None
        self.lines = {}
        self._round = self._undone_count = 0
        self._is_open = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        pass

    @asynccontextmanager
    async def writing(self):
        async with self._all.ledger.writing():
            yield

    def copy_to(self, copy):
        """Leave the copy to the end of the run."""

    def reuse(self, answers):
        self._all.ledger.reuse(answers)

    def answers(self):
        return self._all.ledger.answers()

    def earlier_answers(self, questions, not_before):  # noqa: ARG002
        return {}

    async def latest_round(self):
        return RoundState(self._round, self._is_open, self._undone_count, len(self._all.free))

    async def open_round(self, chunks, *, after):
        assert (after, self._is_open) == (self._round, False)
        first = len(self._all.chunks)
        for number, chunk in enumerate(chunks, start=first):
            rows = self.questions(chunk.part)[list(chunk.members)].iter_rows()
            checks = [Check(check, ApiName(api), *said) for check, api, *said in rows]
            self._all.chunks[number] = ApiName(chunk.api), checks
            self._all.free.append(number)
        self._round, self._is_open, self._undone_count = after + 1, True, len(chunks)
        return True

    async def end_round(self, number, *, is_over=False):
        assert number == self._round
        if is_over or not self._undone_count:
            self._is_open = False
            self._all.free.clear()
        return not self._is_open

    async def done(self, hold):
        await super().done(hold)
        self._undone_count -= 1

    async def intend(self, question, *, attempt, request_id, time):
        await super().intend(question, attempt=attempt, request_id=request_id, time=time)
        line = RecordedRequest(question, attempt, request_id, time, None, None, None, "")
        self.lines[question, attempt] = line

    async def fail(self, question, *, attempt, code, time, detail=""):
        await super().fail(question, attempt=attempt, code=code, time=time, detail=detail)
        line = self.lines[question, attempt]
        self.lines[question, attempt] = line._replace(failed_with=code, failed_at=time, detail=detail)

    async def settle(self, question, answer, detail=""):
        await super().settle(question, answer, detail)
        line = self.lines[question, answer.attempts]
        final = FinalAnswer(question, *answer[1:])
        self.lines[question, answer.attempts] = line._replace(answer=final, detail=detail)


class RememberedCap:
    """A cap whose units intents take: so it has no `reserve`."""

    def __init__(self, quota):
        self._quota = quota
        self.resets_at = quota.resets_at
        self.close_for_today = quota.close_for_today
        self.go_by = quota.go_by

    async def is_spent(self):
        return self._quota.is_closed or self._quota.used_count >= self._quota.cap


@dataclass
class RememberedStore:
    """One run, of one process, with one account that has a cap."""

    now: datetime
    ticks: float
    _run: RememberedRun | None = None
    _stored: StoredRun | None = None
    _identity: object = None
    _quotas: dict = field(default_factory=dict)

    def be_seen(self):
        pass

    def wait_at_most(self, wait_max_s):
        pass

    def plan_of(self, parts):
        return QuestionPlan(b"plan", sum(part.height for part in parts))

    def join(self, identity, plan, *, new_id, run_id=None):  # noqa: ARG002
        self._identity = identity
        self._stored = StoredRun(1, run_id or new_id, identity.tool_version, "2031-03-01T09:00:00.000Z", None)
        return self._stored

    def find(self, run_id):  # noqa: ARG002
        return self._stored

    def shared_run(self, run, questions, *, caps):
        if self._run is None:
            [quota] = [self._quota(cap) for cap in caps.values()] or [None]
            self._run = RememberedRun(MemoryLedger(self._identity, run.created_at), quota)
        self._run.questions = questions
        return self._run

    def lines(self, run):  # noqa: ARG002
        return iter(self._run.lines.values())

    def mark_finished(self, run):
        self._stored = run._replace(finished_at="2031-03-01T09:00:00.000Z")
        return True

    def cap(self, cap):
        return RememberedCap(self._quota(cap))

    def shares(self, terms):
        return MemoryShares(terms.ticks)

    def require_same_limits(self, accounts, *, now):
        pass

    def _quota(self, cap):
        return self._quotas.setdefault(cap, MemoryQuota(cap.cap, self.now))
