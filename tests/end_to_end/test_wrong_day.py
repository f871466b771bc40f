"""A clock that is days wrong ends a run with a daily cap: it would count by another day than the server."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

pytestmark = pytest.mark.usefixtures("in_this_process")

PAYEES = [{"name": f"Invented {n}", "sort_code": "010203", "account_number": f"{n:08}"} for n in range(1, 6)]


@pytest.fixture
def run_at(desk, misbehaving, sandbox):
    """`run_at(days, **changes)`: run against a server whose clock is so many days ahead of ours."""

    def run(days, **changes):
        async def match(request):
            stamp = datetime.now(UTC) + timedelta(days=days)
            headers = {
                "x-fapi-interaction-id": request.headers["x-fapi-interaction-id"],
                "x-response-timestamp": stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            }
            return web.json_response({"data": {"verificationReport": {"matched": True}}}, headers=headers)

        with misbehaving(match) as url:
            section = sandbox.section("sandbox", "cop", base_url=url, in_flight_max=1, **changes)
            return desk("run", desk.payments(PAYEES), "--quiet", *desk.using(cop=section))

    return run


@pytest.mark.parametrize("days", [3, -3])
def test_a_run_with_a_cap_ends_after_the_first_reply_which_is_kept(desk, run_at, days):
    finished = run_at(days, daily_cap=5)

    assert finished.status == 78
    [sentence] = finished.sentences
    assert "this machine's clock says" in sentence
    assert "set this machine's clock by a time server (NTP)" in sentence
    with closing(sqlite3.connect(desk.folder / "payments.precheck" / "ledger.db")) as db:
        assert db.execute("SELECT (SELECT count(*) FROM intent), code FROM answer").fetchall() == [
            (1, "MTCH")
        ]


def test_without_a_cap_a_warning_is_enough(desk, run_at):
    finished = run_at(3, daily_cap=None)

    assert finished.status == 0
    assert len(desk.departures("payments.precheck")) == 5


@pytest.mark.parametrize("days", [0.4, -0.4])
def test_hours_are_not_days(run_at, days):
    assert run_at(days, daily_cap=5).status == 0
