"""One run, several processes: each question is with one of them, and only its fence lets a process write."""

import signal
import subprocess
import sys
import time
from uuid import uuid4

import anyio
import anyio.lowlevel
import pytest
from refusals import refused
from shared_ledgers import IDENTITY, NOW, answer_to, ask, ask_all, checks_of

from pipeline.errors import CapSpentError, ConfigurationError, LeaseLostError, UsageError
from pipeline.stores.postgres.lines import recorded
from pipeline.stores.protocols import AccountCap, QuestionPlan
from pipeline.stores.values import FruitlessQuestion, PlannedChunk, RoundState
from schemas.outcomes import ApiName

LEASE_S = 0.8


def two(ledger_desk, count, **options):
    """Two processes on one run of so many questions."""
    stores = [ledger_desk.store(), ledger_desk.store()]
    run = ledger_desk.begin(stores[0], count)
    return [ledger_desk.shared(store, run, **options) for store in stores]


def take(store, api="cop"):
    return anyio.run(store.claim, ApiName(api))


def numbers(chunk):
    return [question.check.check for question in chunk.questions]


def test_two_processes_ask_each_question_once(ledger_desk):
    first, second = two(ledger_desk, 300)
    asked = {}

    async def main():
        async with anyio.create_task_group() as tasks:
            for name, shared in (("first", first), ("second", second)):

                async def one(name=name, shared=shared):
                    asked[name] = await ask_all(shared)

                tasks.start_soon(one)

    anyio.run(main)
    assert asked["first"]
    assert asked["second"]
    assert sorted(asked["first"] + asked["second"]) == list(range(1, 301))
    assert first.counts == second.counts == (300, 300, 0)


def test_what_a_dead_process_held_is_free_after_its_lease_with_its_history(ledger_desk):
    dead, alive = two(ledger_desk, 10, lease_s=LEASE_S)

    async def die():
        async with dead.writing():
            chunk = await dead.claim(ApiName.COP)
            await ask(dead, chunk.questions[0])
            await dead.intend(chunk.questions[1].key, attempt=1, request_id="in doubt", time=NOW)

    anyio.run(die)
    assert take(alive) is None
    dead.close()
    time.sleep(LEASE_S * 1.2)
    chunk = take(alive)
    assert numbers(chunk) == [*range(3, 11), 2]
    assert [question.attempts for question in chunk.questions] == [0] * 8 + [1]


def test_a_lease_is_kept_for_as_long_as_the_process_lives(ledger_desk):
    slow, other = two(ledger_desk, 10, lease_s=LEASE_S)
    chunk = take(slow)
    time.sleep(LEASE_S * 3)

    assert take(other) is None
    assert slow.holds(chunk.hold)


def test_after_a_takeover_no_write_of_the_former_holder_counts(ledger_desk):
    former, later = two(ledger_desk, 10, lease_s=60)

    async def main():
        async with former.writing(), later.writing():
            mine = await former.claim(ApiName.COP)
            for question in mine.questions[:2]:
                await former.intend(question.key, attempt=1, request_id="mine", time=NOW)
            ledger_desk.rows("UPDATE precheck.chunk SET lease_until = now() - interval '1 s' RETURNING 1")
            theirs = await later.claim(ApiName.COP)
            assert theirs.hold.chunk == mine.hold.chunk
            assert theirs.hold.fence > mine.hold.fence
            *_, again, _ = theirs.questions
            assert (again.key, again.attempts) == (mine.questions[0].key, 1)
            await ask(later, again, request_id="theirs")
            with pytest.raises(LeaseLostError):
                await former.settle(mine.questions[0].key, answer_to(mine.questions[0], "mine"))
            with pytest.raises(LeaseLostError):
                await former.fail(mine.questions[1].key, attempt=1, code="HTTP_500", time=NOW)
            with pytest.raises(LeaseLostError):
                await former.intend(mine.questions[2].key, attempt=1, request_id="mine", time=NOW)
            assert not former.holds(mine.hold)
            await former.done(mine.hold)
            await former.give_back()
            return (await later.latest_round()).undone_count

    assert anyio.run(main) == 1
    rows = ledger_desk.rows(
        "SELECT request_id FROM precheck.answer JOIN precheck.intent USING (question, attempt)"
    )
    assert rows == [("theirs",)]


def test_of_a_batch_only_what_is_still_held_is_written(ledger_desk):
    former, later = two(ledger_desk, 20, lease_s=60)

    async def main():
        lost, kept = await former.claim(ApiName.COP), await former.claim(ApiName.COP)
        ledger_desk.rows(
            "UPDATE precheck.chunk SET lease_until = now() - interval '1 s' WHERE chunk = 1 RETURNING 1"
        )
        assert (await later.claim(ApiName.COP)).hold.chunk == lost.hold.chunk == 1
        refused = []

        async def one(question):
            try:
                await former.intend(question.key, attempt=1, request_id="id", time=NOW)
            except LeaseLostError:
                refused.append(question.check.check)

        async with former.writing(), anyio.create_task_group() as tasks:
            for question in (*lost.questions, *kept.questions):
                tasks.start_soon(one, question)
        return refused, numbers(lost)

    refused, lost = anyio.run(main)
    assert sorted(refused) == lost
    assert ledger_desk.rows("SELECT count(*) FROM precheck.intent") == [(10,)]


STOPPED = """
import sys, uuid, anyio, polars as pl
sys.path.insert(0, "tests")
from shared_ledgers import LedgerDesk, answer_to, checks_of
from pipeline.errors import LeaseLostError
from schemas.outcomes import ApiName

class Postgres:
    def url(self, database, user, port): return sys.argv[1]

async def main(shared):
    async with shared.writing():
        chunk = await shared.claim(ApiName.COP)
        for question in chunk.questions[:2]:
            await shared.intend(question.key, attempt=1, request_id="stopped", time="2031")
        print("holds", chunk.hold.fence, flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        for write in (
            lambda: shared.settle(chunk.questions[0].key, answer_to(chunk.questions[0], "stopped")),
            lambda: shared.fail(chunk.questions[1].key, attempt=1, code="HTTP_500", time="2031"),
            lambda: shared.intend(chunk.questions[2].key, attempt=1, request_id="stopped", time="2031"),
        ):
            try:
                await write()
                print("written", flush=True)
            except LeaseLostError:
                print("lost", flush=True)

desk = LedgerDesk(Postgres(), "")
store = desk.store()
desk.checks = checks_of(10)
anyio.run(main, desk.shared(store, store.find(uuid.UUID(sys.argv[2])), lease_s=float(sys.argv[3])))
desk.close()
"""


def test_a_process_that_was_stopped_for_longer_than_its_lease_writes_nothing(ledger_desk, pytestconfig):
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 10)
    mine = ledger_desk.shared(store, run, lease_s=LEASE_S)
    url = ledger_desk.postgres.url(ledger_desk.database)
    command = [sys.executable, "-c", STOPPED, url, str(run.id), str(LEASE_S)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=pytestconfig.rootpath) as stopped:
        before = int(stopped.stdout.readline().removeprefix("holds "))
        stopped.send_signal(signal.SIGSTOP)
        time.sleep(LEASE_S * 1.2)

        async def take_over():
            async with mine.writing():
                chunk = await mine.claim(ApiName.COP)
                await ask(mine, chunk.questions[0], request_id="mine")
                return chunk.hold.fence

        assert anyio.run(take_over) > before
        stopped.send_signal(signal.SIGCONT)
        said, _ = stopped.communicate("go on\n", timeout=60)
        assert said.split() == ["lost"] * 3
        assert stopped.returncode == 0
    [[answered]] = ledger_desk.rows(
        "SELECT request_id FROM precheck.answer JOIN precheck.intent USING (question, attempt)"
    )
    assert answered == "mine"


def test_what_is_in_flight_when_its_chunk_is_given_back_still_lands(ledger_desk):
    first, second = two(ledger_desk, 10)

    async def main():
        async with first.writing():
            chunk = await first.claim(ApiName.COP)
            await first.intend(chunk.questions[0].key, attempt=1, request_id="id", time=NOW)
            await first.give_back()
            await first.settle(chunk.questions[0].key, answer_to(chunk.questions[0], "id"))
            with pytest.raises(LeaseLostError):
                await first.intend(chunk.questions[1].key, attempt=1, request_id="id", time=NOW)
        return numbers(await second.claim(ApiName.COP))

    assert anyio.run(main) == list(range(2, 11))


def test_chunks_are_given_back_by_their_api(ledger_desk):
    first, second = two(ledger_desk, 20)
    held = [take(first), take(first)]
    anyio.run(first.give_back, ApiName.VOP_GATEWAY)
    assert take(second) is None
    anyio.run(first.give_back, ApiName.COP)
    assert not any(first.holds(chunk.hold) for chunk in held)
    for mine in held:
        theirs = take(second).hold
        assert theirs.chunk == mine.hold.chunk
        assert theirs.fence > mine.hold.fence


def test_what_may_be_claimed_is_seen_without_a_claim(ledger_desk):
    first, second = two(ledger_desk, 20)

    async def main():
        async def free(api=ApiName.COP):
            return await first.has_free(api), await second.has_free(api)

        assert await free() == (True, True)
        assert await free(ApiName.VOP_GATEWAY) == (False, False)
        one, other = await first.claim(ApiName.COP), await second.claim(ApiName.COP)
        assert await free() == (False, False)
        await first.give_back()
        assert await free() == (True, True)
        assert (await second.claim(ApiName.COP)).hold.chunk == one.hold.chunk
        await second.done(other.hold)
        assert await free() == (False, False), "what is done is not free"
        await second.give_back()
        assert await second.end_round(1, is_over=True)
        assert await free() == (False, False), "nor what is of a round that has ended"

    anyio.run(main)


def test_what_was_taken_over_is_claimed_again_once_nothing_of_its_api_is_under_way(ledger_desk):
    slept, other = two(ledger_desk, 10)

    async def main():
        async with slept.writing(), other.writing():
            mine = await slept.claim(ApiName.COP)
            ledger_desk.rows("UPDATE precheck.chunk SET lease_until = now() - interval '1 s' RETURNING 1")
            assert await other.claim(ApiName.COP) is not None
            with pytest.raises(LeaseLostError):
                await slept.intend(mine.questions[0].key, attempt=1, request_id="mine", time=NOW)
            await other.give_back()
            assert not await slept.has_free(ApiName.COP), "requests for it may be out"
            await slept.give_back(ApiName.VOP_GATEWAY)
            assert not await slept.has_free(ApiName.COP)
            await slept.give_back(ApiName.COP)
            assert await slept.has_free(ApiName.COP)
            again = await slept.claim(ApiName.COP)
            await slept.intend(again.questions[0].key, attempt=1, request_id="again", time=NOW)
            await slept.settle(again.questions[0].key, answer_to(again.questions[0], "again"))

    anyio.run(main)


def test_what_a_claim_that_was_cut_off_brings_is_given_back(ledger_desk, wait_until):
    """As where a worker is asked to stop while its claim is with the database."""
    first, second = two(ledger_desk, 10)

    def is_waiting():
        [[count]] = ledger_desk.rows(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND query LIKE '%%SET holder%%'"
        )
        return count > 0

    async def main():
        await first.latest_round()  # connected, and seen
        with ledger_desk.postgres.connect(ledger_desk.database) as another:
            with another.transaction():
                another.execute("LOCK TABLE precheck.chunk IN EXCLUSIVE MODE")
                async with anyio.create_task_group() as claiming:
                    claiming.start_soon(first.claim, ApiName.COP)
                    await anyio.to_thread.run_sync(wait_until, is_waiting)
                    claiming.cancel_scope.cancel()
            await first.give_back()
        return numbers(await second.claim(ApiName.COP))

    assert anyio.run(main) == list(range(1, 11))


# Rounds


def test_a_round_is_opened_by_one_and_ends_when_nothing_is_undone(ledger_desk):
    first, second = two(ledger_desk, 20)
    again = [PlannedChunk("cop", 0, [0])]

    async def main():
        assert await first.latest_round() == RoundState(1, is_open=True, undone_count=2, free_count=2)
        assert not await second.open_round(again, after=0)
        assert not await second.open_round(again, after=1)
        chunk = await first.claim(ApiName.COP)
        assert await first.latest_round() == RoundState(1, is_open=True, undone_count=2, free_count=1)
        assert not await second.end_round(1)
        assert not await second.end_round(1, is_over=True)  # one of its chunks is held
        await first.give_back()
        assert not await second.end_round(1)
        assert await second.end_round(1, is_over=True)
        assert await first.end_round(1)
        assert await first.claim(ApiName.COP) is None  # of a round that has ended
        assert not await first.open_round(again, after=0)  # planned before that one
        assert await first.open_round(again, after=1)
        assert not await second.open_round(again, after=1)
        assert numbers(await second.claim(ApiName.COP)) == [1]
        return chunk

    anyio.run(main)


def test_who_sleeps_beyond_the_end_of_a_round_has_lost_its_chunks_as_their_questions_are_in_the_next(
    ledger_desk,
):
    slept, other = two(ledger_desk, 2)

    async def main():
        async with slept.writing(), other.writing():
            mine = await slept.claim(ApiName.COP)
            first, second = mine.questions
            await slept.intend(first.key, attempt=1, request_id="mine", time=NOW)
            ledger_desk.rows("UPDATE precheck.chunk SET lease_until = now() - interval '1 s' RETURNING 1")
            assert await other.end_round(1, is_over=True)
            assert await other.open_round([PlannedChunk("cop", 0, [0, 1])], after=1)
            theirs = await other.claim(ApiName.COP)
            assert [(question.key, question.attempts) for question in theirs.questions] == [
                (second.key, 0),
                (first.key, 1),
            ]
            await other.intend(first.key, attempt=2, request_id="theirs", time=NOW)
            with pytest.raises(LeaseLostError):
                await slept.settle(first.key, answer_to(first, "mine"))
            with pytest.raises(LeaseLostError):
                await slept.intend(second.key, attempt=1, request_id="mine", time=NOW)
            await other.settle(first.key, answer_to(theirs.questions[1], "theirs"))

    anyio.run(main)
    assert take(slept) is None


def test_a_question_that_rounds_got_nowhere_with_is_suspect_and_counted_by_rounds_that_have_ended(
    ledger_desk,
):
    first, second = two(ledger_desk, 1)

    async def fail():
        async with first.writing():
            chunk = await first.claim(ApiName.COP)
            question, *_ = chunk.questions
            attempt = question.attempts + 1
            await first.intend(question.key, attempt=attempt, request_id="id", time=NOW)
            await first.fail(question.key, attempt=attempt, code="HTTP_403", time=NOW)
            await first.done(chunk.hold)
        return question

    async def main():
        question = await fail()
        assert not question.is_suspect
        assert await second.fruitless() == {}
        assert await second.end_round(1)
        assert await second.fruitless() == {question.key: FruitlessQuestion(1, "HTTP_403", 1)}
        await second.open_round([PlannedChunk("cop", 0, [0])], after=1)
        assert (await fail()).is_suspect
        assert await first.end_round(2)
        return (await second.fruitless())[question.key]

    assert anyio.run(main) == FruitlessQuestion(2, "HTTP_403", 2)


def test_what_was_asked_before_comes_last_in_its_chunk(ledger_desk):
    first, second = two(ledger_desk, 4)

    async def main():
        async with first.writing():
            chunk = await first.claim(ApiName.COP)
            for question in chunk.questions[:3]:
                await first.intend(question.key, attempt=1, request_id=str(question.check.check), time=NOW)
            for question in chunk.questions[:2]:
                await first.fail(question.key, attempt=1, code="SERVER_ERROR", time=NOW)
            await first.give_back()
        return await second.claim(ApiName.COP)

    assert numbers(anyio.run(main)) == [4, 1, 2, 3]


# Joining


def joined(store, **said):
    plan = {"plan": QuestionPlan(b"plan", 1), "new_id": uuid4(), **said}
    identity = plan.pop("identity", IDENTITY)
    return store.join(identity, **plan)


def test_an_unfinished_run_is_joined_and_after_it_has_finished_a_new_one_begins(ledger_desk):
    store, other = ledger_desk.store(), ledger_desk.store()
    run = joined(store)
    assert joined(other) == run
    assert joined(other, identity=IDENTITY._replace(environment="production")).id != run.id

    assert store.mark_finished(run)
    later = joined(other)
    assert later.id != run.id
    again = joined(other, run_id=run.id)  # the run of a folder
    assert again.id == run.id
    assert again.finished_at is not None


def test_a_run_is_joined_only_by_who_asks_the_same_questions(ledger_desk):
    store = ledger_desk.store()
    run = joined(store, plan=store.plan_of([checks_of(3)]))
    assert joined(store, plan=store.plan_of([checks_of(3)])).id == run.id
    newer = IDENTITY._replace(tool_version="0.2.0")
    for other in ([checks_of(2)], [checks_of(3).reverse()], [checks_of(3), checks_of(0)]):
        with refused(
            ConfigurationError, "stores.run_of_other_version", tool_version="0.1.0", tool_version_2="0.2.0"
        ):
            joined(store, identity=newer, plan=store.plan_of(other))


def test_the_run_of_a_folder_is_in_this_ledger_and_of_this_file(ledger_desk):
    store = ledger_desk.store()
    run = joined(store)
    with refused(UsageError, "stores.run_of_folder_missing"):
        joined(store, run_id=uuid4())
    with refused(UsageError, "stores.run_of_other_file", id=str(run.id)):
        joined(store, run_id=run.id, identity=IDENTITY._replace(input_sha256="3d"))
    assert store.find(uuid4()) is None
    assert store.find(run.id) == run


def test_the_lines_of_a_run_come_in_the_order_in_which_they_were_recorded_however_many(ledger_desk):
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 30)
    anyio.run(ask_all, ledger_desk.shared(store, run))
    in_order = [bytes(key) for (key,) in ledger_desk.rows("SELECT question FROM precheck.intent ORDER BY id")]
    lines = recorded(store.database, store.keys, run, at_once=7)
    assert [line.question for line in lines] == in_order
    assert len(in_order) == 30


# Units of a cap


def test_an_intent_takes_a_unit_or_is_not_written_and_none_is_taken_under_a_lost_lease(ledger_desk):
    former, later = two(ledger_desk, 20, caps={"cop": AccountCap("s", 6, "utc_day")}, lease_s=60)

    async def main():
        lost = await former.claim(ApiName.COP)
        ledger_desk.rows(
            "UPDATE precheck.chunk SET lease_until = now() - interval '1 s' WHERE chunk = 1 RETURNING 1"
        )
        await later.claim(ApiName.COP)
        chunk = await later.claim(ApiName.COP)
        spent = []

        async def one(shared, question):
            try:
                await shared.intend(question.key, attempt=1, request_id="id", time=NOW)
            except CapSpentError:
                spent.append("cap")
            except LeaseLostError:
                spent.append("lease")

        async with former.writing(), anyio.create_task_group() as tasks:
            for question in lost.questions:
                tasks.start_soon(one, former, question)
        assert ledger_desk.rows("SELECT count FROM precheck.units") == []
        async with later.writing(), anyio.create_task_group() as tasks:
            for question in chunk.questions:
                tasks.start_soon(one, later, question)
        return spent

    spent = anyio.run(main)
    assert spent == ["lease"] * 10 + ["cap"] * 4
    assert ledger_desk.rows("SELECT count(*) FROM precheck.intent") == [(6,)]


def test_lines_whose_writer_was_cancelled_are_written_by_another_that_joined(ledger_desk):
    """The first to join a batch writes it for all; where it is cancelled, the others have their lines."""
    shared, _ = two(ledger_desk, 3)

    async def main():
        async with shared.writing():
            chunk = await shared.claim(ApiName.COP)
            first, *others = chunk.questions

            async def intend(question):
                await shared.intend(question.key, attempt=1, request_id=str(uuid4()), time=NOW)

            async with anyio.create_task_group() as waiting, anyio.create_task_group() as writer:
                writer.start_soon(intend, first)
                for question in others:
                    waiting.start_soon(intend, question)
                await anyio.lowlevel.checkpoint()  # they have joined, and it waits for more
                writer.cancel_scope.cancel()
            for question in others:
                await shared.settle(question.key, answer_to(question, None))

    with_time = time.monotonic()
    anyio.run(main)
    assert time.monotonic() - with_time < 10
    assert shared.counts.answer_count == 2
