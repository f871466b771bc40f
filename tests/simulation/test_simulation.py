"""The simulated world: one seed is one history, what was found once stays found, and a failure is told."""

import inspect
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from simulation.history import History
from simulation.mistakes import MISTAKES
from simulation.tables import PAGE
from simulation.weather import FAULTS, FAULTS_OF_A_SERVER, LATER_FAULTS, LATEST_FAULTS
from tables import for_each

LATER = frozenset({*LATER_FAULTS, *LATEST_FAULTS})
RUN = str(Path(__file__).with_name("run.py"))
DIGESTS = """
import sys
sys.path.insert(0, sys.argv[1])
from simulation.history import History
print(*(History(seed, 40).play().digest for seed in range(4)))
"""
STOPPED_TOGETHER = 142, 40
"""A seed, and how many questions, with which many tasks are cancelled at once."""


def all_but(*names: str) -> frozenset[str]:
    """Every fault but these."""
    return frozenset({*FAULTS, *LATER, *(f"VoP: {name}" for name in FAULTS_OF_A_SERVER)}) - set(names)


def printed(*arguments: str, hash_seed: str = "0", ends_with: int = 0) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "POLARS_MAX_THREADS": "1"}
    # A known mistake is made while its module is imported, which a fork of the tests' has done already.
    environment["PYTHONPATH"] = os.environ["PRECHECK_TESTS_PYTHONPATH"]
    ended = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == ends_with, ended.stderr
    return ended.stdout


@pytest.mark.nightly
def test_the_same_seed_is_the_same_history_byte_for_byte():
    folder = str(Path(__file__).resolve().parents[1])
    first, second = (printed("-c", DIGESTS, folder, hash_seed=seed) for seed in ("1", "2"))
    assert first == second
    assert len(set(first.split())) == 4


@pytest.mark.nightly
def test_what_was_played_before_changes_nothing():
    """Tasks that are cancelled at once were so by their addresses, and a seed failed in its batch alone."""
    seed, question_count = STOPPED_TOGETHER
    alone = History(seed, question_count).play().digest
    for before in range(seed - 5, seed):
        History(before, question_count).play()
    assert History(seed, question_count).play().digest == alone


@pytest.mark.parametrize(
    ("seed", "found"),
    [
        (7, "a pause began only once the reply that asked for it was recorded"),
        (24, "behind a shut door, a slow server got more requests than one process had places"),
        (1450, "places taken under a share that had lapsed were used under the next one, which had fewer"),
        (6, "a probe of a silent bank that met another failure was never sent again"),
    ],
)
def test_what_a_history_once_found_is_mended(seed, found):
    assert History(seed, left_out=LATER).play().breaches == [], found


@pytest.mark.parametrize(
    ("seed", "faults", "found"),
    [
        (
            393,
            ("crossed answers", "VoP beside CoP"),
            "an API that broke the protocol ended the asking of both",
        ),
        (
            601,
            ("several processes", "store stalls", "VoP beside CoP"),
            "two processes waited for one another: each had an account that the other one had lost",
        ),
    ],
)
def test_what_a_history_of_two_apis_once_found_is_mended(seed, faults, found):
    assert History(seed, left_out=all_but(*faults)).play().breaches == [], found


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("seed", "found"),
    [
        (22321, "two processes held what the other could ask, and an account with nothing to ask it"),
        (35908, "the places of requests that the ledger refused to record were never given back"),
        (27623, "a run that was to stop at once crashed: who was to write for others was cancelled first"),
        (62945, "a question came in another chunk while a request for it was out, and the run crashed"),
    ],
)
def test_what_a_history_of_all_faults_once_found_is_mended(seed, found):
    assert History(seed).play().breaches == [], found


@pytest.mark.parametrize("seed", [14306, 35224, 40979])
def test_a_process_that_stands_still_hears_of_a_pause_once_it_is_awake(seed):
    """Found by the rule, which took a pause to begin with a reply that nobody had read yet."""
    assert History(seed).play().breaches == []


def test_a_bank_that_its_server_cannot_reach_has_no_part_in_lost_time():
    """Found by the rule, which took the wait for its next probe for time that was lost."""
    assert History(28858).play().breaches == []


def test_requests_for_a_bank_that_waits_for_its_probe_take_their_part_of_the_rate():
    """Found by the rule, which expected the whole rate of the questions for the other banks."""
    assert History(939).play().breaches == []


def test_what_others_leave_of_one_api_does_not_wait_for_the_other():
    """Found by a seed: what a stopped process gave back of VoP waited until another one was done with CoP."""
    assert History(61866).play().breaches == []


def test_processes_that_slept_do_not_wait_for_one_another():
    """Found by a seed: one had requests of the account and no places, the other places and no requests."""
    faults = (
        "several processes",
        "store stalls",
        "late starts",
        "rows refused",
        "rows failing",
        "early outage",
    )
    assert History(2009, 20, all_but(*faults)).play().breaches == []


def test_rows_that_always_fail_leave_the_others_their_turn_under_a_daily_cap():
    """Found by a seed: four of them used up the cap of ten on every day, and no other row was ever asked."""
    assert History(68, 40, all_but("rows failing", "daily cap")).play().breaches == []


def test_a_row_that_always_fails_is_asked_after_one_that_once_broke_the_contract():
    """Found by a seed: it took the one request of each day, and the other row was never asked again."""
    faults = ("errors", "broken contract", "rows failing", "daily cap", "clock jumps", "--limit")
    assert History(201413, 30, all_but(*faults, "VoP beside CoP")).play().breaches == []


@pytest.mark.parametrize(("seed", "question_count"), [(20277, 60), (863777, 40)])
def test_other_processes_keep_the_first_minute_of_a_pause_that_ends_a_run(seed, question_count):
    """Found by seeds: only the process that was asked for it left the server alone, also for a daily cap."""
    assert History(seed, question_count).play().breaches == []


def test_a_pause_is_told_though_the_run_ends_before_its_report_arrives():
    """Found by a seed: the report was cut off, and not repeated as the process left the account."""
    assert History(200892, 40).play().breaches == []


def test_a_run_ends_once_its_server_is_to_be_left_alone():
    """Found by a seed: each question waited for its turn at a slowed server first, two minutes and more."""
    faults = ("several processes", "429", "busy server", "store stalls", "--limit", "late starts")
    assert History(4333, left_out=all_but(*faults)).play().breaches == []


@pytest.mark.parametrize(
    ("fault", "met"), [("replies of the store lost", "reply of the store lost"), ("failover",) * 2]
)
def test_a_shared_store_that_forgets_is_met_and_nothing_else_is_lost(fault, met):
    drawn = (History(seed, 40, all_but(fault, "several processes", "slow replies")) for seed in range(60))
    histories = [each for each in drawn if len(each.weather.names) == 3]
    assert [breach for each in histories for breach in each.play().breaches] == []
    assert any(each.provider.met[met, "all"] for each in histories)


def test_some_histories_hold_whatever_goes_wrong_in_them():
    broken = {seed: breaches for seed in range(6) if (breaches := History(seed, 60).play().breaches)}
    assert broken == {}


@pytest.mark.nightly
def test_a_history_that_fails_is_made_small_and_told_with_the_command_that_replays_it():
    asked = ["--seed", "4", "--questions", "20", "--mistake", "no deadline for a reply"]
    first, *story, broken, replay = printed(RUN, *asked, ends_with=1).splitlines()
    assert first == "seed 4, without: bytes that nobody asked for, lost replies, outages, short tokens"
    assert any("asks about row" in line for line in story)
    assert broken.startswith("BROKEN a run does not end: run 1 ")
    assert replay.startswith(f"replay: {sys.executable} ")
    assert replay.endswith("run.py --seed 4 --questions 20 --mistake 'no deadline for a reply'")


def test_each_rule_is_broken_by_a_known_mistake():
    folder = Path(__file__).parent
    written = "".join((folder / name).read_text() for name in ("rules.py", "results.py", "history.py"))
    rules = set(re.findall(r'Breach\(\s*"([a-z ]+)"', written))
    assert len(rules) > 15
    _, _, table = PAGE.read_text().partition("<!-- mistakes -->")
    cells = [line.split("|")[-2] for line in table.splitlines() if line.count("|") == 4]
    broken = {rule.strip() for cell in cells for rule in cell.split(",")}
    assert rules - broken == set()


def test_the_page_says_of_every_known_mistake_that_it_was_found():
    _, _, table = PAGE.read_text().partition("<!-- mistakes -->")
    rows = [line.split(" | ") for line in table.splitlines() if line.count("|") == 4][2:]
    assert [name.removeprefix("| ") for name, *_ in rows] == [*MISTAKES]


@for_each("name", MISTAKES)
def test_the_places_of_a_known_mistake_are_there(name):
    mistake = MISTAKES[name]
    assert mistake.made(inspect.getsource(import_module(mistake.module)), path=mistake.module)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mistake", "seed", "rule"),
    [
        ("a clock that is set back opens a new day", 151, "cap"),
        ("another file in the folder continues with the first file's answers", 0, "another file"),
        ("a deferred row counts as decided", 1, "status"),
        ("a VoP name that does not match counts as a match", 0, "guessed"),
    ],
)
def test_a_known_mistake_breaks_its_rule_in_a_small_history(mistake, seed, rule):
    asked = ["--first", str(seed), "--histories", "1", "--questions", "20", "--workers", "1"]
    last_line = printed(RUN, *asked, "--mistake", mistake, ends_with=1).splitlines()[-1]
    assert rule in json.loads(last_line)["rules"]
