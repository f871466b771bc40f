"""What every ledger keeps: an answer is final, and a request's intent is durable before it leaves."""

import anyio
import pytest

from pipeline.frames import Answer, AnswerState, OwnCode
from pipeline.stores.values import (
    FinalAnswer,
    FinishRecord,
    FruitlessQuestion,
    LedgerCounts,
    QuestionHistory,
    ReusedAnswer,
)
from schemas.outcomes import ApiName

NOW = "2031-03-01T09:00:00.000Z"
LATER = "2031-03-01T09:00:01.000Z"


def an_answer(attempts=1, **said):
    return Answer(1, AnswerState.ANSWERED, "MBAM", "Quillan Feathermoor", "id", LATER, attempts)._replace(
        **said
    )


def known(store, *questions):
    return dict(anyio.run(store.ledger.known, questions))


def written(store, *steps):
    """Attempts of one question after the other: ("intend" | "fail" | "settle", question, attempt)."""

    async def main():
        async with store.ledger.writing():
            for step, question, attempt in steps:
                match step:
                    case "intend":
                        await store.ledger.intend(question, attempt=attempt, request_id="id", time=NOW)
                    case "fail":
                        await store.ledger.fail(question, attempt=attempt, code="TIMEOUT_ERROR", time=NOW)
                    case "settle":
                        await store.ledger.settle(question, an_answer(attempt))

    anyio.run(main)


def test_of_a_question_that_was_never_asked_nothing_is_known(store):
    assert known(store, b"q") == {}
    assert store.ledger.counts == LedgerCounts(0, 0, 0)


def test_an_answer_is_known_as_it_came(store):
    written(store, ("intend", b"q", 1), ("settle", b"q", 1))
    store.reopen()

    assert known(store, b"q", b"other") == {
        b"q": QuestionHistory(FinalAnswer(b"q", *an_answer()[1:]), 1, None)
    }
    assert store.ledger.counts == LedgerCounts(1, 1, 0)


@pytest.mark.parametrize("step", ["settle", "fail"])
def test_an_answer_is_final(store, step):
    written(store, ("intend", b"q", 1), ("settle", b"q", 1))

    for _ in range(2):
        with pytest.raises(AssertionError):
            written(store, (step, b"q", 1))
        assert known(store, b"q")[b"q"].answer.code == "MBAM"
        store.reopen()


def test_what_is_no_final_answer_settles_nothing(store):
    async def main():
        async with store.ledger.writing():
            await store.ledger.intend(b"q", attempt=1, request_id="id", time=NOW)
            with pytest.raises(AssertionError):
                await store.ledger.settle(b"q", an_answer(state=AnswerState.UNANSWERED))

    anyio.run(main)
    assert known(store, b"q")[b"q"].answer is None


def test_after_a_crash_a_request_in_doubt_is_attempt_one_and_the_next_is_two(store):
    written(store, ("intend", b"q", 1))
    store.restore(store.snapshot())

    assert known(store, b"q") == {b"q": QuestionHistory(None, 1, None)}
    with pytest.raises(AssertionError):
        written(store, ("intend", b"q", 1))
    written(store, ("intend", b"q", 2), ("settle", b"q", 2))
    assert known(store, b"q")[b"q"].answer.attempts == 2


def test_attempts_are_counted_on_over_runs_and_none_is_skipped(store):
    for attempt in (1, 2, 3):
        written(store, ("intend", b"q", attempt), ("fail", b"q", attempt))
        assert known(store, b"q") == {b"q": QuestionHistory(None, attempt, "TIMEOUT_ERROR")}
        store.reopen()
    with pytest.raises(AssertionError):
        written(store, ("intend", b"q", 5))


def test_a_failure_is_that_of_the_latest_request(store):
    written(store, ("intend", b"q", 1), ("fail", b"q", 1), ("intend", b"q", 2))

    assert known(store, b"q") == {b"q": QuestionHistory(None, 2, None)}


def test_nothing_is_written_about_a_request_that_was_not_intended(store):
    for step in ("fail", "settle"):
        with pytest.raises(AssertionError):
            written(store, (step, b"q", 1))


def test_what_was_acknowledged_is_there_after_a_kill_at_any_moment(store):
    """Many tasks at once, as they share their commits."""
    sent, answered, snapshots = set(), set(), []

    async def ask(number):
        question = number.to_bytes(32)
        await store.ledger.intend(question, attempt=1, request_id="id", time=NOW)
        sent.add(question)
        if number % 2:
            await store.ledger.settle(question, an_answer())
            answered.add(question)
        if number % 100 == 0:
            snapshots.append((set(sent), set(answered), store.snapshot()))

    async def main():
        async with store.ledger.writing(), anyio.create_task_group() as tasks:
            for number in range(500):
                tasks.start_soon(ask, number)

    anyio.run(main)
    assert len(snapshots) == 5
    everything = [number.to_bytes(32) for number in range(500)]
    for sent_then, answered_then, snapshot in snapshots:
        assert sent_then
        store.restore(snapshot)
        found = known(store, *everything)
        assert sent_then <= set(found)
        assert answered_then <= {question for question, one in found.items() if one.answer is not None}


def test_as_many_questions_as_one_likes_are_looked_up_and_what_came_since_too(store):
    questions = [number.to_bytes(32) for number in range(2_500)]
    written(store, *(("intend", question, 1) for question in questions[::5]))
    assert set(known(store, *questions)) == set(questions[::5])

    written(store, ("intend", questions[1], 1), ("settle", questions[0], 1))

    found = known(store, *questions)
    assert set(found) == {questions[1], *questions[::5]}
    assert found[questions[0]].answer is not None


def test_a_question_is_known_by_what_it_says_and_not_by_its_number(store, check_of):
    key = store.ledger.question_key(check_of())
    same, other = check_of(check=2), check_of(name="Ada Quillen")
    store.reopen()

    assert store.ledger.question_key(same) == key
    assert store.ledger.question_key(other) != key
    assert store.ledger.question_key(check_of(api=ApiName.VOP_GATEWAY)) != key
    assert len(key) == 32


def test_outside_of_writing_nothing_is_written_and_inside_nothing_is_read(store):
    async def main():
        with pytest.raises(AssertionError):
            await store.ledger.intend(b"q", attempt=1, request_id="id", time=NOW)
        async with store.ledger.writing():
            for reading in (store.ledger.known([b"q"]), store.ledger.fruitless()):
                with pytest.raises(AssertionError):
                    await reading

    anyio.run(main)


def test_an_answer_that_is_used_again_is_one_and_counts_its_own_requests(store):
    written(store, ("intend", b"asked", 1), ("fail", b"asked", 1))
    used = [ReusedAnswer(question, "MTCH", "id-0", NOW, "ab", LATER) for question in (b"asked", b"new")]
    store.ledger.reuse(used)
    store.reopen()

    found = known(store, b"asked", b"new")
    assert [one.answer.state for one in found.values()] == [AnswerState.REUSED] * 2
    assert {question: one.answer.attempts for question, one in found.items()} == {b"asked": 1, b"new": 0}
    assert found[b"new"].answer == FinalAnswer(b"new", AnswerState.REUSED, "MTCH", None, "id-0", NOW, 0)
    assert list(store.ledger.answers()) == [one.answer for one in found.values()]
    assert store.ledger.counts == LedgerCounts(1, 0, 2)


def test_runs_that_got_nowhere_with_a_question_are_counted_by_their_last_reply_about_it(store):
    async def one_run(minute, *codes):
        time = f"2031-03-01T09:{minute:02}:00.000Z"
        attempts = (await store.ledger.known([b"q"])).get(b"q", QuestionHistory(None, 0, None)).attempts
        async with store.ledger.writing():
            for attempt, code in enumerate(codes, start=attempts + 1):
                await store.ledger.intend(b"q", attempt=attempt, request_id="id", time=time)
                await store.ledger.fail(b"q", attempt=attempt, code=code, time=time)
        ended = f"2031-03-01T09:{minute:02}:30.000Z"
        await store.end_of_a_run(ended)
        return await store.ledger.fruitless()

    assert anyio.run(one_run, 1, "HTTP_401", "HTTP_401") == {b"q": FruitlessQuestion(1, "HTTP_401", 2)}
    assert anyio.run(one_run, 2, "HTTP_403", OwnCode.NETWORK) == {b"q": FruitlessQuestion(1, "HTTP_401", 2)}
    assert anyio.run(one_run, 3, OwnCode.CONTRACT) == {b"q": FruitlessQuestion(2, OwnCode.CONTRACT, 5)}
    written(store, ("intend", b"q", 6), ("settle", b"q", 6))
    assert anyio.run(store.ledger.fruitless) == {}


def test_a_run_is_finished_once_every_question_has_its_answer(folder_store):
    store = folder_store
    written(store, ("intend", b"q", 1))
    with pytest.raises(AssertionError):
        store.ledger.finish(NOW, question_count=1, unanswered_count=0, outcome_sha256="f")
    store.ledger.finish(NOW, question_count=1, unanswered_count=1, outcome_sha256="f")
    assert store.ledger.finished_at is None

    written(store, ("settle", b"q", 1))
    last = store.ledger.finish(LATER, question_count=1, unanswered_count=0, outcome_sha256="e")

    store.reopen()
    assert store.ledger.last_finish == last == FinishRecord(LATER, 1, 0, "e")
    assert store.ledger.finished_at == LATER
