"""One payment file, several hosts: they share its questions, and each has the outcomes in its own folder."""

import json
from collections import Counter
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace

import pytest
from refusals import said
from shared_profiles import LEASE_S
from sharers import most_in_a_second

from pipeline.executors.shared import CHUNK_SIZE
from pipeline.sandbox.iban import compose

COUNT = 200
FEW = 30
LATE_ARRIVALS = 1.2
"""What a busy machine may add to a second at the socket: requests that left before it."""
SLOW_PER_S = 60
"""So that a second command comes while the first still asks, also on a machine with other work to do."""


@pytest.fixture
def file(desk, network_payments):
    return desk.payments(network_payments(COUNT))


@pytest.fixture
def few(desk, network_payments):
    return desk.payments(network_payments(FEW))


@pytest.mark.nightly
def test_a_run_over_a_shared_ledger_leaves_what_a_run_alone_leaves(desk, sandbox, few, shared_profile, host):
    alone = desk("run", few, *sandbox.using("production"), "--out", "alone")
    before = sandbox.call_count

    done = host("a")("run", few, *shared_profile(), "--out", "shared").end()

    assert (alone.status, done.status) == (0, 0), done.err
    assert len(sandbox.questions(before)) == FEW
    assert desk.stable_outcomes("shared") == desk.stable_outcomes("alone")
    assert desk("verify", "shared", "--input", few).status == 0
    status = json.loads(host("a")("status", *shared_profile(), "--json").end().out)
    assert (status["runs"], [account["shares"] for account in status["accounts"]]) == ([], [[]])


def test_two_hosts_share_the_questions_of_a_file_and_have_the_same_outcomes(
    desk, sandbox, file, shared_profile, host
):
    words, before = shared_profile(rate_per_s=SLOW_PER_S), sandbox.call_count

    starts = [(name, ("run", file, *words, "--out", name)) for name in ("a", "b")]
    with ExitStack() as stack:
        running = [stack.enter_context(host(name)(*command)) for name, command in starts]
        ends = [one.end() for one in running]

    assert [end.status for end in ends] == [0, 0], ends
    assert len(sandbox.questions(before)) == COUNT
    assert desk.outcomes("a") == desk.outcomes("b"), "each with the ids and the times of the one request"
    assert all(desk.departures(folder) for folder in ("a", "b"))
    for folder in ("a", "b"):
        assert len(desk.departures(folder)) == COUNT
        assert desk("verify", folder, "--input", file).status == 0


def test_files_of_one_command_share_token_and_connections(
    desk, sandbox, shared_profile, host, network_payments
):
    rows, before = network_payments(FEW), sandbox.call_count
    files = [desk.payments(rows[at::3], f"file{at}.csv") for at in range(3)]

    run = host("a")("run", *files, *shared_profile(in_flight_max=4), "--out", "out").end()

    assert run.status == 0, run.err
    calls = sandbox.calls(before)
    assert Counter(call["api"] for call in calls) == {"token": 1, "cop": FEW}
    assert len({call["connection"] for call in calls}) <= 5, "one for the token"
    for file in files:
        assert desk("verify", f"out/{file.stem}", "--input", file).status == 0


def test_a_run_that_is_killed_on_one_host_is_resumed_on_another(
    desk, sandbox, file, shared_profile, host, in_ledger
):
    words, before = shared_profile(rate_per_s=SLOW_PER_S), sandbox.call_count

    with host("a")("run", file, *words, "--out", "a") as first:
        sandbox.wait_for_calls(COUNT // 3, before)
        first.kill()
        first.communicate()
    answered = in_ledger("SELECT count(*) FROM precheck.answer")
    resumed = host("b")("run", file, *words, "--out", "b").end()

    assert answered >= 20
    assert resumed.status == 0, resumed.err
    assert in_ledger("SELECT count(*) FROM precheck.run") == 1
    assert in_ledger("SELECT count(*) FROM precheck.answer") == COUNT
    assert len(sandbox.questions(before)) - COUNT <= 8, "those in flight alone are in doubt"
    # The folder of the killed one catches up, and asks nothing.
    before = sandbox.call_count
    assert host("a")("run", file, *words, "--out", "a").end().status == 0
    assert sandbox.call_count == before
    assert desk.outcomes("a") == desk.outcomes("b")


@pytest.mark.nightly
def test_what_a_dead_host_left_of_one_api_is_asked_while_the_other_api_is_still_asked(
    desk, sandbox, network_payments, shared_profile, host, in_ledger, wait_until
):
    """Found by the simulation: it waited until those who live were done with the other API."""
    ibans = [
        {
            "payment_id": f"EUR-{n}",
            "name": f"Invented Payee {n}",
            "iban": compose("DE", f"37040044{n:010d}"),
            "currency": "EUR",
        }
        for n in range(CHUNK_SIZE)
    ]
    file = desk.payments([*network_payments(COUNT), *[{**row, "amount": "1.00"} for row in ibans]])
    words, before = shared_profile(apis=("cop", "vop"), rate_per_s=10), sandbox.call_count

    def asked(api):
        return sum(call["api"] == api for call in sandbox.questions(before))

    with host("a")("run", file, *words, "--out", "a") as dead:
        wait_until(lambda: asked("vop_gateway") > 0)
        with host("b")("run", file, *words, "--out", "b") as alive:
            wait_until(lambda: in_ledger("SELECT count(DISTINCT holder) FROM precheck.chunk") == 2)
            dead.kill()
            dead.communicate()
            wait_until(lambda: asked("vop_gateway") >= CHUNK_SIZE)
            cop_count = asked("cop")
            done = alive.end()

    assert done.status == 0, done.err
    assert cop_count < COUNT
    assert len(sandbox.questions(before)) - COUNT - CHUNK_SIZE <= 2 * 8, "those in flight alone are in doubt"


@pytest.mark.nightly
def test_what_is_known_when_the_database_is_gone_for_good_is_in_the_files_and_the_rest_is_asked_later(
    desk, sandbox, network_payments, shared_profile, host, in_ledger, postgres, proxy_to, wait_until
):
    count, file = 90, desk.payments(network_payments(90))
    proxy, before = proxy_to(postgres.port), sandbox.call_count
    direct = shared_profile(rate_per_s=SLOW_PER_S)
    assert host("b")("run", file, *direct, "--out", "b", "--limit", 20).end().status == 75
    words = shared_profile("proxied.toml", rate_per_s=SLOW_PER_S, port=proxy.port)

    with host("a")("run", file, *words, "--out", "a", PRECHECK_TEST_WAIT_S="2") as checking:
        wait_until(lambda: in_ledger("SELECT count(*) FROM precheck.answer") > 30)
        proxy.close_door()
        done = checking.end()

    assert done.status == 75, done.err
    assert said("stores.database_not_answering") in done.err
    assert done.err.count("Z the ledger's database does not answer; nothing is sent until it does (") == 1
    on_record = in_ledger("SELECT count(*) FROM precheck.answer")
    found = Counter(row["check_outcome"] for row in desk.outcomes("a"))
    left = {"deferred", "unanswered"}
    # One whose answer was committed while the connection ended is not known here.
    assert on_record - 8 <= sum(found.values()) - sum(found[what] for what in left) <= on_record
    assert found["unanswered"] <= 8, "those whose replies could not be recorded"
    assert {row["check_code"] for row in desk.outcomes("a") if row["check_outcome"] in left} == {"RUN_ENDED"}
    assert desk("verify", "a", "--input", file).status == 0
    # Once it is back, nothing is asked again but what was in flight.
    proxy.open_door()
    again = host("a")("run", file, *words, "--out", "a").end()
    assert again.status == 0, again.err
    assert len(sandbox.questions(before)) - count <= 8
    assert desk("verify", "a", "--input", file).status == 0
    assert host("b")("run", file, *direct, "--out", "b").end().status == 0
    assert desk.outcomes("a") == desk.outcomes("b")


@pytest.mark.nightly
def test_a_finished_run_sends_nothing_and_the_same_bytes_elsewhere_are_a_new_run(
    desk, sandbox, few, shared_profile, host, in_ledger, postgres
):
    words = shared_profile()
    assert host("a")("run", few, *words, "--out", "january").end().status == 0
    before = sandbox.call_count

    again = host("a")("run", few, *words, "--out", "january").end()

    assert (again.status, sandbox.call_count) == (0, before)
    assert said("terminal.finished_already") in again.out
    assert host("a")("run", few, *words, "--out", "february").end().status == 0
    assert len(sandbox.questions(before)) == FEW
    assert in_ledger("SELECT count(*) FROM precheck.run") == 2


@pytest.mark.nightly
def test_matches_of_other_runs_are_used_again_where_that_is_allowed(desk, sandbox, shared_profile, host):
    file = desk.folder / "payments.csv"
    assert desk("sandbox", "--write-payments", file, "--rows", 60).status == 0
    words = shared_profile()
    for folder in ("january", "february"):
        host("a")("run", file, *words, "--out", folder).end()
    calls = sandbox.call_count

    last = host("a")("run", file, *words, "--out", "march", "--reuse-max-age", "1d").end()

    assert last.status in {0, 75, 76}, last.err
    summaries = {
        folder: json.loads((desk.folder / folder / "summary.json").read_text())["calls"][0]
        for folder in ("february", "march")
    }
    reused = summaries["march"]["reused_count"]
    assert reused >= 10
    assert summaries["february"]["question_count"] == reused + len(sandbox.questions(calls))
    said = ("check_outcome", "check_code", "check_id", "check_time")
    found = [
        [[row[key] for key in said] for row in desk.outcomes(folder) if row["check_outcome"] == "match"]
        for folder in ("february", "march")
    ]
    assert found[0] == found[1], "with the id and the time of the latest request"


@pytest.mark.nightly
def test_a_folder_that_was_begun_without_the_shared_ledger_is_refused_under_it_and_the_reverse(
    desk, sandbox, few, shared_profile, host
):
    alone, shared = shared_profile("alone.toml", ledger=False), shared_profile()
    assert host("a")("run", few, *alone, "--out", "alone").end().status == 0
    assert host("a")("run", few, *shared, "--out", "shared").end().status == 0
    before = sandbox.call_count

    ends = [
        host("a")("run", few, *words, "--out", folder).end()
        for words, folder in ((shared, "alone"), (alone, "shared"))
    ]

    assert [end.status for end in ends] == [2, 2]
    assert said("runs.begun_unshared", folder="alone") in ends[0].err
    assert said("runs.begun_shared", folder="shared") + "postgresql://" in ends[1].err
    assert all("--fresh" in end.err for end in ends)
    assert sandbox.call_count == before


@pytest.mark.nightly
def test_fresh_begins_a_new_run(desk, sandbox, few, shared_profile, host, in_ledger):
    words = shared_profile()
    limited = host("a")("run", few, *words, "--out", "a", "--limit", 12).end()
    assert limited.status == 75
    before = sandbox.call_count

    assert host("a")("run", few, *words, "--out", "a", "--fresh").end().status == 0

    assert len(sandbox.questions(before)) == FEW
    assert in_ledger("SELECT count(*) FROM precheck.run") == 2


def test_a_run_that_was_moved_aside_is_closed_and_the_new_one_does_not_go_on_with_it(
    desk, sandbox, few, shared_profile, host, in_ledger
):
    words = shared_profile(server=SimpleNamespace(section=partial(sandbox.section, server="production")))
    assert host("a")("run", few, *words, "--out", "a", "--limit", 12).end().status == 75
    before = sandbox.call_count

    assert host("a")("run", few, *words, "--out", "a", "--fresh").end().status == 0

    assert list(desk.folder.glob("a.2*/outcomes.csv"))
    assert len(sandbox.questions(before)) == FEW
    assert in_ledger("SELECT count(finished_at) FROM precheck.run") == 2


@pytest.mark.nightly
def test_a_limit_asks_so_many_and_leaves_the_rest_to_a_later_run(desk, sandbox, few, shared_profile, host):
    words, before = shared_profile(), sandbox.call_count

    limited = host("a")("run", few, *words, "--out", "a", "--limit", 12).end()

    assert limited.status == 75
    assert len(sandbox.questions(before)) == 12
    assert Counter(row["check_code"] for row in desk.outcomes("a"))["LIMIT"] == FEW - 12
    assert host("b")("run", few, *words, "--out", "b").end().status == 0
    assert len(sandbox.questions(before)) == FEW


@pytest.mark.parametrize(
    "odd",
    [
        "stamp-18-hours-ago",
        pytest.param("stamp-next-summer", marks=pytest.mark.nightly),
        pytest.param("stamp-year-9999", marks=pytest.mark.nightly),
    ],
)
def test_a_cap_that_is_reached_ends_the_asking_of_all_hosts_and_defers_the_rest(
    desk, serve, tmp_path, network_payments, shared_profile, host, in_ledger, odd
):
    """One reply has an odd time stamp, which moves neither the cap nor its day."""
    cap, file = 60, desk.payments(network_payments(120))
    with serve(tmp_path / "own", "--fault", f"{odd}:after=5,for=1") as server:
        words = shared_profile(server=server, daily_cap=cap, rate_per_s=50)
        with ExitStack() as stack:
            commands = [("run", file, *words, "--out", name) for name in ("a", "b")]
            running = [stack.enter_context(host(str(command[-1]))(*command)) for command in commands]
            ends = [one.end() for one in running]
        calls = server.questions()
        asked = len(calls)

    assert [end.status for end in ends] == [75, 75], ends
    assert most_in_a_second([call["monotonic"] for call in calls]) <= 50 * LATE_ARRIVALS
    assert asked == cap == in_ledger("SELECT count(*) FROM precheck.intent")
    assert in_ledger("SELECT used FROM precheck.daily_cap") == cap
    for folder in ("a", "b"):
        found = Counter(row["check_outcome"] for row in desk.outcomes(folder))
        assert found["deferred"] == 120 - cap, found
        assert found.total() - found["deferred"] == cap
        codes = {row["check_code"] for row in desk.outcomes(folder) if row["check_outcome"] == "deferred"}
        assert codes == {"DAILY_CAP"}
    assert all(said("executors.left_by_cap", cap=60) in end.out for end in ends), ends


@pytest.mark.nightly
def test_hosts_with_other_limits_for_one_account_are_refused_naming_both(
    desk, file, sandbox, network_payments, shared_profile, host, in_ledger, wait_until
):
    another = desk.payments(network_payments(20), "another.csv")
    mine, other = shared_profile(rate_per_s=10), shared_profile("other.toml", rate_per_s=90)
    with host("a")("run", file, *mine, "--out", "a") as first:
        wait_until(lambda: in_ledger("SELECT count(*) FROM precheck.answer") > 0)
        refused = host("b")("run", another, *other, "--out", "b").end()
        first.kill()
        first.communicate()

    assert refused.status == 78
    assert "rate_per_s = 90" in refused.err
    assert "rate_per_s = 10" in refused.err
    assert f"process {first.pid}" in refused.err
    assert in_ledger("SELECT count(*) FROM precheck.run") == 1, "the refused one began none"


def test_status_shows_the_run_who_asks_and_what_each_may_use(
    file, shared_profile, host, in_ledger, wait_until
):
    rate_per_s = 10
    words = shared_profile(rate_per_s=rate_per_s, daily_cap=1000)
    look = ("status", *words)
    with host("a")("run", file, *words, "--out", "a") as first:
        wait_until(lambda: in_ledger("SELECT count(*) FROM precheck.answer") > 0)
        found = json.loads(host("b")(*look, "--json").end().out)
        shown = host("b")(*look).end().out
        first.kill()
        first.communicate()

    [run], [holder], [account], [cap] = (found[what] for what in ("runs", "holders", "accounts", "caps"))
    assert run["open"]
    assert 0 < run["answer_count"] <= run["attempt_count"] <= COUNT
    assert (run["question_count"], run["left_count"]) == (COUNT, COUNT - run["answer_count"])
    assert run["undone_chunk_count"] - run["free_chunk_count"] == holder["chunk_count"] > 0
    assert (holder["pid"], holder["alive"]) == (first.pid, True)
    assert 0 < holder["oldest_lease_s"] <= LEASE_S
    [share] = account["shares"]
    assert (share["pid"], share["requests"], share["slots"]) == (first.pid, rate_per_s, 8)
    assert (cap["cap"], cap["closed"]) == (1000, False)
    assert 0 < cap["used"] <= COUNT
    for fact in (
        run["run"],
        f"Process {first.pid} on ",
        f" of {COUNT} questions left",
        "of the daily cap of 1,000 used",
    ):
        assert fact in shown
