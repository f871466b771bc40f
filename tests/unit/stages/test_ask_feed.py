"""The questions of one API, as its workers take them."""

import anyio
import anyio.lowlevel
import pytest
from virtual_time import VIRTUAL

from pipeline.stages.ask.feed import QuestionFeed
from pipeline.stores.values import ChunkLease, Question, QuestionChunk
from schemas.outcomes import ApiName


class Source:
    """Chunks of some sizes, each after a wait."""

    is_shared = True

    def __init__(self, check_of, *sizes, wait_s=0.0) -> None:
        self.claims = []
        self.done_holds = []
        self.lost_holds = []
        self.given_back = []
        self._wait_s = wait_s
        self._chunks = [
            QuestionChunk(
                ChunkLease(number, 1),
                [Question(check_of(check=10 * number + n), b"", 0, False) for n in range(size)],
            )
            for number, size in enumerate(sizes)
        ]

    async def claim(self, api):
        self.claims.append(api)
        await anyio.sleep(self._wait_s)
        return self._chunks.pop(0) if self._chunks else None

    async def done(self, hold):
        self.done_holds.append(hold)

    def holds(self, hold):
        return hold not in self.lost_holds

    async def give_back(self, api):
        self.given_back.append(api)


@pytest.fixture
def source(check_of):
    return lambda *sizes, **options: Source(check_of, *sizes, **options)


def test_many_workers_take_each_question_once_and_claim_each_chunk_once(source):
    given = source(3, 0, 2, wait_s=0.01)
    feed = QuestionFeed(given, ApiName.COP)
    numbers = []

    async def work():
        while (taken := await feed.take()) is not None:
            numbers.append(taken.question.check.check)
            await anyio.lowlevel.checkpoint()

    async def main():
        async with anyio.create_task_group() as workers:
            for _ in range(8):
                workers.start_soon(work)

    VIRTUAL.run(main)
    assert numbers == [0, 1, 2, 20, 21]
    assert given.claims == [ApiName.COP] * 4
    assert feed.count == 5


def test_a_slow_question_keeps_nobody_from_the_next_chunk(source):
    feed = QuestionFeed(source(2, 2), ApiName.COP)

    async def main():
        return [(await feed.take()).question.check.check for _ in range(4)]

    assert VIRTUAL.run(main) == [0, 1, 10, 11], "and none has come to its end yet"


def test_a_chunk_is_done_with_its_last_question_whichever_that_is(source):
    given = source(2, 1)
    feed = QuestionFeed(given, ApiName.COP)
    done = []

    async def main():
        taken = [await feed.take() for _ in range(3)]
        for number in (1, 2, 0):
            await feed.ended(taken[number].hold)
            done.append(len(given.done_holds))

    VIRTUAL.run(main)
    assert done == [0, 1, 2]
    assert given.done_holds == [ChunkLease(1, 1), ChunkLease(0, 1)]


def test_how_many_there_were_is_not_known_while_there_may_be_more(source):
    feed = QuestionFeed(source(1), ApiName.COP)

    async def main():
        await feed.take()
        before = feed.count
        assert await feed.take() is None
        return before, feed.count

    assert VIRTUAL.run(main) == (None, 1)


@pytest.mark.parametrize("who_knows", ["ledger", "source"])
def test_of_a_chunk_that_another_process_has_nothing_more_is_taken_and_it_is_never_done(source, who_knows):
    given = source(3, 1)
    feed = QuestionFeed(given, ApiName.COP)

    async def main():
        first = await feed.take()
        if who_knows == "ledger":
            feed.lose(first.hold)
        else:
            given.lost_holds.append(first.hold)
        second = await feed.take()
        held = [feed.has(taken.hold) for taken in (first, second)]
        for taken in (first, second):
            await feed.ended(taken.hold)
        return second.question.check.check, held

    assert VIRTUAL.run(main) == (10, [False, True])
    assert given.done_holds == [ChunkLease(1, 1)]


def test_what_is_not_done_is_given_back_and_where_all_is_done_nothing_is(source):
    given = source(1, 1)
    feed = QuestionFeed(given, ApiName.COP)

    async def main():
        await feed.ended((await feed.take()).hold)
        await feed.give_back()
        none = list(given.given_back)
        await feed.take()
        await feed.give_back()
        return none

    assert VIRTUAL.run(main) == []
    assert given.given_back == [ApiName.COP]
