"""An observer sees each question on its way, at the moments that it is called for."""

from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import count
from uuid import UUID

import anyio
import pytest
from memory_stores import MemoryLedger, MemoryQuestions, MemoryQuota, MemorySharedRun
from senders import FakeSender, always, problem
from virtual_time import VIRTUAL

from pipeline.apis import cop
from pipeline.errors import LeaseLostError
from pipeline.stages.ask import ask
from pipeline.stages.ask.concurrency import ConcurrencyLimit
from pipeline.stages.ask.values import ApiChannel, AskingContext, AskingTally
from pipeline.stores.leased_shares import WholeShare
from pipeline.stores.values import RunIdentity, ServerAccount
from pipeline.transport.rate_limiter import Pace
from pipeline.transport.retry import NetworkFailure
from schemas.outcomes import ApiName

NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)


class Notebook:
    """An observer that notes what it sees of each question, on a page of its own."""

    def __init__(self):
        self.pages = []

    def asking(self, _channels, _tally):
        return nullcontext()

    def follow(self, api):
        page = [api.value]
        self.pages.append(page)
        return lambda event: page.append((type(event).__name__.lower(), *map(str, event)))


@pytest.fixture
def asked(check_of):
    """`asked(sender)`: ask some questions, one at a time; the pages of a notebook."""

    def run(sender, *, question_count=1, quota=None, shared=MemorySharedRun):
        identity = RunIdentity("1f", "2e", "sandbox", "1")
        ledger = MemoryLedger(identity, "2031-03-01T09:00:00.000Z")
        checks = [check_of(check=n, name=f"Payee {n}", account=f"{n:014d}") for n in range(question_count)]
        notebook = Notebook()
        source = shared(MemoryQuestions(checks, ledger, chunk_size=1), quota)
        source.notebook = notebook
        numbers = (str(UUID(int=number)) for number in count())
        world = AskingContext(
            lambda: NOON,
            VIRTUAL.monotonic,
            lambda: 0.0,
            lambda: next(numbers),
            anyio.Event(),
            AskingTally(),
            notebook,
        )
        places = ConcurrencyLimit(1, 5000, VIRTUAL.monotonic)
        share = WholeShare(ServerAccount("s", ApiName.COP, 5000, 1, 1.0, 5.0))
        limits = (share, Pace(5000, clock=VIRTUAL.monotonic), places, None, 1)
        channel = ApiChannel(cop.API, sender, *limits, attempts_max=3, deadline_s=5)
        VIRTUAL.run(ask, source, {ApiName.COP: channel}, source, world)
        return notebook.pages

    return run


def test_each_request_of_a_question_is_seen_to_its_answer(asked):
    [page] = asked(FakeSender(always(NetworkFailure("deadline"), problem(500), None)))

    requests = [
        (("wait",), ("intend", str(n), str(UUID(int=n - 1))), ("send",), ("receive", reply), ("record",))
        for n, reply in ((1, "deadline"), (2, "500"), (3, "200"))
    ]
    assert page[0] == "cop"
    assert page[1:-1] == [line for lines in requests for line in lines]
    assert page[-1][0] == "end"
    assert page[-1][2] == "match"
    assert str(UUID(int=2)) in page[-1][1]


class Slow(MemorySharedRun):
    """Notes when a write has become durable."""

    async def intend(self, *question, **facts):
        await super().intend(*question, **facts)
        self.notebook.pages[-1].append("intent is durable")

    async def settle(self, *answer):
        await super().settle(*answer)
        self.notebook.pages[-1].append("answer is durable")


def test_a_request_is_seen_to_leave_and_to_be_recorded_once_that_is_durable(asked):
    [page] = asked(FakeSender(always(None)), shared=Slow)

    events = [line if isinstance(line, str) else line[0] for line in page]
    assert events == [
        *("cop", "wait", "intend", "intent is durable", "send"),
        *("receive", "answer is durable", "record", "end"),
    ]


class Lost(MemorySharedRun):
    async def settle(self, *answer):
        del answer
        raise LeaseLostError


def test_a_question_that_another_process_has_now_has_no_end_here(asked):
    [page] = asked(FakeSender(always(None)), shared=Lost)
    assert [line[0] for line in page[1:]] == ["wait", "intend", "send", "receive", "record"]


def test_a_request_without_a_unit_of_the_cap_is_not_seen_to_leave(asked):
    pages = asked(FakeSender(always(None)), question_count=2, quota=MemoryQuota(1, NOON))
    assert [[line[0] for line in page[1:]].count("send") for page in pages] == [1, 0]
