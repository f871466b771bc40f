"""A connection to the ledger that is lost, at whatever point: no line is lost, and none is there twice."""

import re
import threading
import time
from uuid import uuid4

import anyio
import pytest
from postgres import LEDGER_KEY, OWNER, RUNNER, database_of
from refusals import refused, says
from shared_ledgers import IDENTITY, NOW, answer_to, ask_all, checks_of
from structlog.testing import capture_logs

from pipeline.errors import ConfigurationError, IncompleteError
from pipeline.stores.values import PlannedChunk, RoundState
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

COUNT = 30


@pytest.fixture
def way(ledger_desk, proxy_to, postgres):
    """A proxy, and a process that reaches the ledger through it, with a run of some questions."""
    proxy = proxy_to(postgres.port)
    store = ledger_desk.store(port=proxy.port)
    run = ledger_desk.begin(store, COUNT)
    return proxy, store, run, ledger_desk.shared(store, run)


def recorded(ledger_desk):
    """Requests and answers on record, each once."""
    [[intents, answers]] = ledger_desk.rows(
        "SELECT (SELECT count(*) FROM precheck.intent), (SELECT count(*) FROM precheck.answer)"
    )
    return intents, answers


@pytest.mark.parametrize("cut", ["cut_reply", "cut_request"])
@pytest.mark.parametrize("point", ["intend", "settle", "fail"])
def test_a_write_whose_connection_is_lost_is_there_once(way, ledger_desk, cut, point):
    proxy, _, _, shared = way

    async def main():
        async with shared.writing():
            chunk = await shared.claim(ApiName.COP)
            first, *_ = chunk.questions
            if point == "intend":
                getattr(proxy, cut)(b"the-request-id")
            await shared.intend(first.key, attempt=1, request_id="the-request-id", time=NOW)
            if point == "fail":
                getattr(proxy, cut)(first.key)
                await shared.fail(first.key, attempt=1, code="TIMEOUT_ERROR", time=NOW)
                await shared.intend(first.key, attempt=2, request_id="another", time=NOW)
            if point == "settle":
                getattr(proxy, cut)(first.key)
            second = first._replace(attempts=int(point == "fail"))
            await shared.settle(first.key, answer_to(second, "the-request-id"))

    anyio.run(main)
    assert proxy.cut_count == 1
    assert recorded(ledger_desk) == (1 + (point == "fail"), 1)
    [[failures]] = ledger_desk.rows("SELECT count(*) FROM precheck.failure")
    assert failures == (point == "fail")


@pytest.mark.parametrize("needle", [b"SELECT version", b"precheck.holder", b"SET holder", b"done_at = clock"])
def test_a_connection_may_be_lost_from_the_first_statement_on(ledger_desk, proxy_to, postgres, needle):
    ledger_desk.begin(ledger_desk.store(), COUNT)
    proxy = proxy_to(postgres.port)
    proxy.cut_reply(needle)
    store = ledger_desk.store(port=proxy.port)
    [[run_id]] = ledger_desk.rows("SELECT id FROM precheck.run")
    shared = ledger_desk.shared(store, store.find(run_id))

    assert sorted(anyio.run(ask_all, shared)) == list(range(1, COUNT + 1))
    assert proxy.cut_count == 1
    assert recorded(ledger_desk) == (COUNT, COUNT)
    assert anyio.run(shared.latest_round).undone_count == 0


@pytest.mark.parametrize(
    "or_request",
    [pytest.param(False, id="reply", marks=pytest.mark.nightly), pytest.param(True, id="request")],
)
def test_a_connection_is_lost_at_each_step_of_a_run_in_turn(ledger_desk, proxy_to, postgres, or_request):
    """From joining to finishing; every third step of those whose request is lost."""
    proxy = proxy_to(postgres.port)
    store = ledger_desk.store(port=proxy.port)
    ledger_desk.checks = checks_of(2)
    chunks = [PlannedChunk("cop", 0, [0, 1])]
    plan = store.plan_of([ledger_desk.checks])

    async def ask_round(shared):
        while (state := await shared.latest_round()).number < 1 or state.is_open:
            if state.number == 0:
                await shared.open_round(chunks, after=0)
            await ask_all(shared)
            await shared.end_round(1)

    step, is_cut = 0, True
    while is_cut:
        step += 3 if or_request else 1
        before = proxy.cut_count
        proxy.cut_reply_of(step, or_request=or_request)
        run = store.join(IDENTITY._replace(input_sha256=str(step)), plan, new_id=uuid4())
        with store.shared_run(run, lambda _: ledger_desk.checks) as shared:
            anyio.run(ask_round, shared)
            assert [line.attempt for line in store.lines(run) if line.answer] == [1] * 2
            assert shared.counts == (2, 2, 0)
        store.mark_finished(run)
        assert store.find(run.id).finished_at is not None
        is_cut = proxy.cut_count > before
    assert step > 20


def test_a_server_that_restarts_by_a_crash_is_waited_for(ledger_desk, postgres):
    store = ledger_desk.store(wait_max_s=60)
    shared = ledger_desk.shared(store, ledger_desk.begin(store, 200))
    restarting = threading.Thread(target=postgres.restart, args=("immediate",))
    restarting.start()
    try:
        asked = anyio.run(ask_all, shared)
    finally:
        restarting.join()
    assert sorted(asked) == list(range(1, 201))
    assert recorded(ledger_desk) == (200, 200)


def test_while_the_server_is_away_an_intent_waits_and_then_ends_the_asking(way, ledger_desk):
    proxy, _, run, _ = way
    shared = ledger_desk.shared(ledger_desk.store(port=proxy.port, wait_max_s=0.5), run)

    async def main():
        async with shared.writing():
            chunk = await shared.claim(ApiName.COP)
            proxy.close_door()
            began = time.monotonic()
            with pytest.raises(IncompleteError) as caught:
                await shared.intend(chunk.questions[0].key, attempt=1, request_id="id", time=NOW)
            assert time.monotonic() - began >= 0.5
            with pytest.raises(IncompleteError):
                await shared.intend(chunk.questions[1].key, attempt=1, request_id="id", time=NOW)
        await shared.give_back()
        return caught.value

    place, since = f"127.0.0.1:{proxy.port}", re.compile("^20")
    says(anyio.run(main), Sentence("stores.database_not_answering", place=place, timestamp=since))
    proxy.open_door()
    assert recorded(ledger_desk) == (0, 0)


def test_an_intent_waits_for_a_server_that_comes_back(way, ledger_desk):
    proxy, _, _, shared = way

    async def main():
        async with shared.writing(), anyio.create_task_group() as tasks:
            chunk = await shared.claim(ApiName.COP)
            proxy.close_door()
            question = chunk.questions[0].key
            tasks.start_soon(lambda: shared.intend(question, attempt=1, request_id="id", time=NOW))
            await anyio.sleep(0.3)
            assert recorded(ledger_desk) == (0, 0)
            proxy.open_door()

    anyio.run(main)
    assert recorded(ledger_desk) == (1, 0)


def test_a_task_that_is_cancelled_does_not_wait_for_a_server_that_is_away(way):
    proxy, store, _, shared = way

    async def main():
        async with shared.writing():
            chunk = await shared.claim(ApiName.COP)
            proxy.close_door()
            with anyio.move_on_after(0.2) as scope:
                await shared.intend(chunk.questions[0].key, attempt=1, request_id="id", time=NOW)
            assert scope.cancelled_caught
        await shared.give_back()

    began = time.monotonic()
    anyio.run(main)
    shared.close()
    store.close()
    assert time.monotonic() - began < 8  # of the 20 s that the server would be waited for


def test_a_claim_that_was_cut_off_while_the_server_was_away_takes_nothing_once_it_is_back(way, ledger_desk):
    proxy, _, run, shared = way

    async def main():
        proxy.close_door()
        with anyio.move_on_after(0.2):
            await shared.claim(ApiName.COP)
        await shared.give_back()
        proxy.open_door()
        await anyio.sleep(1.5)  # what still tries to connect does

    anyio.run(main)
    another = ledger_desk.shared(ledger_desk.store(), run)
    assert anyio.run(another.latest_round) == RoundState(1, is_open=True, undone_count=3, free_count=3)


def test_a_server_that_was_never_there_is_waited_for_and_named(ledger_desk, proxy_to, postgres):
    proxy = proxy_to(postgres.port)
    proxy.close_door()
    address = f"127.0.0.1:{proxy.port}"
    with refused(IncompleteError, "stores.database_not_answering", "system.econnrefused", place=address):
        ledger_desk.store(port=proxy.port, wait_max_s=0.3)

    opening = threading.Timer(0.5, proxy.open_door)
    opening.start()
    assert ledger_desk.store(port=proxy.port).keys is not None
    opening.join()


def test_a_connection_that_the_server_ends_in_a_transaction_is_made_anew(postgres, ledger_database):
    """As happens to a process that was stopped there: it must not hold the others up."""
    tries = []

    def work(db):
        tries.append(1)
        with db.transaction():
            db.execute("SET LOCAL idle_in_transaction_session_timeout = 50")
            if len(tries) == 1:
                threading.Event().wait(0.5)
            return db.execute("SELECT 7").fetchone()[0]

    with database_of(postgres, ledger_database) as database:
        assert database.run(work) == 7
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("user", "database", "said"),
    [
        ("nobody_here", None, Sentence("stores.no_user", name="nobody_here")),
        (RUNNER, "not_there", Sentence("stores.no_database", name="not_there")),
        (RUNNER, "postgres", "stores.database_without_ledger"),
    ],
)
def test_what_no_waiting_helps_against_is_refused_at_once(ledger_desk, user, database, said):
    ledger_desk.database = database or ledger_desk.database
    began = time.monotonic()
    with refused(ConfigurationError, said):
        ledger_desk.store(user=user)
    assert time.monotonic() - began < 5


def test_a_password_that_is_wrong_or_missing_is_refused_at_once(ledger_desk, postgres, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with postgres.requiring_passwords(), refused(ConfigurationError, "stores.password_missing"):
        ledger_desk.store()
    monkeypatch.setenv("PGPASSWORD", "not-that-one")
    with postgres.requiring_passwords(), refused(ConfigurationError, "stores.password_refused") as caught:
        ledger_desk.store()
    assert "not-that-one" not in str(caught.value)


def test_another_key_and_another_version_are_refused(ledger_desk, postgres, ledger_database):
    other = type(LEDGER_KEY)("another key")
    with refused(ConfigurationError, "stores.ledger_has_other_key"):
        ledger_desk.store(key=other)
    with database_of(postgres, ledger_database, OWNER) as database:
        database.run(lambda db: db.execute("UPDATE precheck.store SET version = 99"))
    with refused(ConfigurationError, "stores.table_version_differs", theirs=99, version=3):
        ledger_desk.store()


def test_an_outage_is_announced_once_by_all_connections_of_a_process(postgres, ledger_database, proxy_to):
    proxy = proxy_to(postgres.port)
    with database_of(postgres, ledger_database, port=proxy.port) as one, one.another() as other:
        for each in (one, other):
            each.run(lambda db: db.execute("SELECT 1"))
        proxy.close_door()
        with capture_logs() as events:
            asking = [threading.Thread(target=each.run, args=(_look,)) for each in (one, other)]
            for thread in asking:
                thread.start()
            threading.Event().wait(0.5)
            proxy.open_door()
            for thread in asking:
                thread.join()
    assert [event["event"] for event in events] == [
        "the ledger's database does not answer; nothing is sent until it does",
        "the ledger's database answers again; the run goes on",
    ]
    assert events[0]["server"] == f"127.0.0.1:{proxy.port}"


def _look(db):
    return db.execute("SELECT 1").fetchone()
