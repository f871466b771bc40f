"""The cap of 50 a day of the test server: never exceeded, by however many processes."""

import re
from collections import Counter

import pytest
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

CAP = 50


@pytest.fixture
def server(serve, tmp_path):
    """A sandbox whose role test has not been asked today."""
    with serve(tmp_path / "server") as running:
        yield running


@pytest.fixture
def capped(desk, sandbox):
    """`capped(daily_cap=5)`: the words for a profile on the production role under such a cap."""

    def words(**limits):
        section = sandbox.section("production", "cop", **limits)
        return "--config", desk.configuration(capped={"cop": section}), "--profile", "capped"

    return words


@pytest.mark.nightly
def test_the_test_role_is_asked_fifty_questions_a_day_and_the_rest_is_deferred(
    desk, server, network_payments
):
    file = desk.payments(network_payments(60))

    first = desk("run", file, *server.using("test"), "--quiet")

    assert first.status == 75
    assert [call["status"] for call in server.questions()] == [200] * CAP
    rows = desk.outcomes()
    assert Counter(row["check_code"] == "DAILY_CAP" for row in rows) == {False: CAP, True: 10}
    deferred = [row for row in rows if row["check_code"] == "DAILY_CAP"]
    assert {(row["check_outcome"], row["check_action"]) for row in deferred} == {("deferred", "retry_later")}
    [sentence] = first.sentences
    assert "Questions left: 10;" in sentence
    assert re.search(said("executors.left_by_cap") + r"\d{4}-\d\d-\d\d 00:00 UTC", sentence)

    sent_count = server.call_count
    second = desk("run", file, *server.using("test"), "--quiet")

    assert second.status == 75
    assert len(server.questions(sent_count)) == 0
    assert desk.outcomes() == rows
    shown = desk("quota")
    assert shown.status == 0
    assert re.search(r"127\.0\.0\.1:\d+.* 50 .* 50 .*00:00 UTC", shown.out)
    named = desk("quota", PRECHECK_CONFIG=str(server.config))
    assert re.search(r"127\.0\.0\.1:\d+ \(test cop; client \*\*\*\*\w*\)", named.out)
    planned = desk("plan", file, *server.using("test"))
    assert said("terminal.days_from_tomorrow", cap=50) in planned.out


@pytest.mark.nightly
def test_a_cap_is_spent_once_however_the_server_is_spelled(desk, sandbox, network_payments):
    port = sandbox.url.rpartition(":")[2]
    before = sandbox.call_count

    statuses = []
    for number, host in enumerate(("localhost", "LOCALHOST", "LocalHost")):
        rows = network_payments(24)[number * 8 :][:8]
        section = sandbox.section(base_url=f"https://{host}:{port}/production", daily_cap=8)
        words = ("--config", desk.configuration(mine={"cop": section}), "--profile", "mine")
        statuses.append(desk("run", desk.payments(rows, name=f"{number}.csv"), *words, "--quiet").status)

    assert len(sandbox.questions(before)) == 8
    assert statuses == [0, 75, 75]
    shown = desk("quota")
    assert shown.out.count("localhost:") == 1
    assert "LOCALHOST" not in shown.err


@pytest.mark.parametrize(
    "odd", ["stamp-18-hours-ago", pytest.param("stamp-next-summer", marks=pytest.mark.nightly)]
)
def test_two_runs_at_once_never_exceed_the_cap_together(desk, serve, tmp_path, network_payments, odd):
    """Nor do those that come after them, though one reply had an odd time stamp."""
    rows = network_payments(80)
    files = [desk.payments(rows[:40], name="one.csv"), desk.payments(rows[40:], name="two.csv")]
    with serve(tmp_path / "own", "--fault", f"{odd}:after=5,for=1") as server:
        words = desk.using(cop=server.section("production", "cop", daily_cap=30))
        with desk.start("run", files[0], *words) as one, desk.start("run", files[1], *words) as two:
            ends = [one.end(), two.end()]
        ends += [desk("run", file, *words) for file in files]
        asked = len(server.questions())

    assert [end.status for end in ends] == [75] * 4
    assert asked == 30
    answered = [
        row for stem in ("one", "two") for row in desk.outcomes(f"{stem}.precheck") if row["check_id"]
    ]
    assert len(answered) == 30


@pytest.mark.nightly
def test_the_files_of_one_command_share_the_cap(desk, sandbox, capped, network_payments):
    rows = network_payments(20)
    files = [desk.payments(rows[:12], name="one.csv"), desk.payments(rows[12:], name="two.csv")]
    before = sandbox.call_count

    finished = desk("run", *files, *capped(daily_cap=15))

    assert finished.status == 75
    assert len(sandbox.questions(before)) == 15
    end = [line.split() for line in finished.out.partition("2 files:")[2].splitlines()]
    assert [(line[3], line[4]) for line in end if line[-1:] in (["one.csv"], ["two.csv"])] == [
        ("0", "0"),
        ("5", "75"),
    ]


def test_a_killed_run_never_gives_its_units_back(desk, sandbox, capped, network_payments):
    file = desk.payments(network_payments(50))
    words = capped(daily_cap=30, rate_per_s=20)
    before = sandbox.call_count
    with desk.start("run", file, *words) as process:
        sandbox.wait_for_calls(10, since=before)
        process.kill()
        process.end()

    assert desk("run", file, *words).status == 75

    assert len(sandbox.questions(before)) <= 30


@pytest.mark.nightly
def test_order_amount_spends_scarce_calls_on_the_largest_payments(desk, capped, network_payments):
    file = desk.payments(network_payments(20))

    desk("run", file, *capped(daily_cap=5), "--order", "amount", "--quiet")

    rows = desk.outcomes()
    answered = {row["amount"] for row in rows if row["check_outcome"] != "deferred"}
    assert answered == {"20.00", "19.00", "18.00", "17.00", "16.00"}
    assert [row["amount"] for row in rows] == [f"{amount}.00" for amount in range(1, 21)]


def test_limit_leaves_the_rest_for_a_later_run_which_goes_on_from_there(desk, sandbox, network_payments):
    file = desk.payments(network_payments(10))
    before = sandbox.call_count

    first = desk("run", file, *sandbox.using("production"), "--limit", 4, "--quiet")

    assert first.status == 75
    assert len(first.sentences) == 1
    codes = [row["check_code"] for row in desk.outcomes()]
    assert codes[4:] == ["LIMIT"] * 6
    assert "LIMIT" not in codes[:4]
    assert desk("run", file, *sandbox.using("production"), "--limit", 6, "--quiet").status == 0
    assert set(Counter(call["question"] for call in sandbox.questions(before)).values()) == {1}


def test_limit_zero_sends_nothing(desk, sandbox, network_payments):
    file = desk.payments(network_payments(3))
    before = sandbox.call_count

    assert desk("run", file, *sandbox.using("production"), "--limit", 0).status == 75

    assert not sandbox.questions(before)


def test_a_server_that_counts_more_than_we_did_is_believed(desk, server, network_payments):
    file = desk.payments(network_payments(60))
    desk("run", file, *server.using("test"), "--quiet")
    other_user = {"XDG_STATE_HOME": str(desk.folder / "other")}
    words = ("run", file, *server.using("test"), "--out", "other.precheck", "--quiet")
    sent_count = server.call_count

    first = desk(*words, **other_user)

    assert first.status == 75
    assert {call["status"] for call in server.questions(sent_count)} == {429}
    rows = desk.outcomes("other.precheck")
    assert {(row["check_outcome"], row["check_code"]) for row in rows} == {("deferred", "DAILY_CAP")}

    sent_count = server.call_count
    assert desk(*words, **other_user).status == 75
    assert len(server.questions(sent_count)) == 0
