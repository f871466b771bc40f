"""The daily cap of an account that hosts share: as many units as intents, in any window, by one clock."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
import spenders
from postgres import database_of

from pipeline.stores.postgres.daily_caps import EDGE_S, PostgresCap, take_units
from pipeline.stores.protocols import AccountCap

NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)
MIDNIGHT = datetime(2031, 3, 2, tzinfo=UTC)
CLOCK = """CREATE OR REPLACE FUNCTION precheck.clock_s() RETURNS float8
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS 'SELECT {}::float8'"""
SCOPE = "cop.example|0123456789abcdef"


class Account:
    """An account in a database whose clock stands where a test puts it."""

    def __init__(self, postgres, name, database):
        self._postgres, self._name = postgres, name
        self.database = database

    def at(self, time):
        """It is this time now, by the clock of the database."""
        self.execute(CLOCK.format(time.timestamp()))

    def execute(self, statement, *values):
        with self._postgres.connect(self._name) as db:
            return db.execute(statement, values)

    def take(self, count=1, *, cap=5, window="utc_day"):
        """Take units as one transaction of intents does: how many were given."""
        caps = {"cop": AccountCap(SCOPE, cap, window)}

        granted = self.database.run(lambda db: take_units(caps, db, ["cop", "vop_gateway"] * count))
        assert all(granted[1::2]), "an API without a cap"
        return sum(granted[::2])

    def quota(self, *, cap=5, window="utc_day"):
        return PostgresCap(self.database, AccountCap(SCOPE, cap, window))


@pytest.fixture
def account(postgres, ledger_database):
    with postgres.connect(ledger_database) as db:
        [clock] = db.execute("SELECT pg_get_functiondef('precheck.clock_s()'::regprocedure)").fetchone()
    with database_of(postgres, ledger_database) as database:
        made = Account(postgres, ledger_database, database)
        made.at(NOON)
        yield made
    made.execute(clock)


def test_no_more_than_the_cap(account):
    assert account.take(3) == 3
    assert account.take(3) == 2
    assert account.take() == 0


def test_a_utc_day_ends_at_midnight_and_its_last_half_minute_counts_in_the_next_one_too(account):
    assert account.take(3) == 3
    account.at(MIDNIGHT - timedelta(seconds=EDGE_S - 1))
    assert account.take(3) == 2
    account.at(MIDNIGHT)
    assert account.take(9) == 3
    account.at(MIDNIGHT + timedelta(days=1))
    assert account.take(9) == 5


def test_any_24_hours_hold_no_more_than_the_cap(account):
    assert account.take(3, window="rolling_24h") == 3
    account.at(NOON + timedelta(hours=20))
    assert account.take(9, window="rolling_24h") == 2
    account.at(NOON + timedelta(hours=24))
    assert account.take(9, window="rolling_24h") == 0
    again = anyio.run(account.quota(window="rolling_24h").resets_at)
    assert again == NOON + timedelta(hours=24, seconds=EDGE_S)
    account.at(again)
    assert account.take(9, window="rolling_24h") == 3


def test_another_window_and_another_cap_count_what_was_taken_before(account):
    assert account.take(5) == 5
    account.at(MIDNIGHT + timedelta(hours=1))
    assert account.take(9, window="rolling_24h") == 0
    assert account.take(9) == 5
    assert account.take(9, cap=3) == 0
    assert account.take(9, cap=7) == 2


def test_the_tables_take_no_more_than_the_cap_whatever_a_program_does(account):
    account.take(5)
    with pytest.raises(Exception, match="daily_cap_check"):
        account.execute("UPDATE precheck.daily_cap SET used = used + 1")
    with pytest.raises(Exception, match="only grows"):
        account.execute("UPDATE precheck.daily_cap SET latest = precheck.clock_s() - 9")


def test_what_the_server_closes_is_closed_until_its_next_window(account):
    anyio.run(account.quota().close_for_today)
    assert account.take() == 0
    assert anyio.run(account.quota().resets_at) == MIDNIGHT
    account.at(MIDNIGHT)
    assert account.take() == 1


def test_units_by_a_clock_that_is_behind_the_server_count_in_the_servers_day(account):
    assert account.take(3) == 3
    anyio.run(account.quota().go_by, MIDNIGHT + timedelta(hours=2))
    assert account.take(9) == 2
    account.at(MIDNIGHT + timedelta(hours=1))
    assert account.take(9) == 0, "the server's day goes on"
    assert anyio.run(account.quota().resets_at) == MIDNIGHT + timedelta(days=1), "both days have ended then"
    account.at(MIDNIGHT + timedelta(hours=10, seconds=EDGE_S + 1))
    assert account.take(9) == 5


def test_units_by_a_clock_that_is_ahead_of_the_server_count_in_the_servers_day(account):
    assert account.take(3) == 3
    account.at(MIDNIGHT + timedelta(hours=2))
    anyio.run(account.quota().go_by, MIDNIGHT - timedelta(hours=1))
    assert account.take(9) == 2
    account.at(MIDNIGHT + timedelta(hours=3, seconds=EDGE_S + 1))
    assert account.take(9) == 3, "two of them count in our day"


@pytest.mark.parametrize("lie", [timedelta(days=-9000), timedelta(hours=-18), timedelta(days=9000)])
def test_a_server_that_lies_about_its_day_opens_none_and_closes_at_most_a_day(account, lie):
    assert account.take(3) == 3
    anyio.run(account.quota().go_by, NOON + lie)
    assert account.take(9) == 2
    anyio.run(account.quota().go_by, NOON)
    assert account.take() == 0
    account.at(MIDNIGHT + timedelta(hours=1))
    assert account.take(9) == 5


def test_after_a_clock_that_ran_ahead_the_servers_replies_set_the_time_back(account):
    account.at(MIDNIGHT + timedelta(days=9000))
    assert account.take(5) == 5
    anyio.run(account.quota().close_for_today)
    account.at(NOON)
    assert anyio.run(account.quota().resets_at) > NOON + timedelta(days=9000), "no clock is known to be right"
    anyio.run(account.quota().go_by, NOON)
    assert account.take() == 0, "what was taken counts in the server's day"
    assert anyio.run(account.quota().resets_at) == MIDNIGHT
    account.at(MIDNIGHT + timedelta(seconds=EDGE_S + 1))
    assert account.take(9) == 5


@pytest.mark.nightly
def test_six_processes_three_of_which_are_killed_spend_the_cap_and_no_more(ledger_desk, wait_until):
    cap, count = 150, 400
    run = ledger_desk.begin(ledger_desk.store(), count, chunk_size=5)
    words = [ledger_desk.postgres.url(ledger_desk.database), run.id, count, cap]
    spent = "SELECT used FROM precheck.daily_cap"
    processes = [
        subprocess.Popen([sys.executable, spenders.__file__, *map(str, words)], cwd=Path(__file__).parents[2])
        for _ in range(6)
    ]
    try:
        for number, process in enumerate(processes[:3]):
            wait_until(lambda number=number: sum(ledger_desk.rows(spent), (0,))[-1] > 20 * (number + 1))
            process.kill()
        assert [process.wait(60) for process in processes[3:]] == [0] * 3
    finally:
        for process in processes:
            process.kill()
            process.wait()

    [(used, intents, units)] = ledger_desk.rows(
        "SELECT (SELECT used FROM precheck.daily_cap), (SELECT count(*) FROM precheck.intent),"
        " (SELECT sum(count) FROM precheck.units)"
    )
    assert used == intents == units == cap
