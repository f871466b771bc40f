"""Hosts that share a ledger: a plugin with its profile, commands on hosts of their own, and its figures."""

import sys
from pathlib import Path

import pytest
from postgres import LEDGER_KEY

LEASE_S = 2
"""How long questions wait for a process that has died, so that tests need not wait for long."""
_SHORT_LEASE = (sys.executable, str(Path(__file__).with_name("short_lease.py")))
_CHANGES = {"LEDGER_KEY": LEDGER_KEY.get_secret_value(), "PRECHECK_TEST_LEASE_S": str(LEASE_S)}


@pytest.fixture
def shared_profile(desk, sandbox, postgres, ledger_database):
    """`shared_profile(rate_per_s=20)`: the words of a profile with a ledger of this test's own."""

    def words(name="mine.toml", *, apis=("cop",), ledger=True, port=None, server=sandbox, **changes):
        limits = {"rate_per_s": 200, "in_flight_max": 8, **changes}
        sections = {api: server.section("production", api, **limits) for api in apis}
        config = desk.configuration(f"{name}.new", mine=sections)
        shared = f'ledger = "{postgres.url(ledger_database, port=port)}"\n' if ledger else ""
        config.write_text(f'[profiles.mine]\n{shared}ledger_key_env = "LEDGER_KEY"\n{config.read_text()}')
        config = config.replace(desk.folder / name)  # a command may be reading what is there
        return "--config", config, "--profile", "mine"

    return words


@pytest.fixture
def host(desk):
    """`host("a")("run", file, ...)`: start a command on a host of this name, with its own state folder."""

    def of(name):
        def start(*words, **changes):
            state = str(desk.folder / f"state of {name}")
            prefix = () if desk.is_warm else _SHORT_LEASE
            return desk.start(*words, prefix=prefix, **{**_CHANGES, "XDG_STATE_HOME": state, **changes})

        return start

    return of


@pytest.fixture
def in_ledger(postgres, ledger_database):
    """The only value of a query of the shared ledger."""

    def value(query):
        with postgres.connect(ledger_database) as connection:
            return connection.execute(query).fetchone()[0]

    return value
