"""A8: a clock that jumps, and time zones far from UTC."""

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from clocks import at

CAP = 10
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def timestamps_in(folder):
    """Every time that a run wrote."""
    summary = json.loads((folder / "summary.json").read_text())
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        columns = [("run", "created_at"), *((table, "time") for table in ("intent", "answer", "finish"))]
        for table, column in columns:
            yield from (time for [time] in db.execute(f"SELECT {column} FROM {table}"))
    yield from (value for key, value in summary.items() if key in ("started", "finished"))


@pytest.fixture
def sandbox(serve, tmp_path):
    """One that does not mind clocks that are days off, nor tells its own, by which a run would see that."""
    words = ("--clock-skew-max", 14 * 86_400, "--fault", "no-response-timestamp")
    with serve(tmp_path / "server", *words) as running:
        yield running


def test_a_clock_that_jumps_opens_no_day_twice(desk, sandbox, network_payments, tell):
    today = datetime.now(UTC).date()
    day = today + timedelta(days=1)  # the certificates of the sandbox hold from today
    steps = [
        (day, "23:58:30", "Pacific/Kiritimati"),  # already the day after next there
        (day, "23:59:57", "Europe/London"),  # midnight comes while it works
        (day - timedelta(days=1), "23:00:00", "America/St_Johns"),  # back a day
        (day + timedelta(days=1), "00:30:00", "Pacific/Pago_Pago"),  # still the day before there
        (day, "23:59:58", "UTC"),  # back again
        (day + timedelta(days=2), "02:30:00", "Europe/London"),
    ]
    file = desk.payments(network_payments(80))
    words = ("run", file, *desk.using(cop=sandbox.section(daily_cap=CAP)), "--quiet")
    folder = desk.folder / "payments.precheck"
    before, sent_counts, statuses, sentences = sandbox.call_count, [], [], []
    for date, clock_time, zone in steps:
        finished = desk(*words, **at(date, clock_time, zone))
        statuses.append(finished.status)
        sentences += finished.sentences
        sent_counts.append(len(sandbox.questions(before)) - sum(sent_counts))
    times = list(timestamps_in(folder))
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        days = Counter(time[:10] for [time] in db.execute("SELECT time FROM intent"))
    well_formed_count = sum(TIMESTAMP.fullmatch(time) is not None for time in times)
    # Where midnight came while step two worked, its day was opened then, and not again later.
    as_counted = [
        sent_counts[0] == CAP,
        sum(sent_counts[:2]) <= 2 * CAP,
        sent_counts[2] == 0,
        sum(sent_counts[1:4]) == CAP,
        sent_counts[4] == 0,
        sent_counts[5] == CAP,
    ]
    if not all(as_counted) or set(statuses) != {75}:
        print(sent_counts, statuses, sentences)  # noqa: T201 (pytest shows it for a failure)
    is_sound = max(days.values()) <= CAP and well_formed_count == len(times) and set(statuses) == {75}
    tell(
        "A8",
        "clock jumps, time zones",
        tried=len(steps),
        survived=sum(as_counted) * is_sound,
        figure=f"calls per step {', '.join(map(str, sent_counts))}; per day at most {max(days.values())};"
        f" {well_formed_count} of {len(times)} timestamps in UTC",
        goal=f"no day opened twice: <= {CAP} a day; all timestamps in UTC",
    )
