"""The stores that there are, each behind one face: what every one of them must keep is asked of all."""

import shutil
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import anyio
import polars as pl
import pytest

from pipeline.frames import CHECKS
from pipeline.stages.ask import AskingTally, remaining_questions
from pipeline.stores.local_source import LocalSource
from pipeline.stores.memory import MemoryLedger, MemoryQuestions, MemoryQuota, MemoryShares, MemorySource
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.quota import SqliteQuota
from pipeline.stores.sqlite.quota_in_threads import QuotaInThreads
from pipeline.stores.sqlite.shares import LocalShares
from pipeline.stores.values import RunIdentity

NOW = "2031-03-01T09:00:00.000Z"
NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")


class MemoryStore:
    """Everything of one run in memory."""

    def __init__(self) -> None:
        self.ledger = MemoryLedger(IDENTITY, NOW)
        self._shares = MemoryShares(time.monotonic)

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

    def quotas(self, cap):
        path = self._root / "quota.db"
        made = [SqliteQuota(path, scope="s", cap=cap, window="utc_day", clock=lambda: NOON) for _ in range(3)]
        return [QuotaInThreads(self._resources.enter_context(quota)) for quota in made]

    def shares(self):
        return LocalShares(
            self._root / "turns",
            clock=lambda: datetime.now(UTC),
            ticks=time.monotonic,
            waiting=lambda _: None,
        )

    def close(self):
        self.ledger.close()
        self._resources.close()


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path)
    yield made
    made.close()
