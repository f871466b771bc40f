"""A7 and shared accounts: processes that die and sleep beyond their lease keep one rate, and use it."""

import signal

import pytest
from sharers import most_in_a_second, sharers

from pipeline.stores.sharing import LEASE_S

RATE = 60
FREE_S = LEASE_S + 2
"""After that, what a process had that renews nothing is others'."""


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def account(request, tmp_path):
    """What keeps the division, and where."""
    if request.param == "SQLite":
        return "runs on one machine", tmp_path / "turns"
    server, database = map(request.getfixturevalue, ("postgres", "ledger_database"))
    return "hosts by PostgreSQL", server.url(database)


def go_through(town, wait_until, clock):
    """One is killed and one falls asleep: which part of the time the first one used of the rate alone."""
    killed, asleep = town.start(600), town.start(600)
    wait_until(lambda: town.server.has_heard(killed) and town.server.has_heard(asleep))
    killed.kill()
    asleep.send_signal(signal.SIGSTOP)
    since = clock()
    wait_until(lambda: clock() - since > FREE_S + 2)
    asleep.send_signal(signal.SIGCONT)
    woken = clock()
    wait_until(lambda: town.server.has_heard(asleep, woken + 1))
    asleep.kill()
    wait_until(lambda: clock() - woken > FREE_S)
    alone = [moment for moment in town.left() if since + FREE_S < moment < woken]
    return len(alone) / (woken - since - FREE_S) / RATE


def test_the_rate_is_kept_whoever_joins_dies_or_sleeps_beyond_its_lease(
    account, wait_until, clock, tell, is_long
):
    what, where = account
    rounds = 5 if is_long else 1
    with sharers(where, RATE, places=12) as town:
        first = town.start(600)
        wait_until(lambda: town.server.has_heard(first))
        least = min(go_through(town, wait_until, clock) for _ in range(rounds))
        most = most_in_a_second(town.left())
    tell(
        "A7",
        f"{what} on one account: SIGKILL, and SIGSTOP beyond the lease",
        tried=2 * rounds,
        survived=2 * rounds * (most <= RATE and least >= 0.9),
        figure=f"at most {most} of {RATE} left in any second; who is left uses {least:.0%} of it",
        goal=f"<= {RATE} in any second; >= 90%",
    )
