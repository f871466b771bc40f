"""A clock that is days wrong ends a run with a daily cap: it would count by another day than the server."""

import itertools
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

PAYEES = [{"name": f"Invented {n}", "sort_code": "010203", "account_number": f"{n:08}"} for n in range(1, 8)]


@pytest.fixture
def run_at(desk, misbehaving, sandbox):
    """`run_at(days, **changes)`: run against a server whose clock is that many days ahead of ours.

    A text instead of a number is the stamp itself. A list has one for each reply, again and again.
    """

    def run(days, rows=5, times=1, **changes):
        stamps = itertools.cycle(days if isinstance(days, list) else [days])

        def stamp():
            ahead = next(stamps)
            if isinstance(ahead, str):
                return ahead
            time = datetime.now(UTC) + timedelta(days=ahead)
            return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

        async def match(request):
            headers = {
                "x-fapi-interaction-id": request.headers["x-fapi-interaction-id"],
                "x-response-timestamp": stamp(),
            }
            return web.json_response({"data": {"verificationReport": {"matched": True}}}, headers=headers)

        with misbehaving(match) as url:
            section = sandbox.section("sandbox", "cop", base_url=url, in_flight_max=1, **changes)
            words = ("run", desk.payments(PAYEES[:rows]), "--quiet", *desk.using(cop=section))
            return [desk(*words) for _ in range(times)][-1]

    return run


@pytest.mark.parametrize("days", [3, -3])
def test_a_run_with_a_cap_ends_once_three_replies_agree_and_they_are_kept(desk, run_at, days):
    finished = run_at(days, daily_cap=5)

    assert finished.status == 78
    [sentence] = finished.sentences
    assert said("stages.clock_on_other_day") in sentence
    assert said("stages.set_clock") in sentence
    with closing(sqlite3.connect(desk.folder / "payments.precheck" / "ledger.db")) as db:
        assert (
            db.execute("SELECT (SELECT count(*) FROM intent), code FROM answer").fetchall()
            == [(3, "MTCH")] * 3
        )


YEAR_1, YEAR_9999 = "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "stamps",
    [
        [0, 0, -0.75],
        *(pytest.param(stamps, marks=pytest.mark.nightly) for stamps in ([200, 0], [0, YEAR_1], [YEAR_9999])),
        [3, -3, 0.75],
    ],
)
def test_one_odd_stamp_or_one_of_no_date_moves_no_cap(desk, run_at, stamps):
    assert run_at(stamps, rows=7, times=3, daily_cap=5).status == 75

    assert len(desk.departures("payments.precheck")) == 5


def test_without_a_cap_a_warning_is_enough(desk, run_at):
    finished = run_at(3, daily_cap=None)

    assert finished.status == 0
    assert len(desk.departures("payments.precheck")) == 5


@pytest.mark.parametrize("days", [0.4, -0.4])
def test_a_server_that_is_hours_off_ends_no_run_and_its_day_counts_too(desk, run_at, days):
    finished = run_at(days, daily_cap=5)

    assert finished.status == 0
    assert said("stages.set_clock") in finished.err  # with --quiet, too
    [path] = desk.folder.rglob("quota.db")
    with closing(sqlite3.connect(path)) as db:
        [(ahead_ms,)] = db.execute("SELECT ahead_ms FROM scope")
    assert ahead_ms == pytest.approx(days * 86_400_000, abs=60_000)
