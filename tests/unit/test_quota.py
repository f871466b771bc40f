"""The daily cap: never exceeded, by however many processes, kills and clocks."""

import gc
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from refusals import refused

from pipeline.errors import DiskError, IncompleteError, OutputError, PrecheckError
from pipeline.stores.sqlite.quota import (
    EDGE_S,
    SCHEMA,
    QuotaInThreads,
    QuotaUse,
    SqliteQuota,
    count_errors,
    usage,
)

SCOPE = "cop.example|0123456789abcdef"
NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)
NOON_MS = 1_930_132_800_000
MIDNIGHT = datetime(2031, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


class Clock:
    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "state" / "quota.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


def a_quota(path: Path, clock: Clock, *, cap: int = 3, window="utc_day", scope: str = SCOPE) -> SqliteQuota:
    return SqliteQuota(path, scope=scope, cap=cap, window=window, clock=clock)


def take_all(quota: SqliteQuota) -> int:
    """Reserve until refused; a quota that never refuses fails here rather than hangs."""
    return next(count for count in range(1000) if not quota.reserve())


WINDOWS = pytest.mark.parametrize("window", ["utc_day", "rolling_24h"])


# --- the cap ---


@WINDOWS
def test_exactly_the_cap_is_granted(path, clock, window):
    with a_quota(path, clock, cap=50, window=window) as quota:
        assert take_all(quota) == 50
        assert quota.used() == 50


def test_a_request_of_less_worth_leaves_a_unit_to_others(path, clock):
    with a_quota(path, clock, cap=2) as quota:
        assert quota.reserve(spare_count=1)
        assert not quota.reserve(spare_count=1)
        assert quota.reserve()
        assert quota.used() == 2


@WINDOWS
def test_a_cap_of_zero_grants_nothing_and_says_when_to_look_again(path, clock, window):
    with a_quota(path, clock, cap=0, window=window) as quota:
        assert quota.reserve() is False
        assert quota.resets_at() > NOON


def test_what_one_run_took_the_next_one_does_not_have(path, clock):
    with a_quota(path, clock) as quota:
        quota.reserve()
    with a_quota(path, clock) as quota:
        assert take_all(quota) == 2


def test_servers_and_clients_are_counted_apart(path, clock):
    with a_quota(path, clock) as one, a_quota(path, clock, scope="vop.example|00") as other:
        assert take_all(one) == 3
        assert take_all(other) == 3


def test_a_lowered_cap_holds_at_once(path, clock):
    with a_quota(path, clock, cap=10) as quota:
        assert all(quota.reserve() for _ in range(5))
    with a_quota(path, clock, cap=4) as quota:
        assert not quota.reserve()


def test_a_raised_cap_grants_only_what_remains(path, clock):
    with a_quota(path, clock, cap=4) as quota:
        take_all(quota)
    with a_quota(path, clock, cap=10) as quota:
        assert take_all(quota) == 6


def test_the_file_itself_refuses_a_seat_beyond_the_cap(path, clock):
    with a_quota(path, clock) as quota:
        take_all(quota)
    db = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        db.execute("INSERT INTO reservation(scope, time_ms, cap, seat) VALUES(?, 0, 3, 4)", (SCOPE,))
    db.close()


ROWS = {
    "seat 0": ("INSERT INTO reservation(scope, time_ms, cap, seat) VALUES(?, 0, 3, 0)", "CHECK"),
    "no seat": ("INSERT INTO reservation(scope, time_ms, cap) VALUES(?, 0, 3)", "NOT NULL"),
    "no cap": ("INSERT INTO reservation(scope, time_ms, seat) VALUES(?, 0, 1)", "NOT NULL"),
    "no time": ("INSERT INTO reservation(scope, cap, seat) VALUES(?, 3, 1)", "NOT NULL"),
    "no scope": ("INSERT INTO reservation(time_ms, cap, seat) SELECT 0, 3, 1 WHERE ? != ''", "NOT NULL"),
    "a time that is no number": (
        "INSERT INTO reservation(scope, time_ms, cap, seat) VALUES(?, 'noon', 3, 1)",
        "cannot store",
    ),
    "a scope that there is not": (
        "INSERT INTO reservation(scope, time_ms, cap, seat) VALUES(? || '!', 0, 3, 1)",
        "FOREIGN KEY",
    ),
    "another window": ("UPDATE scope SET kind = 'week' WHERE scope = ?", "CHECK"),
    "no window": ("UPDATE scope SET kind = NULL WHERE scope = ?", "NOT NULL"),
    "no cap of a scope": ("UPDATE scope SET cap = NULL WHERE scope = ?", "NOT NULL"),
    "no latest time": ("UPDATE scope SET latest_ms = NULL WHERE scope = ?", "NOT NULL"),
    "no closing time": ("UPDATE scope SET closed_until_ms = NULL WHERE scope = ?", "NOT NULL"),
    "a cap that is no number": ("UPDATE scope SET cap = 'many' WHERE scope = ?", "cannot store"),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_file_itself_refuses_what_no_count_can_mean(path, clock, row):
    statement, why = ROWS[row]
    a_quota(path, clock).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError, match=why):
            db.execute(statement, (SCOPE,))


# --- the window and the clock ---


def test_a_new_utc_day_has_a_new_cap(path, clock):
    with a_quota(path, clock) as quota:
        take_all(quota)
        assert quota.resets_at() == MIDNIGHT
        clock.now = MIDNIGHT - SECOND
        assert not quota.reserve()
        clock.now = MIDNIGHT
        assert quota.used() == 0
        assert take_all(quota) == 3


def test_the_day_is_utc_whatever_zone_the_clock_speaks(path, clock):
    with a_quota(path, clock) as quota:
        take_all(quota)
        clock.now = datetime.fromisoformat("2031-03-02T13:59:59+14:00")
        assert not quota.reserve()
        clock.now = datetime.fromisoformat("2031-03-02T14:00:00+14:00")
        assert quota.reserve()


def test_what_was_reserved_just_before_midnight_may_arrive_after_it_and_counts_twice(path, clock):
    with a_quota(path, clock) as quota:
        clock.now = MIDNIGHT - EDGE_S * SECOND
        quota.reserve()
        clock.now = MIDNIGHT - SECOND
        quota.reserve()
        clock.now = MIDNIGHT
        assert quota.used() == 1
        assert take_all(quota) == 2


@pytest.mark.parametrize(("before_midnight", "count"), [(30 * SECOND, 0), (29.999 * SECOND, 1)])
def test_a_request_is_on_its_way_for_less_than_thirty_seconds(path, clock, before_midnight, count):
    with a_quota(path, clock) as quota:
        clock.now = MIDNIGHT - before_midnight
        quota.reserve()
        clock.now = MIDNIGHT
        assert quota.used() == count


def test_what_is_older_than_a_week_and_a_day_is_forgotten_with_the_next_request(path, clock):
    with a_quota(path, clock) as quota, a_quota(path, clock, scope="other") as other:
        for days in (0, 0.00001, 8):
            clock.now = NOON + days * DAY
            assert quota.reserve()
            if days == 0:
                assert other.reserve()
        with closing(sqlite3.connect(path)) as db:
            kept = db.execute("SELECT scope, count(*) FROM reservation GROUP BY scope").fetchall()
            assert dict(kept) == {SCOPE: 3, "other": 1}
        clock.now += timedelta(milliseconds=1)
        assert quota.reserve()
        with closing(sqlite3.connect(path)) as db:
            kept = db.execute("SELECT scope, count(*) FROM reservation GROUP BY scope").fetchall()
            assert dict(kept) == {SCOPE: 3, "other": 1}


def test_a_rolling_window_gives_each_unit_back_a_day_after_it_was_taken(path, clock):
    with a_quota(path, clock, window="rolling_24h") as quota:
        for hours in range(3):
            clock.now = NOON + timedelta(hours=hours)
            assert quota.reserve()
        assert quota.resets_at() == NOON + DAY + EDGE_S * SECOND
        clock.now = quota.resets_at() - SECOND
        assert not quota.reserve()
        clock.now += SECOND
        assert quota.reserve()
        assert not quota.reserve()


def test_a_rolling_window_with_a_lowered_cap_waits_for_enough_units(path, clock):
    with a_quota(path, clock, window="rolling_24h") as quota:
        for hours in range(3):
            clock.now = NOON + timedelta(hours=hours)
            assert quota.reserve()
    with a_quota(path, clock, window="rolling_24h", cap=2) as quota:
        clock.now = quota.resets_at()
        assert clock.now == NOON + timedelta(hours=25) + EDGE_S * SECOND
        assert quota.reserve()


def test_a_rolling_window_with_room_resets_now(path, clock):
    with a_quota(path, clock, window="rolling_24h") as quota:
        for _ in range(2):
            assert quota.resets_at() == NOON
            quota.reserve()
        assert quota.resets_at() == NOON


@WINDOWS
@pytest.mark.parametrize("back", [SECOND, DAY, 365 * DAY])
def test_a_clock_that_goes_back_grants_nothing_more(path, clock, window, back):
    with a_quota(path, clock, window=window) as quota:
        take_all(quota)
        clock.now -= back
        assert not quota.reserve()
    with a_quota(path, clock, window=window) as quota:
        assert not quota.reserve()


@WINDOWS
def test_what_is_taken_while_the_clock_is_behind_counts_when_it_is_right_again(path, clock, window):
    with a_quota(path, clock, window=window) as quota:
        clock.now = MIDNIGHT
        quota.reserve()
        clock.now = MIDNIGHT - timedelta(hours=6)
        take_all(quota)
        clock.now = MIDNIGHT + timedelta(hours=20)
        assert not quota.reserve()


def test_a_day_that_a_fast_clock_opened_is_not_opened_again(path, clock):
    with a_quota(path, clock) as quota:
        take_all(quota)
        clock.now += DAY
        assert take_all(quota) == 3
        clock.now -= DAY
        assert not quota.reserve()
        clock.now += DAY
        assert not quota.reserve()


# --- the server's word ---


@pytest.mark.parametrize(("window", "until"), [("utc_day", MIDNIGHT), ("rolling_24h", NOON + DAY)])
def test_when_the_server_says_the_cap_is_reached_there_is_no_more_for_anyone(path, clock, window, until):
    with a_quota(path, clock, window=window) as quota, a_quota(path, clock, window=window) as other:
        quota.close_for_today()
        assert not other.reserve()
        assert other.resets_at() == until
        clock.now = until - SECOND
        assert not other.reserve()
        clock.now = until
        assert other.reserve()


def test_a_window_that_is_changed_does_not_shorten_the_servers_word(path, clock):
    with a_quota(path, clock, window="rolling_24h") as quota:
        quota.close_for_today()
    with a_quota(path, clock, window="utc_day") as quota:
        quota.close_for_today()
        assert quota.resets_at() == NOON + DAY


# --- a clock that is wrong ---


@pytest.mark.parametrize("wrong", [timedelta(days=3), timedelta(days=-3)])
@WINDOWS
def test_what_was_taken_by_a_wrong_clock_counts_in_the_servers_day(path, clock, wrong, window):
    with a_quota(path, clock, cap=5, window=window) as before:
        assert before.reserve()
    clock.now = NOON + wrong
    with a_quota(path, clock, cap=5, window=window) as quota:
        assert quota.reserve()
        assert quota.reserve()
        quota.go_by(NOON)
        assert not quota.reserve(), "no unit by a clock that is known to be wrong"
    clock.now = NOON
    with a_quota(path, clock, cap=5, window=window) as after:
        assert after.used() == 3
        assert take_all(after) == 2
    clock.now = NOON + 2 * DAY - 2 * SECOND * EDGE_S
    with a_quota(path, clock, cap=5, window=window) as later:
        assert take_all(later) == 5


@WINDOWS
@pytest.mark.parametrize("lie", [timedelta(hours=-18), timedelta(days=180), timedelta(days=25_000)])
def test_a_server_that_lies_about_its_day_gives_no_unit_twice_and_closes_nothing(path, clock, lie, window):
    with a_quota(path, clock, cap=5, window=window) as quota:
        assert quota.reserve()
        assert quota.reserve()
        quota.go_by(NOON + lie)
    for _ in range(3):
        with a_quota(path, clock, cap=5, window=window) as again:
            again.go_by(NOON + lie)
    with a_quota(path, clock, cap=5, window=window) as after:
        assert after.used() >= 2
        taken = take_all(after)
        assert 0 < taken <= 3
        after.go_by(NOON)
        assert take_all(after) == 0
    clock.now = NOON + 2 * DAY
    with a_quota(path, clock, cap=5, window=window) as later:
        assert take_all(later) == 5


@WINDOWS
def test_units_of_a_clock_that_ran_ahead_do_not_count_once_the_server_says_its_day(path, clock, window):
    clock.now = NOON + timedelta(days=3000)
    with a_quota(path, clock, cap=5, window=window) as ahead:
        assert ahead.reserve()
    clock.now = NOON
    with a_quota(path, clock, cap=5, window=window) as quota:
        assert quota.resets_at() > NOON + timedelta(days=2000), "nobody has said which clock is right"
        assert quota.reserve()
        quota.go_by(NOON)
        assert quota.used() == 2
        assert quota.resets_at() <= MIDNIGHT
        assert take_all(quota) == 3
    clock.now = NOON + 2 * DAY
    with a_quota(path, clock, cap=5, window=window) as later:
        assert take_all(later) == 5


def test_a_server_that_agrees_moves_no_unit(path, clock):
    with a_quota(path, clock, cap=5) as quota:
        assert quota.reserve()
        quota.go_by(NOON + 3 * SECOND)
        quota.go_by(NOON - 3 * SECOND)
        assert quota.used() == 1


@WINDOWS
def test_of_days_ago_only_what_this_process_took_counts_in_the_servers_day(path, clock, window):
    clock.now = NOON - timedelta(days=3)
    with a_quota(path, clock, cap=5, window=window) as before:
        assert before.reserve()
    with a_quota(path, clock, cap=5, window=window) as quota:
        assert quota.reserve()
        assert quota.reserve()
        quota.go_by(NOON)
    clock.now = NOON
    with a_quota(path, clock, cap=5, window=window) as after:
        assert after.used() == 2, "and not what was taken before"


def test_a_scope_that_was_closed_by_a_wrong_clock_is_closed_for_a_day_at_most(path, clock):
    clock.now = NOON + timedelta(days=30)
    with a_quota(path, clock) as quota:
        quota.close_for_today()
        quota.go_by(NOON)
    clock.now = NOON
    with a_quota(path, clock) as quota:
        assert quota.resets_at() <= NOON + DAY
        assert quota.reserve()


def test_a_server_that_is_hours_ahead_is_asked_no_more_than_the_cap_in_its_day(path, clock):
    clock.now = MIDNIGHT - timedelta(hours=4)
    with a_quota(path, clock, cap=5) as quota:
        assert quota.reserve()
        quota.go_by(clock.now + timedelta(hours=9))
    with a_quota(path, clock, cap=5) as other:
        assert take_all(other) == 4
        clock.now = MIDNIGHT + timedelta(hours=14)
        assert not other.reserve(), "the server's day goes on"
        assert other.resets_at() <= MIDNIGHT + DAY
        clock.now = MIDNIGHT + timedelta(hours=15, seconds=EDGE_S + 1)
        assert take_all(other) == 5


def test_a_server_that_is_hours_behind_is_asked_no_more_than_the_cap_in_its_day(path, clock):
    with a_quota(path, clock, cap=5) as quota:
        assert take_all(quota) == 5
        clock.now = MIDNIGHT + timedelta(hours=2)
        quota.go_by(MIDNIGHT - timedelta(hours=7))
        assert not quota.reserve(), "the server's day goes on"
        clock.now = MIDNIGHT + timedelta(hours=9, seconds=EDGE_S + 1)
        assert take_all(quota) == 5


def test_the_servers_clock_counts_for_all_processes(path, clock):
    clock.now = NOON + timedelta(days=3)
    with a_quota(path, clock) as other:
        assert other.reserve()
    with a_quota(path, clock) as quota:
        quota.go_by(NOON)
    clock.now = NOON
    with a_quota(path, clock) as after:
        assert after.used() == 1
        assert after.resets_at() == MIDNIGHT


@pytest.mark.parametrize(
    ("hours", "is_right"), [(-13, False), (-11, True), (11, True), (12, True), (13, False)]
)
def test_a_clock_that_is_over_half_a_day_off_is_wrong(path, clock, hours, is_right):
    with a_quota(path, clock) as quota:
        quota.go_by(NOON + timedelta(hours=hours))
        assert quota.reserve() is is_right


def test_a_wrong_clock_moves_nobodys_day(path, clock):
    clock.now = NOON + timedelta(days=3, hours=5)
    with a_quota(path, clock) as quota:
        quota.go_by(NOON)
    clock.now = NOON
    with a_quota(path, clock) as after:
        assert after.resets_at() == MIDNIGHT


def test_units_of_our_day_count_also_where_the_servers_day_began_after_them(path, clock):
    with a_quota(path, clock, cap=5) as quota:
        assert [quota.reserve() for _ in range(3)] == [True] * 3
        quota.go_by(NOON + timedelta(hours=9))
        clock.now = NOON + timedelta(hours=8)
        assert take_all(quota) == 2


def test_units_come_back_when_both_days_have_ended(path, clock):
    with a_quota(path, clock) as quota:
        quota.go_by(NOON + timedelta(hours=9))
        clock.now = MIDNIGHT + timedelta(hours=14)
        assert quota.resets_at() == MIDNIGHT + DAY
        clock.now = MIDNIGHT + timedelta(hours=16)
        assert quota.resets_at() == MIDNIGHT + timedelta(hours=15) + DAY


def test_a_unit_of_a_rolling_window_comes_back_a_day_and_an_edge_after_it_was_taken(path, clock):
    with a_quota(path, clock, cap=1, window="rolling_24h") as quota:
        assert quota.reserve()
        again = NOON + DAY + EDGE_S * SECOND
        for clock.now in (NOON, NOON + DAY, again - SECOND):
            assert quota.resets_at() == again


def test_tasks_of_an_event_loop_use_the_quota_in_threads(path, clock):
    async def main(quota):
        inside = QuotaInThreads(quota)
        assert await inside.reserve()
        assert await inside.resets_at() == MIDNIGHT
        await inside.go_by(NOON + 13 * timedelta(hours=1))
        assert not await inside.reserve(), "a wrong clock"
        await inside.go_by(NOON)
        await inside.close_for_today()
        return await inside.reserve()

    with a_quota(path, clock) as quota:
        assert anyio.run(main, quota) is False
        assert quota.used() == 1


# --- who used what ---


def test_usage_of_a_file_that_is_not_there_is_empty_and_makes_no_file(path):
    assert usage(path, NOON) == []
    assert not path.exists()


def test_usage_tells_of_every_scope(path, clock):
    with a_quota(path, clock, scope="a|1") as quota, a_quota(path, clock, scope="b|2", cap=9) as closed:
        take_all(quota)
        closed.close_for_today()
    assert usage(path, NOON) == [
        QuotaUse("a|1", "utc_day", 3, 3, closed=False, resets_at=MIDNIGHT),
        QuotaUse("b|2", "utc_day", 0, 9, closed=True, resets_at=MIDNIGHT),
    ]


def test_usage_is_told_by_the_cap_and_the_window_that_were_configured_last(path, clock):
    a_quota(path, clock, cap=3).close()
    a_quota(path, clock, cap=7, window="rolling_24h").close()
    [use] = usage(path, NOON)
    assert (use.cap, use.window) == (7, "rolling_24h")


def test_usage_is_in_the_order_of_the_scopes_whichever_was_first(path, clock):
    for scope in ("c|3", "a|1", "b|2"):
        a_quota(path, clock, scope=scope).close()
    assert [use.scope for use in usage(path, NOON)] == ["a|1", "b|2", "c|3"]


# --- the file ---


def test_folder_and_file_are_private(path, clock):
    a_quota(path, clock).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_damaged_count_stops_the_run_and_is_not_started_again(path, clock):
    with a_quota(path, clock) as quota:
        take_all(quota)
    os.truncate(path, path.stat().st_size - 4096)
    with refused(DiskError, "stores.count_file_damaged"):
        a_quota(path, clock)


@pytest.mark.parametrize("page", [1, 3])
def test_a_count_with_a_page_of_nothing_is_damaged_before_it_is_used(path, clock, page):
    with a_quota(path, clock) as quota:
        take_all(quota)
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(bytes(4096))
    with refused(DiskError, "stores.count_file_damaged"):
        a_quota(path, clock)


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path, clock):
    path.parent.mkdir()
    path.write_bytes(b"payment_id,name\n1,x\n" * 100)
    with refused(DiskError, "stores.count_file_damaged", error="SQLITE_NOTADB"):
        a_quota(path, clock)
    assert path.read_bytes() == b"payment_id,name\n1,x\n" * 100


def test_the_database_of_another_program_is_refused(path, clock):
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs(a)")
    db.close()
    with refused(OutputError, "stores.not_a_count_file", path=path):
        a_quota(path, clock)


@pytest.mark.parametrize("target", ["nothing", "count"])
def test_a_link_in_the_files_place_is_refused_wherever_it_leads(path, clock, target):
    a_quota(path.with_name("count"), clock).close()
    path.symlink_to(path.with_name(target))
    with refused(OutputError, "stores.count_file_not_regular", path=path):
        a_quota(path, clock)
    assert not path.with_name("nothing").exists()


def test_a_folder_in_the_files_place_is_refused(path, clock):
    path.mkdir(parents=True)
    with refused(OutputError, "stores.count_file_not_regular", path=path):
        a_quota(path, clock)


@pytest.mark.parametrize("folders", ["there", "not/there/yet"])
def test_the_file_is_made_with_the_folders_that_it_needs(tmp_path, clock, folders):
    (tmp_path / "there").mkdir()
    with a_quota(tmp_path / folders / "quota.db", clock) as quota:
        assert take_all(quota) == 3


def test_a_folder_that_cannot_be_made_is_an_output_error(tmp_path, clock):
    (tmp_path / "file").touch()
    with refused(OutputError, "files.not_writable", "system.enotdir", "stores.needs_state_home"):
        a_quota(tmp_path / "file" / "folder" / "quota.db", clock)


def test_the_file_has_a_rollback_journal_and_says_whose_it_is(path, clock):
    a_quota(path, clock).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("PRAGMA application_id").fetchone() == (0x50435133,)


def test_a_file_that_somebody_gave_a_write_ahead_log_has_a_rollback_journal_again(path, clock):
    a_quota(path, clock).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    a_quota(path, clock).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_times_in_the_file_are_those_of_other_programs_and_versions_too(path, clock):
    with a_quota(path, clock) as quota:
        quota.reserve()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT time_ms FROM reservation").fetchone() == (NOON.timestamp() * 1000,)


def connections():
    """The connections of this process: their settings show nowhere else, short of a power loss."""
    return [each for each in gc.get_objects() if issubclass(type(each), sqlite3.Connection)]


def test_the_connection_keeps_what_was_granted_and_waits_for_others(path, clock):
    before = connections()
    with a_quota(path, clock):
        [db] = [each for each in connections() if not any(each is other for other in before)]
        found = {
            name: db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "foreign_keys", "trusted_schema", "busy_timeout")
        }
    assert found == {"synchronous": 3, "foreign_keys": 1, "trusted_schema": 0, "busy_timeout": 30_000}


def test_a_count_that_others_keep_busy_is_a_reason_to_run_again(path, clock):
    a_quota(path, clock).close()
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as holder,
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db,
    ):
        holder.execute("BEGIN IMMEDIATE")
        with (
            refused(IncompleteError, "stores.count_file_locked", path=path, busy_max_s=30),
            count_errors(path),
        ):
            db.execute("BEGIN IMMEDIATE")


def test_a_full_or_read_only_disk_is_told_from_a_damaged_file(path, clock):
    a_quota(path, clock).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA max_page_count = 1")
        with refused(DiskError, "files.not_writable_make_room", "files.disk_full"), count_errors(path):
            db.execute("CREATE TABLE more AS SELECT zeroblob(100000)")
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db,
        refused(DiskError, "files.not_writable_make_room"),
        count_errors(path),
    ):
        db.execute("UPDATE scope SET cap = 9")


def test_a_mistake_of_ours_is_not_told_as_one_of_the_disk(path, clock):
    a_quota(path, clock).close()
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.IntegrityError), count_errors(path):
        db.execute("UPDATE scope SET cap = NULL")


def test_a_file_that_is_damaged_while_it_is_used_stops_the_run(path, clock):
    with a_quota(path, clock) as quota, closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE reservation")
        with refused(DiskError, "stores.count_file_damaged", path="quota.db"):
            quota.reserve()
        with refused(DiskError, "stores.count_file_damaged", path="quota.db"):
            usage(path, NOON)


def is_open(path: Path) -> bool:
    """Whether this process has the file open."""
    return path in [found.readlink() for found in Path("/proc/self/fd").iterdir() if found.is_symlink()]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell what is open")
def test_the_file_is_let_go_however_its_use_ends(path, clock):
    with a_quota(path, clock):
        assert is_open(path)
    assert not is_open(path)
    usage(path, NOON)
    assert not is_open(path)

    def broken():
        raise LookupError

    # The tracebacks are kept, and with them whatever was not closed.
    with pytest.raises(LookupError) as first:
        a_quota(path, broken)
    assert not is_open(path)
    os.truncate(path, path.stat().st_size - 4096)
    with pytest.raises(DiskError) as second:
        a_quota(path, clock)
    assert not is_open(path)
    assert first.tb is not second.tb


# --- many at once ---


def test_threads_that_share_a_quota_take_the_cap_and_no_more(path, clock):
    counts: list[int] = []
    with a_quota(path, clock, cap=40) as quota:
        threads = [threading.Thread(target=lambda: counts.append(take_all(quota))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(counts) == 40


def test_a_thread_waits_while_another_counts(path, clock):
    """The clock is read within the transaction; here it lets another thread come in between."""
    took = []
    opened = threading.Event()
    second = threading.Thread(target=lambda: took.append(quota.reserve()))

    def slow():
        if opened.is_set() and not second.ident:
            second.start()
            second.join(0.2)  # as long as it waits for its turn; a moment if nothing holds it back
        return clock()

    with a_quota(path, slow, cap=2) as quota:
        opened.set()
        took.append(quota.reserve())
        second.join(30)
    assert took == [True, True]


@pytest.fixture
def hasty_threads():
    """Threads that change places as often as Python can."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual_s)


def test_many_that_make_the_file_at_once_all_find_it_made(tmp_path, clock, hasty_threads):
    failures: list[PrecheckError] = []
    start = threading.Barrier(4)

    def make_all():
        for number in range(40):
            start.wait(30)
            try:
                a_quota(tmp_path / f"{number}.db", clock).close()
            except PrecheckError as failure:
                failures.append(failure)

    threads = [threading.Thread(target=make_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_file_that_another_is_making_is_waited_for(path, clock):
    opened = []
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=lambda: opened.append(a_quota(path, clock)))
        waiting.start()
        waiting.join(0.2)
        for statement in SCHEMA:
            other.execute(statement)
        other.execute("COMMIT")
    waiting.join(30)
    with opened.pop() as quota:
        assert quota.reserve()


def test_nobody_else_can_count_between_the_counting_and_the_taking(path):
    """The clock is read in between; here it looks whether another process could begin to count."""
    found = []

    def clock():
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                found.append(str(error))
            else:
                found.append("free")
        return NOON

    with a_quota(path, clock) as quota:
        assert quota.reserve()
        quota.close_for_today()
    assert found == ["database is locked"] * 3


CHILD = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from pipeline.stores.sqlite.quota import SqliteQuota

clock = lambda: datetime(2031, 3, 1, 12, tzinfo=UTC)
with SqliteQuota(Path(sys.argv[1]), scope=sys.argv[2], cap=50, window="utc_day", clock=clock) as quota:
    os.write(1, b"ready\\n")
    sys.stdin.readline()
    while quota.reserve():
        os.write(1, b"sent\\n")
"""


@contextmanager
def children_at_the_start(path: Path, scope: str):
    """Six processes that have opened the count and all begin at once: one alone would be done too soon."""
    command = [sys.executable, "-c", CHILD, str(path), scope]
    with ExitStack() as opened:
        children = [
            opened.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            for _ in range(6)
        ]
        for child in children:
            assert child.stdout.readline() == b"ready\n"
        for child in children:
            child.stdin.write(b"go\n")
            child.stdin.flush()
        yield children


@pytest.mark.nightly
def test_six_processes_never_exceed_the_cap_whatever_kills_them(path, clock):
    chance = random.Random(20310301)
    for number in range(4):
        scope = f"cop.example|{number}"
        sent_count = 0
        with children_at_the_start(path, scope) as children:
            for victim in chance.sample(children, 3):
                sent_count += sum(bool(victim.stdout.readline()) for _ in range(chance.randrange(8)))
                victim.kill()
            for child in children:
                sent_count += len(child.stdout.readlines())
                assert child.wait() in {0, -signal.SIGKILL}
        with a_quota(path, clock, cap=50, scope=scope) as quota:
            assert quota.used() == 50
            assert not quota.reserve()
        assert 50 - 3 <= sent_count <= 50, "at most one unit is lost with each process that was killed"
