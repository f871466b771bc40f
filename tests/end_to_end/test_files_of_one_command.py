"""The files of one command share a token, connections and a share; each still ends for itself."""

import signal
from collections import Counter

import pytest

from pipeline.config.profiles import choose
from pipeline.executors.kept_open import KeptOpen

ROW_COUNT = 6


@pytest.fixture
def before(sandbox):
    """How much the sandbox was asked before this test."""
    return sandbox.call_count


@pytest.fixture
def files(desk, network_payments):
    """Four files of distinct payees."""
    rows = network_payments(4 * ROW_COUNT)
    return [
        desk.payments(rows[start : start + ROW_COUNT], f"file{start}.csv")
        for start in range(0, len(rows), ROW_COUNT)
    ]


def test_one_token_one_trial_and_one_set_of_connections_serve_all_files(desk, sandbox, files, before):
    section = sandbox.section(in_flight_max=4)

    run = desk("run", *files, *desk.using(cop=section), "--out", "out")

    assert run.status == 0
    calls = sandbox.calls(before)
    assert Counter(call["api"] for call in calls) == {"token": 1, "cop": 4 * ROW_COUNT}
    assert len({call["connection"] for call in calls}) <= 5, "one for the token"
    for file in files:
        assert all(row["check_id"] for row in desk.outcomes(f"out/{file.stem}"))
        assert desk("verify", f"out/{file.stem}").status == 0


def test_a_cap_that_is_used_up_in_one_file_holds_for_the_next(desk, sandbox, files, before):
    section = sandbox.section(daily_cap=ROW_COUNT + 2)

    run = desk("run", *files, *desk.using(cop=section), "--out", "out")

    assert run.status == 75
    assert len(sandbox.questions(before)) == ROW_COUNT + 2
    assert sum(bool(row["check_id"]) for row in desk.outcomes(f"out/{files[1].stem}")) == 2


def test_files_for_one_api_after_files_for_another(desk, sandbox, files, before):
    iban = {"name": "Lanternside Logistics B.V.", "iban": "NL27RABO0384210070", "amount": "1.00"}
    european = desk.payments([iban], "europe.csv")

    run = desk("run", files[0], european, files[1], *desk.using(**sandbox.both()), "--out", "out")

    assert run.status == 0
    assert len(sandbox.questions(before)) == 2 * ROW_COUNT + 1
    assert desk.outcomes("out/europe")[0]["check_id"]


def test_a_signal_in_the_second_file_leaves_both_with_their_outcomes(
    desk, sandbox, files, before, network_payments
):
    # Long enough for the signal to arrive before the last answer.
    more = network_payments(10 * ROW_COUNT)[4 * ROW_COUNT :]
    files[1] = desk.payments(more, files[1].name)
    words = desk.using(cop=sandbox.section(rate_per_s=4, in_flight_max=2))
    with desk.start("run", *files, *words, "--out", "out") as process:
        sandbox.wait_for_calls(ROW_COUNT + 3, since=before)
        process.send_signal(signal.SIGTERM)
        finished = process.end()

    assert finished.status == 143
    outcomes = [Counter(row["check_code"] for row in desk.outcomes(f"out/{file.stem}")) for file in files[:2]]
    assert outcomes[0]["RUN_ENDED"] == 0
    assert 0 < outcomes[1]["RUN_ENDED"] < len(more)
    assert not (desk.folder / "out" / files[2].stem / "outcomes.csv").exists()
    assert desk("run", *files, *desk.using(cop=sandbox.section()), "--out", "out").status == 0
    assert set(Counter(call["question"] for call in sandbox.questions(before)).values()) == {1}


def test_the_next_file_is_read_while_the_one_before_it_is_asked(desk, sandbox, files, before):
    words = desk.using(cop=sandbox.section(rate_per_s=2, in_flight_max=2))
    with desk.start("run", *files[:2], *words, "--out", "out") as process:
        sandbox.wait_for_calls(ROW_COUNT - 1, since=before)
        files[1].unlink()
        finished = process.end()

    assert finished.status == 0
    assert all(row["check_id"] for row in desk.outcomes(f"out/{files[1].stem}"))


def test_a_file_that_cannot_be_read_is_refused_in_its_turn(desk, sandbox, files, before):
    files[1].write_text("nothing,here\n")

    run = desk("run", *files, *desk.using(cop=sandbox.section()), "--out", "out")

    assert run.status == 65
    assert len(run.sentences) == 1
    assert len(sandbox.questions(before)) == 3 * ROW_COUNT


def test_one_embedded_sandbox_answers_for_all_files():
    chosen = choose(None, None)
    with KeptOpen() as kept:
        assert kept.profile(chosen) is kept.profile(chosen)
