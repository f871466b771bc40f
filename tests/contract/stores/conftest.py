"""The stores that there are, each behind one face: what every one of them must keep is asked of all."""

import shutil
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from uuid import uuid4

import anyio
import polars as pl
import pytest
from memory_stores import MemoryLedger, MemoryQuestions, MemoryQuota, MemoryShares, MemorySource
from postgres import LEDGER_KEY, clocks
from virtual_time import VIRTUAL

from pipeline.frames import CHECKS, Check
from pipeline.stages.ask.remaining import remaining_questions
from pipeline.stages.ask.values import AskingTally
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.local_source import LocalSource
from pipeline.stores.postgres.address import parsed
from pipeline.stores.postgres.daily_caps import PostgresCap, take_units
from pipeline.stores.postgres.shared_run import HeldChunk, PostgresRun
from pipeline.stores.postgres.store import PostgresStore
from pipeline.stores.protocols import AccountCap, AskingProcess, QuestionPlan
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.quota import QuotaInThreads, SqliteQuota
from pipeline.stores.sqlite.shares import local_shares
from pipeline.stores.values import PlannedChunk, RunIdentity
from schemas.outcomes import ApiName

NOW = "2031-03-01T09:00:00.000Z"
NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")


class MemoryStore:
    """Everything of one run in memory."""

    run, monotonic = VIRTUAL.run, VIRTUAL.monotonic

    def __init__(self) -> None:
        self.ledger = MemoryLedger(IDENTITY, NOW)
        self._shares = MemoryShares(self.monotonic)

    def reopen(self):
        """Close the ledger and take it up again."""

    def snapshot(self):
        """What a kill would leave at this moment; `restore` goes on with it."""
        return self.ledger.after_a_crash()

    def restore(self, snapshot):
        self.ledger = snapshot

    def sources(self, checks):
        """As many as may ask at the same time."""
        questions = MemoryQuestions(checks, self.ledger)
        return [MemorySource(questions) for _ in range(3)]

    async def end_of_a_run(self, ended):
        """End it without an answer to its one question; what comes next is the next run."""
        self.ledger.finish(ended, question_count=1, unanswered_count=1, outcome_sha256="f")

    def quotas(self, cap):
        """The same cap, as several processes hold it."""
        return [MemoryQuota(cap, lambda: NOON)] * 3

    def shares(self):
        """Of another process."""
        return self._shares

    def close(self):
        pass


class SqliteStore:
    """Everything of one run in files."""

    run = staticmethod(VIRTUAL.run)

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = count()
        self._resources = ExitStack()
        self._folder = root / "run"
        self.ledger = self._opened()

    def _opened(self):
        return SqliteLedger.open(self._folder / "ledger.db", IDENTITY, now=NOW)

    def reopen(self):
        self.ledger.close()
        self.ledger = self._opened()

    def snapshot(self):
        copy = self._root / f"after {next(self._numbers)}"
        shutil.copytree(self._folder, copy)
        return copy

    def restore(self, snapshot):
        self.ledger.close()
        self._folder = snapshot
        self.ledger = self._opened()

    def sources(self, checks):
        frame = pl.DataFrame(checks, schema=CHECKS, orient="row")
        left = anyio.run(remaining_questions, frame, self.ledger, AskingTally())
        return [LocalSource(left.todo, self.ledger.question_key)]

    async def end_of_a_run(self, ended):
        self.ledger.finish(ended, question_count=1, unanswered_count=1, outcome_sha256="f")

    def quotas(self, cap):
        path = self._root / "quota.db"
        made = [SqliteQuota(path, scope="s", cap=cap, window="utc_day", clock=lambda: NOON) for _ in range(3)]
        return [QuotaInThreads(self._resources.enter_context(quota)) for quota in made]

    def shares(self):
        terms = LeaseTerms(lambda: NOON + timedelta(seconds=self.monotonic()), self.monotonic, lambda _: None)
        return local_shares(self._root / "turns", terms)

    def monotonic(self):
        """No two readings are the same, as on a real machine: processes are known by when they began."""
        return VIRTUAL.monotonic() + next(self._numbers) * 1e-9

    def close(self):
        self.ledger.close()
        self._resources.close()


class HoldingRun(PostgresRun):
    """A shared run whose questions are all in one chunk, which it holds: so a test may name any it likes."""

    def chunk_of(self, _question):
        return self._held.get(self.one_hold) or HeldChunk(self.one_hold, ApiName.COP, 1, 0.0)


class IntentsQuota(PostgresCap):
    """A cap whose units are taken as the transaction of an intent takes them."""

    async def reserve(self):
        caps = {"cop": self._cap}

        def take(db):
            with db.transaction():
                return take_units(caps, db, ["cop"])

        [granted] = await self._database.run_in_thread(take)
        return granted


class DatabaseStore:
    """Everything of one run in PostgreSQL."""

    run, monotonic = staticmethod(anyio.run), staticmethod(time.monotonic)
    """The time of a server is real."""
    TABLES = ("run", "holder", "round", "chunk", "intent", "failure", "answer", "reuse")

    def __init__(self, postgres, databases) -> None:
        self._postgres, self._databases = postgres, databases
        self._resources = ExitStack()
        self._database = databases.take()
        self._open()

    def _process(self):
        process = AskingProcess(uuid4(), "host", 1, "0.1.0")
        address = parsed(self._postgres.url(self._database))
        return self._resources.enter_context(PostgresStore.open(address, LEDGER_KEY, process, clocks()))

    def _open(self):
        self._checks = pl.DataFrame([Check(1, ApiName.COP, "1", *[None] * 10)], schema=CHECKS, orient="row")
        store = self._process()
        self._run = store.join(IDENTITY, QuestionPlan(b"plan", 1), new_id=uuid4())
        self.ledger = HoldingRun(
            store.database, store.keys, self._run, store.process.id, lambda _: self._checks
        )
        self._resources.enter_context(self.ledger)
        anyio.run(self._hold)

    async def _hold(self):
        """Hold the one chunk of a round."""
        latest = await self.ledger.latest_round()
        if not latest.is_open:
            assert await self.ledger.open_round([PlannedChunk("cop", 0, [0])], after=latest.number)
        self.ledger.one_hold = (await self.ledger.claim(ApiName.COP)).hold

    async def end_of_a_run(self, ended):  # noqa: ARG002
        await self.ledger.done(self.ledger.one_hold)
        assert await self.ledger.end_round((await self.ledger.latest_round()).number)
        await self._hold()

    def reopen(self):
        anyio.run(self.ledger.give_back)
        self._resources.close()
        self._open()

    def snapshot(self):
        copied = {}
        with self._postgres.connect(self._database) as db, db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for table in self.TABLES:
                with db.cursor().copy(f"COPY precheck.{table} TO STDOUT") as copy:
                    copied[table] = b"".join(copy)
        return copied

    def restore(self, snapshot):
        self._resources.close()
        self._databases.empty(self._database)
        with self._postgres.connect(self._database) as db:
            for table, rows in snapshot.items():
                with db.cursor().copy(f"COPY precheck.{table} FROM STDIN") as copy:
                    copy.write(rows)
            db.execute("UPDATE precheck.chunk SET lease_until = clock_timestamp() WHERE holder IS NOT NULL")
            db.execute("SELECT setval('precheck.run_run_seq', 100), setval('precheck.intent_id_seq', 100000)")
        self._open()

    def sources(self, checks):
        self._checks = pl.DataFrame(checks, schema=CHECKS, orient="row")
        anyio.run(self._open_round, checks)
        return [self._source() for _ in range(3)]

    async def _open_round(self, checks):
        latest = await self.ledger.latest_round()
        if latest.number > 1:
            return
        await self.ledger.done(self.ledger.one_hold)
        await self.ledger.end_round(latest.number)
        of_api = {}
        for place, check in enumerate(checks):
            of_api.setdefault(check.api, []).append(place)
        chunks = [
            PlannedChunk(api, 0, places[start : start + 10])
            for api, places in of_api.items()
            for start in range(0, len(places), 10)
        ]
        assert await self.ledger.open_round(chunks, after=latest.number)

    def _source(self):
        made = self._process().shared_run(self._run, lambda _: self._checks)
        return self._resources.enter_context(made)

    def quotas(self, cap):
        one = AccountCap("s", cap, "utc_day")
        with self._postgres.connect(self._database) as db:  # whose time never goes back
            db.execute(
                "INSERT INTO precheck.daily_cap(scope, cap, kind, latest) VALUES (%s, %s, %s, %s)",
                (*one, NOON.timestamp()),
            )
        return [IntentsQuota(self._process().database, one) for _ in range(3)]

    def shares(self):
        terms = LeaseTerms(lambda: datetime.now(UTC), time.monotonic, lambda _: None)
        return self._process().shares(terms)

    def close(self):
        self._resources.close()
        self._databases.put_back(self._database)


@pytest.fixture(params=["memory", "sqlite"])
def folder_store(request, tmp_path):
    """One that a job finishes a run with."""
    made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request, tmp_path):
    match request.param:
        case "memory":
            made = MemoryStore()
        case "sqlite":
            made = SqliteStore(tmp_path)
        case "postgres":
            made = DatabaseStore(*map(request.getfixturevalue, ("postgres", "ledger_databases")))
    yield made
    made.close()
