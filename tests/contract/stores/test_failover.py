"""A failover to a standby that lags behind: what was acknowledged last is not there any more."""

import anyio
import pytest
from refusals import refused
from shared_ledgers import NOW, answer_to, ask

from pipeline.errors import IncompleteError, LeaseLostError
from schemas.outcomes import ApiName


def fail_over(ledger_desk, *losses):
    """End every connection, and have the database without what came last."""
    with ledger_desk.postgres.connect(ledger_desk.database) as db:
        db.execute("SET session_replication_role = replica")  # no trigger hinders it
        for loss in losses:
            db.execute(loss)
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'precheck'"
        )


@pytest.fixture
def two(ledger_desk):
    """Two processes of one run of ten questions."""
    stores = [ledger_desk.store() for _ in range(2)]
    run = ledger_desk.begin(stores[0], 10)
    return [ledger_desk.shared(store, run) for store in stores]


def test_a_claim_that_is_forgotten_gives_its_fence_to_nobody_else(ledger_desk, two):
    former, later = two

    async def main():
        async with former.writing(), later.writing():
            mine = await former.claim(ApiName.COP)
            fail_over(ledger_desk, "UPDATE precheck.chunk SET fence = 0, holder = NULL, lease_until = NULL")
            theirs = await later.claim(ApiName.COP)
            assert theirs.hold.chunk == mine.hold.chunk
            with pytest.raises(LeaseLostError):
                await former.intend(mine.questions[0].key, attempt=1, request_id="mine", time=NOW)
            await ask(later, theirs.questions[0], request_id="theirs")

    anyio.run(main)


@pytest.mark.parametrize("point", ["settle", "fail", "intend"])
def test_a_request_that_is_forgotten_ends_the_run_with_what_to_do(ledger_desk, two, point):
    process, later = two

    async def main():
        async with process.writing():
            first, second, *_ = (await process.claim(ApiName.COP)).questions
            await process.intend(first.key, attempt=1, request_id="lost", time=NOW)
            fail_over(ledger_desk, "DELETE FROM precheck.intent")
            writes = {
                "settle": lambda: process.settle(first.key, answer_to(first, "lost")),
                "fail": lambda: process.fail(first.key, attempt=1, code="HTTP_500", time=NOW),
                "intend": lambda: process.intend(first.key, attempt=2, request_id="next", time=NOW),
            }
            with refused(IncompleteError, "stores.database_lost_records") as ended:
                await writes[point]()
            with pytest.raises(IncompleteError):
                await process.intend(second.key, attempt=1, request_id="after it", time=NOW)
            assert ended.value.exit_code == 75
        await process.give_back()
        async with later.writing():
            again, *_ = (await later.claim(ApiName.COP)).questions
            assert (again.key, again.attempts) == (first.key, 0)
            await ask(later, again)

    anyio.run(main)


def test_a_round_that_is_forgotten_voids_the_chunk_whose_questions_come_in_another_one(ledger_desk):
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 10)
    process = ledger_desk.shared(store, run)

    async def main():
        async with process.writing():
            void = await process.claim(ApiName.COP)
            first, second, *_ = void.questions
            await process.intend(first.key, attempt=1, request_id="out", time=NOW)
            # The chunk is that of an earlier round again, which is open, and has another number there.
            fail_over(
                ledger_desk, "UPDATE precheck.chunk SET chunk = chunk + 1, holder = NULL, lease_until = NULL"
            )
            again = await process.claim(ApiName.COP)
            assert {each.key for each in again.questions} == {each.key for each in void.questions}
            assert not process.holds(void.hold)
            with pytest.raises(LeaseLostError):
                await process.settle(first.key, answer_to(first, "out"))
            await ask(process, second)

    anyio.run(main)


def test_a_line_without_its_intent_is_a_mistake_where_no_connection_was_lost(ledger_desk, two):
    process, _ = two

    async def main():
        async with process.writing():
            question, *_ = (await process.claim(ApiName.COP)).questions
            with pytest.raises(AssertionError):
                await process.settle(question.key, answer_to(question, "never sent"))

    anyio.run(main)
