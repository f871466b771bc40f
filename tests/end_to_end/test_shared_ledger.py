"""One payment file, several hosts: they share its questions, and each has the outcomes in a folder of its own."""

import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from postgres import LEDGER_KEY

COUNT = 300
RATE_PER_S = 200
SLOW_PER_S = 40
"""So that a second command comes while the first still asks, also on a machine with other work to do."""
LEASE_S = 2
KEY = {"LEDGER_KEY": LEDGER_KEY.get_secret_value()}
SHORT_LEASE = (sys.executable, str(Path(__file__).parents[1] / "short_lease.py"), str(LEASE_S))


@pytest.fixture
def profile(desk, sandbox, postgres, ledger_database):
    """`profile(rate_per_s=20)`: the words of a profile with a ledger of this test's own."""

    def words(name="mine.toml", ledger=True, **changes):
        changes = {"rate_per_s": RATE_PER_S, "in_flight_max": 8, **changes}
        config = desk.configuration(name, mine={"cop": sandbox.section("production", "cop", **changes)})
        said = (
            f'ledger = "{postgres.url(ledger_database)}"\nledger_key_env = "LEDGER_KEY"\n' if ledger else ""
        )
        config.write_text(f"[profiles.mine]\n{said}{config.read_text()}")
        return "--config", config, "--profile", "mine"

    return words


@pytest.fixture
def host(desk):
    """`host("a")("run", file, ...)`: start a command on a host of this name."""

    def of(name):
        def start(*words, **changes):
            state = str(desk.folder / f"state of {name}")
            return desk.start(*words, prefix=SHORT_LEASE, **KEY, XDG_STATE_HOME=state, **changes)

        return start

    return of


@pytest.fixture
def file(desk, network_payments):
    return desk.payments(network_payments(COUNT))


@pytest.fixture
def db(postgres, ledger_database):
    """The only value of a query."""

    def value(query):
        with postgres.connect(ledger_database) as connection:
            return connection.execute(query).fetchone()[0]

    return value


def times_asked(sandbox, before):
    """How many questions were asked so many times."""
    asked = Counter(call["body"] if "body" in call else str(call) for call in sandbox.questions(before))
    return Counter(asked.values())


def test_a_run_over_a_shared_ledger_leaves_what_a_run_alone_leaves(desk, sandbox, file, profile, host):
    alone = desk("run", file, *sandbox.using("production"), "--out", "alone")
    before = sandbox.call_count

    done = host("a")("run", file, *profile(), "--out", "shared").end()

    assert (alone.status, done.status) == (0, 0), done.err
    assert len(sandbox.questions(before)) == COUNT
    assert desk.stable_outcomes("shared") == desk.stable_outcomes("alone")
    assert desk("verify", "shared", "--input", file).status == 0


def test_two_hosts_share_the_questions_of_a_file_and_have_the_same_outcomes(
    desk, sandbox, file, profile, host
):
    words, before = profile(rate_per_s=SLOW_PER_S), sandbox.call_count

    with host("a")("run", file, *words, "--out", "a") as first:
        with host("b")("run", file, *words, "--out", "b") as second:
            ends = second.end(), first.end()

    assert [end.status for end in ends] == [0, 0], ends
    assert len(sandbox.questions(before)) == COUNT
    assert desk.outcomes("a") == desk.outcomes("b"), "each with the ids and the times of the one request"
    assert all(desk.departures(folder) for folder in ("a", "b"))
    for folder in ("a", "b"):
        assert len(desk.departures(folder)) == COUNT
        assert desk("verify", folder, "--input", file).status == 0


def test_a_run_that_is_killed_on_one_host_is_resumed_on_another(desk, sandbox, file, profile, host, db):
    words, before = profile(rate_per_s=SLOW_PER_S), sandbox.call_count

    with host("a")("run", file, *words, "--out", "a") as first:
        sandbox.wait_for_calls(COUNT // 3, before)
        first.kill()
        first.communicate()
    answered = db("SELECT count(*) FROM precheck.answer")
    resumed = host("b")("run", file, *words, "--out", "b").end()

    assert answered >= 20
    assert resumed.status == 0, resumed.err
    assert db("SELECT count(*) FROM precheck.run") == 1
    assert db("SELECT count(*) FROM precheck.answer") == COUNT
    assert len(sandbox.questions(before)) - COUNT <= 8, "those in flight alone are in doubt"
    # The folder of the killed one catches up, and asks nothing.
    before = sandbox.call_count
    assert host("a")("run", file, *words, "--out", "a").end().status == 0
    assert sandbox.call_count == before
    assert desk.outcomes("a") == desk.outcomes("b")


def test_a_finished_run_sends_nothing_and_the_same_bytes_elsewhere_are_a_new_run(
    desk, sandbox, file, profile, host, db, postgres
):
    words = profile()
    assert host("a")("run", file, *words, "--out", "january").end().status == 0
    before = sandbox.call_count

    again = host("a")("run", file, *words, "--out", "january").end()

    assert (again.status, sandbox.call_count) == (0, before)
    assert "nothing was sent" in again.err
    assert host("a")("run", file, *words, "--out", "february").end().status == 0
    assert len(sandbox.questions(before)) == COUNT
    assert db("SELECT count(*) FROM precheck.run") == 2


def test_a_folder_that_was_begun_without_the_shared_ledger_is_refused_under_it_and_the_reverse(
    desk, sandbox, file, profile, host
):
    alone, shared = profile("alone.toml", ledger=False), profile()
    assert host("a")("run", file, *alone, "--out", "alone").end().status == 0
    assert host("a")("run", file, *shared, "--out", "shared").end().status == 0
    before = sandbox.call_count

    ends = [
        host("a")("run", file, *words, "--out", folder).end()
        for words, folder in ((shared, "alone"), (alone, "shared"))
    ]

    assert [end.status for end in ends] == [2, 2]
    assert "alone: this folder holds a run that was begun without a shared ledger" in ends[0].err
    assert (
        "shared: this folder holds a run that was begun with the shared ledger postgresql://" in ends[1].err
    )
    assert all("--fresh" in end.err for end in ends)
    assert sandbox.call_count == before


def test_fresh_begins_a_new_run(desk, sandbox, file, profile, host, db):
    words = profile()
    limited = host("a")("run", file, *words, "--out", "a", "--limit", 120).end()
    assert limited.status == 75
    before = sandbox.call_count

    assert host("a")("run", file, *words, "--out", "a", "--fresh").end().status == 0

    assert len(sandbox.questions(before)) == COUNT
    assert db("SELECT count(*) FROM precheck.run") == 2


def test_a_limit_asks_so_many_and_leaves_the_rest_to_a_later_run(desk, sandbox, file, profile, host):
    words, before = profile(), sandbox.call_count

    limited = host("a")("run", file, *words, "--out", "a", "--limit", 120).end()

    assert limited.status == 75
    assert len(sandbox.questions(before)) == 120
    assert Counter(row["check_code"] for row in desk.outcomes("a"))["LIMIT"] == COUNT - 120
    assert host("b")("run", file, *words, "--out", "b").end().status == 0
    assert len(sandbox.questions(before)) == COUNT
