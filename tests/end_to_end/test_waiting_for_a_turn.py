"""Runs at one server share its limits; one that there is nothing left for waits, and says for whom."""

import asyncio
import re
import signal

import pytest
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

ROW_COUNT = 32
ONE_AT_A_TIME = {"rate_per_s": 0.5}
"""There is less than one request in a second for each of two runs."""


@pytest.fixture
def words_for(desk, network_payments):
    """The words that have a file of payments asked, all of them at once, at a server with these changes."""

    def words(serving, **changes):
        file = desk.payments(network_payments(ROW_COUNT))
        section = serving.section(**{"in_flight_max": ROW_COUNT, **changes})
        return ("run", file, "--config", desk.configuration(mine={"cop": section}), "--profile", "mine")

    return words


@pytest.fixture
def silent(sandbox, misbehaving, words_for):
    """A server that never answers: the words that have it asked, its address, and what it was asked."""
    asked = []

    async def never_answer(request):
        asked.append(request.path)
        await asyncio.Event().wait()

    with misbehaving(never_answer) as url:
        yield words_for(sandbox, base_url=url, token_url=f"{url}/token", **ONE_AT_A_TIME), url, asked


def test_a_run_that_waits_says_for_whom_and_since_when_and_goes_on_afterwards(desk, silent, wait_until):
    words, url, asked = silent
    with desk.start(*words) as first:
        wait_until(lambda: asked)
        with desk.start(*words, "--out", "second") as second:
            line = second.stderr.readline()
            first.terminate()
            assert "stopping" in first.stderr.readline()
            first.terminate()
            first.wait()
            before = len(asked)
            wait_until(lambda: len(asked) > before)
            second.kill()

    said = r"payments\.csv SIMULATED: waiting for process (\d+), which has been using (\S+) since .* UTC\n"
    found = re.fullmatch(said, line)
    assert found is not None, line
    assert (int(found[1]), f"https://{found[2]}") == (first.pid, url)


@pytest.mark.parametrize("wait_max", ["0s", pytest.param("1s", marks=pytest.mark.nightly)])
def test_a_run_that_has_waited_long_enough_ends_with_75_and_sends_nothing(desk, silent, wait_until, wait_max):
    words, _, asked = silent
    with desk.start(*words) as first:
        wait_until(lambda: asked)
        second = desk(*words, "--out", "second", "--wait-max", wait_max, "--quiet")
        assert not first.has_ended, "there was nobody to wait for"
        first.kill()

    assert second.status == 75
    [sentence] = second.sentences
    assert said("stores.wait_timed_out_since", holder=f"process {first.pid}") in sentence
    assert "--wait-max" in sentence
    codes = {(row["check_outcome"], row["check_code"]) for row in desk.outcomes("second")}
    assert codes == {("deferred", "RUN_ENDED")}
    assert desk("verify", "second").status == 0


def test_two_runs_at_one_server_share_its_rate_and_its_places(desk, serve, tmp_path, network_payments):
    rows = network_payments(80)
    with serve(tmp_path / "server") as server:
        words = desk.using(cop=server.section(rate_per_s=20, in_flight_max=10))
        files = [desk.payments(rows[n::2], name=f"{n}.csv") for n in range(2)]
        runs = [desk.start("run", file, *words, "--wait-max", "0s") for file in files]
        ends = [run.end() for run in runs]
        arrived = sorted(call["time"] for call in server.questions())

    assert [end.status for end in ends] == [0, 0]
    assert not [end for end in ends if "waiting" in end.err]
    left = [sorted(desk.departures(f"{n}.precheck")) for n in range(2)]
    assert max(left[0][0], left[1][0]) < min(left[0][-1], left[1][-1]), "they asked at the same time"
    # By the end of each second since the first one left, so many can have come and no more; a busy machine
    # makes them later, never sooner.
    first = min(left[0][0], left[1][0])
    assert len(arrived) == 80
    assert not [number for number, time in enumerate(arrived) if time < first + number // 20]


def test_a_wait_that_cannot_be_meant_is_2(desk):
    refused = desk("run", "payments.csv", "--wait-max", "half an hour")

    assert refused.status == 2
    assert "90s, 30m or 2h" in refused.err


def test_a_run_that_is_stopped_speaks_in_sentences_and_not_as_a_log_does(desk, serve, tmp_path, words_for):
    slow_banks = ("--latency", 1, "--latency-spread", 0)
    with serve(tmp_path / "slow", *slow_banks) as slow, desk.start(*words_for(slow)) as running:
        slow.wait_for_calls(1, since=0)
        running.send_signal(signal.SIGINT)
        stopped = running.end()

    assert stopped.status == 128 + signal.SIGINT
    stopping, end = stopped.err.splitlines()
    summary = stopped.out.splitlines()
    pattern = (
        r"payments\.csv SIMULATED: stopping; waiting up to 8 s for the answers to \d+ requests? in flight\."
    )
    assert re.fullmatch(pattern, stopping)
    assert said("terminal.outcomes_are_in", where="payments.precheck") in summary
    assert not any(re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T", line) for line in summary), "words of a log"
    assert end.startswith("precheck: payments.csv: " + said("errors.stopped_by", name="Ctrl-C"))
