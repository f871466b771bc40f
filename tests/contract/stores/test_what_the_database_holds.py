"""What lies in the database: nothing that names a payee, and nothing that can be changed unseen."""

from datetime import UTC, datetime
from itertools import chain
from uuid import uuid4

import anyio
import psycopg
import pytest
from postgres import OWNER, RUNNER
from refusals import refused
from shared_ledgers import IDENTITY, LATER, NOW, ask, ask_all

from pipeline.errors import DiskError
from pipeline.stores.protocols import QuestionPlan
from pipeline.stores.values import ReusedAnswer
from schemas.outcomes import ApiName

NAME = "Quillan Feathermoor"
DETAIL = "the account of Quillan Feathermoor is closed"


@pytest.fixture
def asked(ledger_desk):
    """A run with three answers, each with a name, a problem with a detail, and one of an earlier run."""
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 3)
    shared = ledger_desk.shared(store, run)

    async def main():
        async with shared.writing():
            chunk = await shared.claim(ApiName.COP)
            first, *others = chunk.questions
            await shared.intend(first.key, attempt=1, request_id="id-1", time=NOW)
            await shared.fail(first.key, attempt=1, code="HTTP_500", time=NOW, detail=DETAIL)
            for question in (first._replace(attempts=1), *others):
                await ask(shared, question, name=NAME)

    anyio.run(main)
    shared.reuse([ReusedAnswer(b"another", "MTCH", "id-0", NOW, "ab", LATER)])
    return store, run, shared


def test_no_name_and_no_account_is_in_any_column_of_any_table(asked, ledger_desk):
    store, run, _ = asked
    assert {line.answer.matched_name for line in store.lines(run) if line.answer} == {None, NAME}
    [reused] = [line.reused for line in store.lines(run) if line.reused is not None]
    assert reused == ReusedAnswer(b"another", "MTCH", "id-0", NOW, "ab", LATER)
    assert DETAIL in {line.detail for line in store.lines(run)}

    tables = [name for (name,) in ledger_desk.rows(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'precheck'"
    )]  # fmt: skip
    dumped = bytearray()
    with ledger_desk.postgres.connect(ledger_desk.database) as db:
        for table in tables:
            for form in ("text", "binary"):
                with db.cursor().copy(f"COPY precheck.{table} TO STDOUT (FORMAT {form})") as copy:
                    dumped += b"".join(copy)
    said = chain.from_iterable(ledger_desk.checks.select("account", "name").rows())
    for clear in (NAME, "Quillan", "closed", *said):
        for spelling in (clear.encode(), clear.encode().hex().encode()):
            assert spelling not in dumped, clear
    assert IDENTITY.input_sha256.encode() in dumped  # the search does find what is there
    assert len(tables) >= 9


CHANGES = [
    "UPDATE precheck.answer SET code = 'NOAP'",
    "UPDATE precheck.answer SET state = 'refused'",
    "UPDATE precheck.answer SET seal = 'x'",
    "UPDATE precheck.answer SET matched_name = 'other'",
    "UPDATE precheck.answer SET matched_name = NULL, time = '2032'",
    "DELETE FROM precheck.answer",
    "TRUNCATE precheck.answer",
    "UPDATE precheck.intent SET request_id = 'other'",
    "DELETE FROM precheck.intent",
    "TRUNCATE precheck.intent CASCADE",
    "UPDATE precheck.failure SET code = 'HTTP_501'",
    "UPDATE precheck.failure SET detail = 'other'",
    "DELETE FROM precheck.failure",
    "UPDATE precheck.reuse SET code = 'other'",
    "DELETE FROM precheck.reuse",
    "UPDATE precheck.chunk SET fence = fence - 1",
]


@pytest.mark.usefixtures("asked")
def test_a_line_never_changes_not_by_its_owner_either(ledger_desk):
    with ledger_desk.postgres.connect(ledger_desk.database, OWNER) as db:
        for change in CHANGES:
            with pytest.raises(psycopg.errors.RaiseException, match=r"never|only grows"):
                db.execute(change)


def test_a_name_and_a_detail_may_leave(asked, ledger_desk):
    store, run, _ = asked
    with ledger_desk.postgres.connect(ledger_desk.database, RUNNER) as db:
        [(run_id,)] = ledger_desk.rows("SELECT id FROM precheck.run")
        db.execute("SELECT precheck.erase_names(%s, '2032')", (run_id,))
    [(names, time)] = ledger_desk.rows("SELECT name_count, time FROM precheck.purge")
    assert names == 3
    assert abs((datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()) < 60

    lines = list(store.lines(run))
    assert {line.detail for line in lines} == {""}
    assert [line.answer.code for line in lines if line.answer] == ["MBAM"] * 3 + ["MTCH"]
    assert {line.answer.matched_name for line in lines if line.answer} == {None}


FORGERIES = [
    ("answer", "code = 'MTCH'"),
    ("answer", "state = 'refused'"),
    ("answer", "time = '2031-03-01T09:00:02.000Z'"),
    ("answer", "is_named = false, matched_name = NULL"),
    ("answer", "matched_name = set_byte(matched_name, 20, 255 - get_byte(matched_name, 20))"),
    ("intent", "request_id = 'other'"),
    ("intent", "time = '2031'"),
    ("failure", "code = 'HTTP_501'"),
    ("failure", "round = 7"),
    ("reuse", "code = 'NOAP'"),
]


def test_a_line_that_was_changed_all_the_same_is_not_believed(asked, ledger_desk):
    store, run, shared = asked
    keys = [b"another", *(key for (key,) in ledger_desk.rows("SELECT question FROM precheck.answer"))]
    with ledger_desk.postgres.connect(ledger_desk.database) as db:
        db.execute("SET session_replication_role = replica")  # no trigger
        for table, change in FORGERIES:
            db.execute(f"CREATE TEMP TABLE before AS SELECT * FROM precheck.{table}")
            db.execute(f"UPDATE precheck.{table} SET {change}")
            with refused(DiskError, "stores.ledger_line_changed", run=run.number):
                list(store.lines(run))
            if table != "failure":  # of a question that was asked again, only the latest request is looked at
                with refused(DiskError, "stores.ledger_line_changed"):
                    anyio.run(shared.known, keys)
            db.execute(f"DELETE FROM precheck.{table}")
            db.execute(f"INSERT INTO precheck.{table} OVERRIDING SYSTEM VALUE SELECT * FROM before")
            db.execute("DROP TABLE before")
    assert len(list(store.lines(run))) == 5


def test_an_answer_that_was_moved_to_another_question_is_not_believed(asked, ledger_desk):
    store, run, _ = asked
    with ledger_desk.postgres.connect(ledger_desk.database) as db:
        db.execute("SET session_replication_role = replica")
        db.execute(
            "UPDATE precheck.answer AS one SET matched_name = other.matched_name"
            " FROM precheck.answer AS other WHERE other.question <> one.question"
        )
    with refused(DiskError, "stores.ledger_line_changed"):
        list(store.lines(run))


FORBIDDEN = [
    "DELETE FROM precheck.answer",
    "DELETE FROM precheck.chunk",
    "DELETE FROM precheck.run",
    "TRUNCATE precheck.chunk",
    "DROP TABLE precheck.answer",
    "ALTER TABLE precheck.answer DISABLE TRIGGER ALL",
    "CREATE TABLE precheck.other(x int)",
    "DROP TRIGGER never_changes ON precheck.answer",
    "CREATE OR REPLACE FUNCTION precheck.never_changes() RETURNS trigger LANGUAGE sql AS ''",
    "UPDATE precheck.store SET salt = 'x'",
    "UPDATE precheck.answer SET code = 'x'",
    "UPDATE precheck.run SET plan_hash = 'x'",
    "UPDATE precheck.intent SET time = 'x'",
    "SET session_replication_role = replica",
]


@pytest.mark.usefixtures("asked")
def test_the_role_of_the_runs_can_do_nothing_else(ledger_desk):
    with ledger_desk.postgres.connect(ledger_desk.database, RUNNER) as db:
        for statement in FORBIDDEN:
            with pytest.raises(
                (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidFunctionDefinition)
            ):
                db.execute(statement)


def test_the_same_question_has_one_key_in_every_run_of_a_ledger_and_another_in_another(ledger_desk, check_of):
    store = ledger_desk.store()
    first = ledger_desk.shared(store, ledger_desk.begin(store, 1))
    other_run = store.join(IDENTITY._replace(input_sha256="3d"), QuestionPlan(b"plan", 1), new_id=uuid4())
    second = ledger_desk.shared(ledger_desk.store(), other_run)

    assert first.question_key(check_of()) == second.question_key(check_of())
    assert first.question_key(check_of()) != first.question_key(check_of(name="Ada Quillen"))


def test_a_run_whose_line_was_changed_is_not_joined(ledger_desk):
    store = ledger_desk.store()
    ledger_desk.begin(store, 1)
    with ledger_desk.postgres.connect(ledger_desk.database) as db:
        db.execute("UPDATE precheck.run SET plan_hash = 'x'")
    with refused(DiskError, "stores.ledger_line_changed"):
        store.join(IDENTITY, QuestionPlan(b"x", 1), new_id=uuid4())


def test_a_whole_run_goes_by_the_role_of_the_runs(ledger_desk):
    store = ledger_desk.store(user=RUNNER)
    run = ledger_desk.begin(store, 25)
    shared = ledger_desk.shared(store, run)
    assert len(anyio.run(ask_all, shared)) == 25
    assert anyio.run(shared.end_round, 1)
    assert store.mark_finished(run)
    assert not store.mark_finished(run)
