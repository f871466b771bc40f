"""A worker's password without the ledger key: what only grows cannot be set back, nor a line be forged."""

import re

import anyio
import psycopg
import pytest
from postgres import LEDGER_KEY, RUNNER, clocks, database_of
from refusals import refused, said
from shared_ledgers import ask_all
from tables import for_each

from pipeline.errors import DiskError, IncompleteError
from pipeline.stores.postgres import cared_for
from pipeline.stores.postgres.daily_caps import take_units
from pipeline.stores.protocols import AccountCap
from schemas.outcomes import ApiName

SCOPE = "cop.example|0123456789abcdef"
CAP = AccountCap(SCOPE, 10, "utc_day")
REFUSED = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.RaiseException,
    psycopg.errors.IntegrityError,
    psycopg.errors.DataException,
)


def spend(ledger_desk):
    """Finish a run of ten, by which a cap is spent."""
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 10)
    shared = ledger_desk.shared(store, run, caps={"cop": CAP})
    assert len(anyio.run(lambda: ask_all(shared, name="Quillan Feathermoor"))) == 10
    assert anyio.run(shared.end_round, 1)
    assert store.mark_finished(run)


@pytest.fixture
def worker(ledger_desk):
    """A connection of the role of the runs to such a ledger."""
    spend(ledger_desk)
    with ledger_desk.postgres.connect(ledger_desk.database, RUNNER) as db:
        yield db


def left(ledger_desk, cap=CAP):
    """How many units an honest process still gets."""
    return ledger_desk.store().database.run(lambda db: sum(take_units({"cop": cap}, db, ["cop"] * 50)))


STATEMENTS = [
    "UPDATE precheck.units SET count = 0",
    "UPDATE precheck.units SET second = second - 86400",
    "INSERT INTO precheck.units VALUES ('{scope}', 1, 5)",
    "DELETE FROM precheck.units",
    "TRUNCATE precheck.units",
    "UPDATE precheck.daily_cap SET used = 0",
    "UPDATE precheck.daily_cap SET cap = 1000",
    "UPDATE precheck.daily_cap SET counted_from = 1 << 40",
    "UPDATE precheck.daily_cap SET closed_until = 0",
    "UPDATE precheck.daily_cap SET latest = latest + 100000",
    "UPDATE precheck.daily_cap SET scope = 'other'",
    "INSERT INTO precheck.daily_cap VALUES ('other', 9, 'utc_day', 0, 0, 0, 1e18)",
    "UPDATE precheck.account SET latest = 1e18",
    "INSERT INTO precheck.account VALUES ('s', 'cop', '{{}}', 1e18)",
    "UPDATE precheck.chunk SET done_at = NULL",
    "UPDATE precheck.chunk SET done_at = done_at - interval '1 day'",
    "UPDATE precheck.chunk SET fence = 0",
    "UPDATE precheck.chunk SET fence = 9223372036854775807",
    "UPDATE precheck.chunk SET members = '{{}}'",
    "UPDATE precheck.chunk SET round = 2",
    "UPDATE precheck.run SET finished_at = NULL",
    "UPDATE precheck.run SET finished_at = 'infinity'",
    "UPDATE precheck.run SET plan_hash = 'x'",
    "UPDATE precheck.round SET ended_at = NULL",
    "UPDATE precheck.holder SET seen_at = 'infinity'",
    "INSERT INTO precheck.holder VALUES (gen_random_uuid(), 'h', 1, '0', now(), 'infinity')",
    "UPDATE precheck.answer SET matched_name = NULL",
    "UPDATE precheck.answer SET detail = NULL",
    "UPDATE precheck.failure SET detail = NULL",
    "INSERT INTO precheck.purge(run, time, answers_before, name_count) VALUES (1, '', '', 0)",
    "UPDATE precheck.purge SET name_count = 0",
    "CREATE FUNCTION precheck.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION precheck.only_grows() RETURNS trigger LANGUAGE sql AS ''",
    "ALTER FUNCTION precheck.cap_take SECURITY INVOKER",
    "SET SESSION AUTHORIZATION keeper",
    "SET ROLE keeper",
    "SELECT precheck.cap_take('{scope}', 50, 'no window', 5)",
    "SELECT precheck.cap_take('new', -1, 'utc_day', 5)",
    "SELECT precheck.cap_go_by('{scope}', 10, 'utc_day', 'NaN')",
    "SELECT precheck.cap_go_by('{scope}', 10, 'utc_day', '-Infinity')",
    "UPDATE precheck.daily_cap SET ahead = 43200",
]


@for_each("statement", STATEMENTS)
def test_a_statement_that_sets_something_back_is_refused(worker, statement):
    with pytest.raises(REFUSED):
        worker.execute(statement.format(scope=SCOPE))


CALLS = [
    "cap_take('{scope}', 10, 'utc_day', -9)",
    "cap_take('{scope}', 0, 'rolling_24h', 9)",
    "cap_take('{scope}', 10, 'rolling_24h', -2147483648)",
    "cap_now('{scope}', 1000, 'rolling_24h')",
    "cap_now('{scope}', 0, 'utc_day')",
    "cap_go_by('{scope}', 10, 'utc_day', 0)",
    "cap_go_by('{scope}', 10, 'utc_day', 1e12)",
    "cap_go_by('{scope}', 10, 'rolling_24h', -1e12)",
    "cap_go_by('{scope}', 10, 'utc_day', extract(epoch FROM now()) + 3 * 86400)",
    "cap_go_by('{scope}', 10, 'rolling_24h', extract(epoch FROM now()) + 86000)",
    "cap_go_by('{scope}', 10, 'utc_day', extract(epoch FROM now()) + 86300)",
    "cap_go_by('{scope}', 10, 'utc_day', extract(epoch FROM now()) + 2 * 86400)",
    "cap_close('{scope}', 10, 'utc_day')",
]


@pytest.mark.parametrize("window", ["utc_day", pytest.param("rolling_24h", marks=pytest.mark.nightly)])
def test_no_call_of_a_function_gives_a_unit_back(worker, ledger_desk, window):
    assert left(ledger_desk, CAP._replace(window=window)) == 0
    for call in CALLS:
        worker.execute(f"SELECT precheck.{call}".format(scope=SCOPE))
        assert left(ledger_desk, CAP._replace(window=window)) == 0, call
    [(used, latest, closed_until)] = ledger_desk.rows(
        "SELECT used, latest - precheck.clock_s(), closed_until - precheck.clock_s() FROM precheck.daily_cap"
    )
    assert used >= 10
    assert latest <= 0
    assert closed_until <= 2 * 86_400


def test_objects_of_the_workers_own_are_never_used_by_a_function_of_the_owner(worker, ledger_desk):
    with ledger_desk.postgres.connect(ledger_desk.database) as db:
        db.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")  # as before PostgreSQL 15
    for statement in (
        "CREATE FUNCTION public.greatest_of(float8, float8) RETURNS bool LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR public.> (LEFTARG = float8, RIGHTARG = float8, FUNCTION = public.greatest_of)",
        "CREATE FUNCTION public.floor(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 9e9::float8'",
        "CREATE TEMP TABLE daily_cap(scope text)",
        "SET search_path = pg_temp, public, pg_catalog",
    ):
        worker.execute(statement)
    try:
        worker.execute(f"SELECT precheck.cap_go_by('{SCOPE}', 10, 'utc_day', 9e9)")
        assert worker.execute(f"SELECT precheck.cap_take('{SCOPE}', 10, 'utc_day', 9)").fetchone() == (0,)
    finally:
        with ledger_desk.postgres.connect(ledger_desk.database) as db:
            db.execute(f"DROP OWNED BY {RUNNER}")
            with cared_for(ledger_desk.url("keeper"), clocks()) as care:
                care.create(LEDGER_KEY, grant_to=RUNNER)
            db.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")


PLANTED = [("vop_gateway", "{0}"), ("cop", "{999}"), ("cop", "{-1}"), ("cop", "{0,0}"), ("cop", "{NULL}")]


def test_a_chunk_that_no_run_planned_is_not_asked(worker, ledger_desk):
    """Chunks for another API, with a question that does not exist, or with one question twice."""
    for chunk, (api, members) in enumerate(PLANTED, start=70):
        store = ledger_desk.store()
        run = ledger_desk.begin(store, 10)
        shared = ledger_desk.shared(store, run)
        assert len(anyio.run(shared.claim, ApiName.COP).questions) == 10
        worker.execute(
            "INSERT INTO precheck.chunk(run, chunk, round, api, part, members) VALUES (%s, %s, 1, %s, 0, %s)",
            (run.number, chunk, api, members),
        )
        with refused(DiskError, "stores.ledger_line_changed"):
            anyio.run(ledger_desk.shared(ledger_desk.store(), run).claim, ApiName(api))
        worker.execute("UPDATE precheck.run SET finished_at = now() WHERE run = %s", (run.number,))


def test_who_waits_for_a_lock_that_a_worker_keeps_ends_and_says_so(worker, ledger_desk):
    honest = database_of(ledger_desk.postgres, ledger_desk.database, wait_max_s=0.0)

    def take(db):
        assert db.execute("SHOW lock_timeout").fetchone() == ("10s",)
        db.execute("SET lock_timeout = 50")
        return take_units({"cop": CAP}, db, ["cop"])

    with honest, worker.transaction():
        worker.execute(f"SELECT precheck.cap_now('{SCOPE}', 10, 'utc_day')")
        with refused(IncompleteError, reason=re.compile("lock timeout")):
            honest.run(take)
    with honest.another() as again:
        assert again.run(take) == [False]


def test_nobody_else_may_call_the_functions_and_each_has_a_fixed_search_path(worker, ledger_desk):
    functions = ledger_desk.rows(
        "SELECT proname::text, coalesce(array_to_string(proconfig, ','), ''), acl.grantee = 0"
        " FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS acl"
        " WHERE pronamespace = 'precheck'::regnamespace"
    )
    assert {"cap_take", "erase_names", "only_grows"} <= {name for name, *_ in functions}
    for name, settings, is_public in functions:
        assert settings == "search_path=pg_catalog, pg_temp", name
        assert not is_public, name
    definers = ledger_desk.rows(
        "SELECT proname::text FROM pg_proc WHERE prosecdef AND pronamespace = 'precheck'::regnamespace"
    )
    assert {name for (name,) in definers} == {
        *("cap_now", "cap_take", "cap_close", "cap_go_by", "erase_names"),
    }


COPIED = "SELECT {run}, question, attempt + {more}, {fields} FROM precheck.{table} WHERE run = 1"
FORGED = {
    "answer": "state, 'MTCH', time, is_named, matched_name, detail, seal",
    "intent": "request_id, time, seal",
}


@pytest.mark.parametrize("more", [0, 1])
def test_lines_that_were_made_up_or_copied_from_another_run_are_noticed(worker, ledger_desk, more):
    store = ledger_desk.store()
    later = ledger_desk.begin(store, 10)
    columns = {
        "answer": "run, question, attempt, state, code, time, is_named, matched_name, detail, seal",
        "intent": "run, question, attempt, request_id, time, seal",
    }
    for table, fields in FORGED.items():
        copied = COPIED.format(run=later.number, more=more, fields=fields, table=table)
        worker.execute(f"INSERT INTO precheck.{table}({columns[table]}) {copied}")
    with refused(DiskError, "stores.ledger_line_changed"):
        anyio.run(ask_all, ledger_desk.shared(store, later))
    with refused(DiskError, "stores.ledger_line_changed"):
        list(store.lines(later))


@pytest.mark.parametrize(
    ("grant", "power"),
    [
        ("UPDATE (used) ON precheck.daily_cap", "may also UPDATE daily_cap.used"),
        ("INSERT ON precheck.purge", "INSERT purge.name_count"),
        ("UPDATE ON precheck.answer", "UPDATE answer.matched_name"),
        ("keeper", said("inspection.may_change_tables")),
        ("pg_write_all_data", said("inspection.may_delete")),
    ],
)
def test_the_check_says_what_the_role_can_really_do(worker, ledger_desk, grant, power):
    def found():
        with cared_for(ledger_desk.url(), clocks()) as care:
            findings = care.findings(LEDGER_KEY, is_restored=False)
        [role] = [one for one in findings if one.name.key == "inspection.role"]
        return role.is_wrong, str(role.detail)

    assert found()[0] is False
    with ledger_desk.postgres.connect(ledger_desk.database) as db:
        db.execute(f"ALTER ROLE {RUNNER} NOINHERIT")
        db.execute(f"GRANT {grant} TO {RUNNER}")
        try:
            is_wrong, sentence = found()
        finally:
            db.execute(f"REVOKE {grant} FROM {RUNNER}")
            db.execute(f"ALTER ROLE {RUNNER} INHERIT")
    assert is_wrong
    assert power in sentence
