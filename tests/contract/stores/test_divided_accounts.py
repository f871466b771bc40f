"""Processes that share an account keep its rate at the socket, and use it."""

import os
import time

import anyio
import pytest
from refusals import refused
from sharers import most_in_a_second, sharers, shares_of

from pipeline.errors import ConfigurationError
from pipeline.stores.sharing import LEASE_S
from pipeline.stores.values import ServerAccount

RATE = 60


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)])
def where(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "turns"
    server, database = map(request.getfixturevalue, ("postgres", "ledger_database"))
    return server.url(database)


@pytest.mark.nightly
def test_the_rate_is_kept_while_processes_join_and_one_dies(where, wait_until):
    with sharers(where, RATE, places=12) as town:
        first, second = town.start(60), town.start(60)
        wait_until(lambda: town.server.has_heard(first) and town.server.has_heard(second))
        second.kill()
        third = town.start(60)
        wait_until(lambda: town.server.has_heard(third))
        count = len(town.server.came)
        wait_until(lambda: len(town.server.came) > count + RATE)
        assert first.poll() is None

    assert most_in_a_second(town.left()) <= RATE


def test_one_that_begins_after_another_was_killed_has_all_of_it_a_window_later(tmp_path, wait_until):
    """Where no other run is at work, the lock of the server says so, and nobody waits for a lease to end."""
    account = ServerAccount("localhost|c", "cop", RATE, 12, 1.028, 5.0)
    with sharers(tmp_path / "turns", RATE, places=12) as town:
        killed = town.start(60)
        wait_until(lambda: town.server.has_heard(killed))
        killed.kill()
        killed.wait()
        killed_at = time.monotonic()

    async def main():
        parts = []
        async with shares_of(str(tmp_path / "turns")).lease([account]) as leased:
            began_at = time.monotonic()
            leased["cop"].follow(parts.append, lambda: 0)
            return parts[0], began_at

    part, began_at = anyio.run(main)
    assert part[:2] == (RATE, 12)
    assert 1 <= began_at - killed_at < LEASE_S


@pytest.mark.parametrize(
    ("rate", "places", "cap"), [(RATE + 1, 12, 50), (RATE, 11, 50), (RATE, 12, 60), (RATE, 12, None)]
)
def test_hosts_whose_profiles_give_an_account_other_limits_are_refused_by_name(
    postgres, ledger_database, rate, places, cap
):
    url = postgres.url(ledger_database)
    mine, other = (
        ServerAccount("cop.example|c", "cop", *limits, 1.028, 5.0, daily_cap, daily_cap and "utc_day")
        for *limits, daily_cap in ((RATE, 12, 50), (rate, places, cap))
    )

    async def main():
        async with shares_of(url, "host-a").lease([mine]), shares_of(url, "host-b").lease([other]):
            raise AssertionError("it began")

    with refused(
        ConfigurationError,
        "stores.limits_differ",
        server="cop.example",
        ours=limits(
            "host-b", rate, places, "no daily_cap" if cap is None else f"daily_cap = {cap} (utc_day)"
        ),
        theirs=limits("host-a", RATE, 12, "daily_cap = 50 (utc_day)"),
    ):
        anyio.run(main)


def limits(host, rate, places, cap):
    has = f"rate_per_s = {rate}, in_flight_max = {places} and {cap}"
    return f"process {os.getpid()} on {host} has {has}"


def test_a_lease_is_renewed_once_the_database_is_back(postgres, ledger_database, proxy_to):
    proxy = proxy_to(postgres.port)
    account = ServerAccount("cop.example|c", "cop", RATE, 12, 1.028, 5.0)
    parts = []

    async def main():
        async with shares_of(postgres.url(ledger_database, port=proxy.port)).lease([account]) as leased:
            leased["cop"].follow(parts.append, lambda: 0)
            proxy.close_door()
            await anyio.sleep(1.5)
            renewed = anyio.Event()
            leased["cop"].follow(lambda part: (parts.append(part), renewed.set()), lambda: 0)
            renewed = anyio.Event()
            ends_at = parts[-1].until
            proxy.open_door()
            with anyio.fail_after(20):
                await renewed.wait()
            return ends_at

    ends_at = anyio.run(main)
    assert parts[-1][:2] == (RATE, 12)
    assert parts[-1].until > ends_at
