"""What every source of questions keeps: each question is with one process, and none is lost."""

import anyio
import pytest

from pipeline.frames import Answer, AnswerState
from schemas.outcomes import ApiName

NOW = "2031-03-01T09:00:00.000Z"
COUNT = 600


@pytest.fixture
def checks(check_of):
    apis = (ApiName.COP, ApiName.VOP_GATEWAY)
    return [check_of(check=n, api=apis[n % 2], name=f"Payee {n}", account=f"{n:014d}") for n in range(COUNT)]


async def claimed(sources, api):
    """The numbers of the questions that each source hands out for an API, which claim in turn."""
    numbers = [[] for _ in sources]
    left = set(range(len(sources)))
    while left:
        for each in sorted(left):
            chunk = await sources[each].claim(api)
            if chunk is None:
                left.discard(each)
            else:
                numbers[each] += [question.check.check for question in chunk.questions]
    return numbers


def test_each_question_is_claimed_once_by_its_api_and_in_order(store, checks):
    sources = store.sources(checks)

    for api in (ApiName.COP, ApiName.VOP_GATEWAY):
        numbers = anyio.run(claimed, sources, api)
        expected = [check.check for check in checks if check.api is api]
        assert sorted(number for some in numbers for number in some) == expected
        assert all(some == sorted(some) for some in numbers)
        assert sum(bool(some) for some in numbers) == len(sources)


def test_of_an_api_without_questions_there_is_nothing(store, checks):
    [source, *_] = store.sources(checks)

    assert anyio.run(source.claim, ApiName.VOP_STANDARD) is None


def test_a_question_is_known_by_its_key_and_its_attempts(store, checks):
    async def ask_in_vain():
        async with store.ledger.writing():
            for attempt in (1, 2):
                key = store.ledger.question_key(checks[2])
                await store.ledger.intend(key, attempt=attempt, request_id="id", time=NOW)

    anyio.run(ask_in_vain)
    [source, *_] = store.sources(checks)

    async def claim_all():
        while (chunk := await source.claim(ApiName.COP)) is not None:
            for question in chunk.questions:
                yield question

    async def by_check():
        return {question.check: question async for question in claim_all()}

    questions = anyio.run(by_check)

    assert [questions[checks[number]].attempts for number in (0, 2)] == [0, 2]
    assert questions[checks[0]].key == store.ledger.question_key(checks[0])


def test_what_is_given_back_is_there_for_the_next_without_what_was_answered(store, checks):
    [first, *_] = store.sources(checks)

    async def ask_some():
        chunk = await first.claim(ApiName.COP)
        async with store.ledger.writing():
            for question in chunk.questions[:5]:
                await store.ledger.intend(question.key, attempt=1, request_id="id", time=NOW)
                answer = Answer(question.check.check, AnswerState.ANSWERED, "MTCH", None, "id", NOW, 1)
                await store.ledger.settle(question.key, answer)
        await first.give_back()
        return {question.check.check for question in chunk.questions[:5]}

    answered = anyio.run(ask_some)
    [numbers] = anyio.run(claimed, store.sources(checks)[:1], ApiName.COP)

    assert set(numbers) == {check.check for check in checks if check.api is ApiName.COP} - answered


def test_what_is_done_comes_no_more_when_the_rest_is_given_back(store, checks):
    source, *_ = store.sources(checks)

    async def main():
        chunk = await source.claim(ApiName.COP)
        await source.done(chunk.hold)
        await source.give_back()
        return [question.check.check for question in chunk.questions], await claimed([source], ApiName.COP)

    done, [left] = anyio.run(main)
    assert done
    assert not set(done) & set(left)
