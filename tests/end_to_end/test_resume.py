"""Promise 1: an answered check is never asked again, whatever ends the run."""

import asyncio
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import termios
import threading
from collections import Counter
from contextlib import closing

import pytest
from desk import COMMAND_MAX_S
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

ROW_COUNT = 80
STOPPED_AT = 16
RATE_PER_S = 20
"""Slow, so that a machine with other work to do still stops a run seconds before it would have ended."""
IN_FLIGHT_MAX = 8


@pytest.fixture
def using(desk, sandbox):
    """`using("slow")`: the words for a profile that takes seconds; "quick" asks the same at full speed."""
    section = sandbox.section("production", "cop", in_flight_max=IN_FLIGHT_MAX)
    config = desk.configuration(
        slow={"cop": {**section, "rate_per_s": RATE_PER_S}}, quick={"cop": {**section, "rate_per_s": 1000}}
    )
    return lambda name: ("--config", config, "--profile", name)


@pytest.fixture
def file(desk, network_payments):
    """Half of the rows ask what an earlier one asked."""
    rows = network_payments(ROW_COUNT)
    return desk.payments([{**row, "payment_id": f"{row['payment_id']}-{n}"} for row in rows for n in (1, 2)])


def answered_ids(folder):
    """The correlation ids of all answers on record; of a copy, because to open a ledger changes it."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    with closing(sqlite3.connect(copy / "ledger.db")) as db:
        ids = [request_id for [request_id] in db.execute("SELECT request_id FROM answer")]
    shutil.rmtree(copy)
    return ids


def test_a_second_run_sends_nothing_not_even_for_a_token(desk, sandbox, file):
    before = sandbox.call_count
    first = desk("run", file, *sandbox.using("production"))
    folder = desk.folder / "payments.precheck"
    written = (folder / "outcomes.csv").read_bytes()
    after = sandbox.call_count

    second = desk("run", file, *sandbox.using("production"))

    assert (first.status, second.status) == (0, 0)
    assert len(sandbox.questions(before)) == ROW_COUNT
    assert sandbox.call_count == after
    assert said("terminal.finished_already") in second.out
    assert (folder / "outcomes.csv").read_bytes() == written


@pytest.mark.nightly
def test_fresh_asks_again(desk, sandbox, network_payments):
    file = desk.payments(network_payments(3))
    desk("run", file, *sandbox.using("production"))
    before = sandbox.call_count

    assert desk("run", file, *sandbox.using("production"), "--fresh").status == 0

    assert len(sandbox.questions(before)) == 3


def test_an_outcome_file_that_was_lost_is_written_again_without_a_call(desk, sandbox, network_payments):
    file = desk.payments(network_payments(3))
    desk("run", file, *sandbox.using("production"))
    outcome_file = desk.folder / "payments.precheck" / "outcomes.csv"
    written = outcome_file.read_bytes()
    outcome_file.unlink()
    before = sandbox.call_count

    assert desk("run", file, *sandbox.using("production")).status == 0

    assert outcome_file.read_bytes() == written
    assert sandbox.call_count == before


def test_a_summary_that_somebody_changed_is_not_believed(desk, sandbox, network_payments):
    file = desk.payments(network_payments(3))
    desk("run", file, *sandbox.using("production"))
    summary = desk.folder / "payments.precheck" / "summary.json"
    written = json.loads(summary.read_text())
    summary.write_text(json.dumps({**written, "complete": False}))
    before = sandbox.call_count

    assert desk("run", file, *sandbox.using("production")).status == 0

    assert json.loads(summary.read_text())["outcomes"] == written["outcomes"]
    assert json.loads(summary.read_text())["complete"]
    assert sandbox.call_count == before


@pytest.mark.nightly
def test_headers_read_another_way_are_another_question(desk, sandbox, network_payments):
    rows = [{**row, "trading": f"Other {row['name']}"} for row in network_payments(3)]
    file = desk.payments(rows, header=tuple(rows[0]))
    desk("run", file, *sandbox.using("production"))
    before = sandbox.call_count

    finished = desk("run", file, *sandbox.using("production"), "--map", "name=trading")

    assert finished.status == 0
    assert len(sandbox.questions(before)) == 3


def test_killed_twice_and_run_again_no_answered_check_is_asked_again(desk, sandbox, using, file):
    before = sandbox.call_count
    folder = desk.folder / "payments.precheck"
    done = set()
    for kill_count in (1, 2):
        started_at = sandbox.call_count
        with desk.start("run", file, *using("slow")) as process:
            sandbox.wait_for_calls(STOPPED_AT, since=started_at)
            process.kill()
            process.end()
        assert not (folder / "outcomes.csv").exists()
        assert not done & {call["question"] for call in sandbox.questions(started_at)}
        question_of = {call["request_id"]: call["question"] for call in sandbox.questions(before)}
        done = {question_of[request_id] for request_id in answered_ids(folder)}
        assert len(done) >= STOPPED_AT * kill_count - IN_FLIGHT_MAX * kill_count

    resumed_at = sandbox.call_count
    assert desk("run", file, *using("quick")).status == 0

    resumed = [call["question"] for call in sandbox.questions(resumed_at)]
    assert not done & set(resumed)
    assert len(done) + len(resumed) == len(done | set(resumed)) == ROW_COUNT
    # A kill can cost the calls in flight, never more.
    assert len(sandbox.questions(before)) <= ROW_COUNT + 2 * IN_FLIGHT_MAX
    assert desk("run", file, *sandbox.using("production"), "--out", "undisturbed").status == 0
    undisturbed = desk.stable_outcomes("undisturbed")
    assert len(undisturbed) == 2 * ROW_COUNT
    assert desk.stable_outcomes() == undisturbed


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="130"),
        pytest.param(signal.SIGTERM, id="143", marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, id="129", marks=pytest.mark.nightly),
        pytest.param(signal.SIGXCPU, id="152", marks=pytest.mark.nightly),
    ],
)
def test_a_signal_drains_and_the_next_run_completes(desk, sandbox, using, file, number):
    desk("run", file, *using("quick"), "--limit", 5, "--quiet")
    folder = desk.folder / "payments.precheck"
    before = sandbox.call_count
    with desk.start("run", file, *using("slow")) as process:
        sandbox.wait_for_calls(STOPPED_AT, since=before)
        process.send_signal(number)
        if number in {signal.SIGHUP, signal.SIGXCPU}:
            process.send_signal(number)  # they come more than once for one reason
        finished = process.end()

    assert finished.status == 128 + number
    [sentence] = finished.sentences
    name = "Ctrl-C" if number == signal.SIGINT else number.name
    assert said("errors.stopped_by", name=name) in sentence
    codes = Counter((row["check_outcome"], row["check_code"]) for row in desk.outcomes())
    assert 0 < codes["deferred", "RUN_ENDED"] < len(desk.outcomes()) - STOPPED_AT
    assert "unanswered" not in {outcome for outcome, _ in codes}, "what was in flight had its answer awaited"
    assert desk("verify", folder).status == 0
    assert desk("show", folder, "--row", 1).status == 0
    assert "ended early" in json.loads((folder / "summary.json").read_text())["next_step"]

    assert desk("run", file, *using("quick"), "--quiet").status == 0

    calls = Counter(call["question"] for call in sandbox.questions(before))
    assert set(calls.values()) == {1}, "what was in flight had its answer awaited"
    assert len(calls) == ROW_COUNT - 5


def test_a_terminal_that_goes_away_stops_the_run_with_its_outcome_file(desk, sandbox, using, file):
    """The kernel sends SIGHUP, and every byte written to the terminal is an error from then on."""
    leader, terminal = pty.openpty()

    def lead():
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started the tests may have ignored it
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    words, before = ("run", file, *using("slow")), sandbox.call_count
    with desk.start(*words, stdout=terminal, stderr=terminal, limits=lead) as process:
        os.close(terminal)
        while sandbox.call_count < before + STOPPED_AT:
            os.read(leader, 4096)
        os.close(leader)
        process.wait(COMMAND_MAX_S)

    assert process.returncode == 128 + signal.SIGHUP
    codes = Counter(row["check_code"] for row in desk.outcomes())
    assert 0 < codes["RUN_ENDED"] < len(desk.outcomes()) - STOPPED_AT
    assert desk("verify", desk.folder / "payments.precheck").status == 0


@pytest.mark.nightly
def test_a_run_that_is_to_outlive_its_terminal_does(desk, sandbox, using, file):
    before = sandbox.call_count
    with desk.start("run", file, *using("slow"), prefix=("nohup",)) as process:
        sandbox.wait_for_calls(STOPPED_AT, since=before)
        process.send_signal(signal.SIGHUP)
        finished = process.end()

    assert finished.status == 0


def test_a_second_signal_ends_the_run_at_once(desk, sandbox, misbehaving, wait_until, network_payments):
    file = desk.payments(network_payments(5))
    has_arrived = threading.Event()

    async def never_answer(request):
        has_arrived.set()
        await asyncio.Event().wait()

    with misbehaving(never_answer) as url:
        section = sandbox.section("production", "cop", base_url=url, token_url=f"{url}/token")
        config = desk.configuration(silent={"cop": section})
        with desk.start("run", file, "--config", config, "--profile", "silent") as process:
            wait_until(has_arrived.is_set)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)  # what is in flight is awaited
            process.send_signal(signal.SIGINT)
            process.wait(3)
            finished = process.end()

    assert finished.status == 143
    assert len(finished.sentences) == 1
    assert not (desk.folder / "payments.precheck" / "outcomes.csv").exists()


def test_a_signal_before_the_first_request_is_told_in_the_same_way(desk, wait_until, network_payments):
    file = desk.payments(network_payments(10))
    temporary = desk.folder / "tmp"
    temporary.mkdir()
    with desk.start("run", file, TMPDIR=str(temporary)) as process:
        wait_until(lambda: any(temporary.glob("*/precheck.toml")))  # the embedded sandbox is starting
        process.send_signal(signal.SIGTERM)
        finished = process.end()

    assert finished.status == 128 + signal.SIGTERM
    assert len(finished.sentences) == 1
    assert said("errors.stopped_by") in finished.err
    assert not any(temporary.iterdir())


def test_another_input_on_the_same_folder_is_refused(desk, sandbox, network_payments):
    desk("run", desk.payments(network_payments(2)), *sandbox.using("production"))
    before = sandbox.call_count

    finished = desk("run", desk.payments(network_payments(3)), *sandbox.using("production"))

    assert finished.status == 2
    assert re.search(f"{said('stores.of_other_input')}.*--fresh", finished.err)
    assert sandbox.call_count == before


def test_another_profile_on_the_same_folder_is_refused(desk, sandbox, network_payments):
    file = desk.payments(network_payments(2))
    desk("run", file, *sandbox.using("production"))

    finished = desk("run", file, *sandbox.using("sandbox"))

    assert finished.status == 2
    assert (
        said("runs.of_other_profile", profile="production")
        + "; "
        + said("advice.run_with_profile", profile="production")
        in finished.err
    )


def test_a_profile_is_corrected_and_the_same_command_goes_on(desk, sandbox, network_payments):
    file = desk.payments(network_payments(2))
    wrong = [
        {"client_id": "nobody"},
        {"base_url": f"{sandbox.url}/nowhere"},
        {"token_url": f"{sandbox.url}/no"},
    ]

    def run(**changes):
        return desk("run", file, *desk.using(cop=sandbox.section("production", "cop", **changes)))

    refused = []
    for changes in wrong:
        refused.append(run(**changes).status)
        assert {row["check_outcome"] for row in desk.outcomes()} <= {"unanswered", "deferred"}
    corrected = run()

    assert set(refused) <= {76, 77, 78}
    assert corrected.status == 0, corrected.err


@pytest.mark.nightly
def test_a_file_whose_rows_were_all_rejected_is_corrected_and_run_again(desk, sandbox, network_payments):
    rows = network_payments(2)
    desk("run", desk.payments([{**row, "sort_code": "1"} for row in rows]), *sandbox.using("production"))

    finished = desk("run", desk.payments(rows), *sandbox.using("production"))

    assert finished.status == 0, finished.err
    assert {row["check_outcome"] for row in desk.outcomes()} != {"rejected"}


def test_a_file_that_is_refused_before_anything_is_asked_leaves_no_folder(desk, sandbox, network_payments):
    rows = network_payments(5)
    account = rows[0]["account_number"]
    many = desk.payments([{**row, "account_number": account} for row in rows])
    refused = desk("run", many, *sandbox.using("production"))
    left = (desk.folder / "payments.precheck").exists()

    finished = desk("run", desk.payments(rows), *sandbox.using("production"))

    assert (refused.status, left, finished.status) == (65, False, 0)


def test_fresh_forgets_no_answer_for_a_file_that_is_refused(desk, sandbox, network_payments):
    rows = network_payments(5)
    desk("run", desk.payments(rows), *sandbox.using("production"))
    account = rows[0]["account_number"]
    many = desk.payments([{**row, "account_number": account} for row in rows])
    refused = desk("run", many, *sandbox.using("production"), "--fresh")
    before = sandbox.call_count

    again = desk("run", desk.payments(rows), *sandbox.using("production"))

    assert (refused.status, again.status) == (65, 0)
    assert sandbox.call_count == before


def test_a_folder_that_another_run_works_in_is_left_alone(desk, sandbox, using, file):
    before = sandbox.call_count
    with desk.start("run", file, *using("slow")) as process:
        sandbox.wait_for_calls(1, since=before)
        second = desk("run", file, *using("slow"))
        process.kill()
        process.end()

    assert second.status == 75
    assert len(second.sentences) == 1
    assert str(process.pid) in second.err
