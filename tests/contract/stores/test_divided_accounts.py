"""Processes that share an account keep its rate at the socket, whoever joins, dies or sleeps."""

import signal
import time

import pytest
from sharers import most_in_a_second, sharers

from pipeline.stores.sharing import LEASE_S

RATE = 60


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "turns"
    server, database = map(request.getfixturevalue, ("postgres", "ledger_database"))
    return server.url(database)


def test_the_rate_is_kept_while_processes_join_die_and_sleep_beyond_their_lease(where, wait_until):
    with sharers(where, RATE, places=12) as town:
        first = town.start(60)
        wait_until(lambda: town.server.came)
        second, third = town.start(60), town.start(60)
        pids = {process.pid for process in (first, second, third)}
        wait_until(lambda: {pid for *_, pid in town.server.came} == pids)
        second.kill()
        third.send_signal(signal.SIGSTOP)
        slept_at = time.monotonic()
        wait_until(lambda: time.monotonic() - slept_at > LEASE_S + 2)
        third.send_signal(signal.SIGCONT)
        woken_at = time.monotonic()
        wait_until(lambda: any(pid == third.pid and came > woken_at + 1 for came, _, pid in town.server.came))
        came = list(town.server.came)

    left = [left_at for _, left_at, _ in came]
    assert most_in_a_second(left) <= RATE
    alone = [moment for moment in left if slept_at + LEASE_S + 1.2 < moment < woken_at]
    assert len(alone) >= 0.7 * RATE * (woken_at - slept_at - LEASE_S - 1.2), "who is left has it all"
