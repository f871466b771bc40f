"""A run that waits for another one at the same server says for whom, and no longer than it is told to."""

import re
import signal

import pytest

ROW_COUNT = 32


@pytest.fixture
def slow(serve, tmp_path):
    """A sandbox whose banks take their time."""
    with serve(tmp_path / "slow", "--latency", 4, "--latency-spread", 0) as sandbox:
        yield sandbox


@pytest.fixture
def words(desk, slow, network_payments):
    file = desk.payments(network_payments(ROW_COUNT))
    config = desk.configuration(mine={"cop": slow.section(in_flight_max=32)})
    return ("run", file, "--config", config, "--profile", "mine")


def test_a_run_that_waits_says_for_whom_and_since_when_and_goes_on_afterwards(desk, slow, words):
    with desk.start(*words) as first:
        slow.wait_for_calls(1, since=0)
        second = desk(*words, "--out", "second")
        assert first.end().status == 0

    assert second.status == 0
    waits = [line for line in second.err.splitlines() if "waiting" in line]
    said = r"payments\.csv SIMULATED: waiting for process (\d+), which has been asking (\S+) since .* UTC"
    found = re.fullmatch(said, waits[0])
    assert found is not None, waits
    assert (int(found[1]), f"https://{found[2]}") == (first.pid, slow.url)
    assert len(desk.outcomes("second")) == ROW_COUNT


@pytest.mark.parametrize("wait_max", ["0s", "1s"])
def test_a_run_that_has_waited_long_enough_ends_with_75_and_has_sent_nothing(desk, slow, words, wait_max):
    with desk.start(*words) as first:
        slow.wait_for_calls(1, since=0)
        second = desk(*words, "--out", "second", "--wait-max", wait_max, "--quiet")
        assert not first.has_ended, "there was nobody to wait for"
        first.kill()

    assert second.status == 75
    [sentence] = second.sentences
    assert f": process {first.pid} has been asking this server since " in sentence
    assert "--wait-max" in sentence
    assert not (desk.folder / "second" / "outcomes.csv").exists()
    assert len(slow.questions()) <= ROW_COUNT


def test_a_wait_that_cannot_be_meant_is_2(desk, words):
    refused = desk(*words, "--wait-max", "half an hour")

    assert refused.status == 2
    assert "90s, 30m or 2h" in refused.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["130", "143"])
def test_a_run_that_is_stopped_speaks_in_sentences_and_not_as_a_log_does(desk, slow, words, number):
    with desk.start(*words) as running:
        slow.wait_for_calls(1, since=0)
        running.send_signal(number)
        stopped = running.end()

    assert stopped.status == 128 + number
    stopping, end = stopped.err.splitlines()
    said = (
        r"payments\.csv SIMULATED: stopping; waiting up to 8 s for the answers to \d+ requests? in flight\."
    )
    assert re.fullmatch(said, stopping)
    who = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
    assert end.startswith(f"precheck: payments.csv: stopped by {who}; what was answered is kept: run ")
