"""A shared ledger on a database of its own, for tests of what several processes do with it: `ledger_desk`."""

import os
from contextlib import ExitStack
from uuid import uuid4

import anyio
import polars as pl
import pytest
from postgres import LEDGER_KEY, RUNNER, clocks

from pipeline.frames import CHECKS, Answer, AnswerState, Check
from pipeline.stores.values import PlannedChunk, RunIdentity
from schemas.outcomes import ApiName

NOW = "2031-03-01T09:00:00.000Z"
LATER = "2031-03-01T09:00:01.000Z"
PROFILE = """
[profiles.production]
ledger = "{url}"
ledger_key_env = "LEDGER_KEY"

[profiles.production.cop]
server = "production"
base_url = "https://cop.example"
token_url = "https://login.example/t/oauth2/v2.0/token"
client_id = "client"
client_secret_env = "PRECHECK_TEST_SECRET"
scope = "scope/.default"
"""
"""A configuration whose ledger is at `url`."""
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")


def checks_of(count):
    """So many questions, none of which is like another."""
    rows = [
        Check(number, ApiName.COP, f"{number:014}", f"Payee {number}", "Personal", *[None] * 8)
        for number in range(1, count + 1)
    ]
    return pl.DataFrame(rows, schema=CHECKS, orient="row")


class LedgerDesk:
    """One ledger, and the processes that a test plays on it."""

    def __init__(self, postgres, database):
        self.postgres, self.database = postgres, database
        self._resources = ExitStack()
        self.checks = checks_of(0)

    def url(self, user=RUNNER, port=None):
        """The address of the ledger."""
        return self.postgres.url(self.database, user, port)

    def store(self, *, port=None, wait_max_s=20.0, user=RUNNER, key=LEDGER_KEY):
        """Open the ledger, as another process would."""
        from pipeline.stores.postgres.address import parsed
        from pipeline.stores.postgres.store import PostgresStore
        from pipeline.stores.protocols import AskingProcess

        process = AskingProcess(uuid4(), "host", os.getpid(), "0.1.0")
        address = parsed(self.url(user, port))
        return self._resources.enter_context(PostgresStore.open(address, key, process, clocks(wait_max_s)))

    def begin(self, store, count, *, chunk_size=10):
        """A run with so many questions and its first round: the run."""
        self.checks = checks_of(count)
        run = store.join(IDENTITY, store.plan_of([self.checks]), new_id=uuid4())
        chunks = [
            PlannedChunk("cop", 0, range(start, min(start + chunk_size, count)))
            for start in range(0, count, chunk_size)
        ]
        with store.shared_run(run, lambda _: self.checks) as shared:
            anyio.run(lambda: shared.open_round(chunks, after=0))
        return run

    def shared(self, store, run, **options):
        """A process's view of the run."""
        return self._resources.enter_context(store.shared_run(run, lambda _: self.checks, **options))

    def rows(self, query, *values):
        """What a query gives the superuser."""
        with self.postgres.connect(self.database) as db:
            return db.execute(query, values).fetchall()

    def close(self):
        self._resources.close()


async def ask(shared, question, *, name=None, request_id=None):
    """Ask one question and settle it: its answer."""
    request_id = request_id or str(uuid4())
    await shared.intend(question.key, attempt=question.attempts + 1, request_id=request_id, time=NOW)
    answer = answer_to(question, request_id, name)
    await shared.settle(question.key, answer)
    return answer


def answer_to(question, request_id, name=None):
    """The answer to the next attempt at a question."""
    said = AnswerState.ANSWERED, "MBAM" if name else "MTCH", name, request_id, LATER
    return Answer(question.check.check, *said, question.attempts + 1)


async def ask_all(shared, *, name=None):
    """Claim and ask until nothing is free: the numbers of the checks that were asked."""
    asked = []
    async with shared.writing():
        while (chunk := await shared.claim(ApiName.COP)) is not None:
            async with anyio.create_task_group() as tasks:
                for question in chunk.questions:
                    tasks.start_soon(lambda question=question: ask(shared, question, name=name))
            asked += [question.check.check for question in chunk.questions]
            await shared.done(chunk.hold)
    return asked


@pytest.fixture
def ledger_desk(postgres, ledger_database):
    desk = LedgerDesk(postgres, ledger_database)
    yield desk
    desk.close()
