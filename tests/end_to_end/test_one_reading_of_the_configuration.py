"""A command reads the configuration once: an edit in between cannot mix two versions."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import choose, format_choice_of, opened
from pipeline.desk.checks import CHILD
from pipeline.desk.folders import FileFolder
from schemas.desk import DeskFile

ROOT = Path(__file__).resolve().parents[2]
COUNTED = """
import sys

opened = []

def note(event, said):
    if event == "open" and str(said[0]).endswith("mine.toml"):
        opened.append(said[0])

sys.addaudithook(note)
from payee_precheck import main

try:
    main()
finally:
    print(f"opened {len(opened)}", file=sys.stderr)
"""


@pytest.fixture
def opened_count(desk, sandbox):
    """`opened_count(*words)`: how often the command opens its configuration, and what it said."""
    rows = [{"name": "Imogen Farraday", "sort_code": "200415", "account_number": "31926819"}]
    for name in ("payments.csv", "again.csv"):
        desk.payments(rows, name)

    def count(*words, shared=False, also=""):
        config = desk.configuration(mine={"cop": sandbox.section()})
        config.write_text(config.read_text() + also)
        if shared:
            keys = (
                '[profiles.mine]\nledger = "postgresql://precheck@127.0.0.1:1/none"\nledger_key_env = "KEY"\n'
            )
            config.write_text(keys + config.read_text())
        environment = {**desk.environment, "PYTHONPATH": str(ROOT), "PRECHECK_CONFIG": str(config)}
        environment |= {"KEY": "0123456789abcdef" * 4}
        ended = subprocess.run(
            [sys.executable, "-c", COUNTED, *words],
            cwd=desk.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return int(ended.stderr.rpartition("opened ")[2]), ended

    return count


MINE = ("--profile", "mine")


def by_night(*commands):
    """Commands that reach the configuration as others of the day do."""
    return [pytest.param(words, marks=pytest.mark.nightly) for words in commands]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "payments.csv", *MINE),
        ("run", "payments.csv", "again.csv", "--out", "out", *MINE),
        *by_night(("plan", "payments.csv", *MINE), ("doctor", *MINE), ("quota",)),
    ],
    ids=lambda words: words[0],
)
def test_it_is_opened_once(opened_count, words):
    count, ended = opened_count(*words)
    assert ended.returncode == 0, ended.stderr
    assert count == 1


@pytest.mark.parametrize(
    "words",
    [("doctor", *MINE), *by_night(("quota",), ("status", *MINE), ("ledger", "check", *MINE))],
    ids=lambda words: words[0],
)
def test_it_is_opened_once_where_the_profile_has_a_shared_ledger(opened_count, words):
    count, ended = opened_count(*words, shared=True)
    assert "Traceback" not in ended.stderr
    assert count == 1


NOTIFY = "\n[notify]\ncommand = ['true']\n"


def test_a_run_that_notifies_opens_it_once(opened_count):
    count, ended = opened_count("run", "payments.csv", *MINE, "--limit", "0", also=NOTIFY)
    assert (count, ended.returncode) == (1, 75), ended.stderr


def test_a_split_and_new_reports_open_it_once(opened_count):
    opened_count("run", "payments.csv", *MINE)
    for words in (
        ("split", "payments.precheck", "--hold-undecided", "--allow-simulated"),
        ("report", "payments.precheck"),
    ):
        count, ended = opened_count(*words)
        assert (count, ended.returncode) == (1, 0), ended.stderr


@pytest.mark.nightly
def test_a_worker_opens_it_once(opened_count):
    count, ended = opened_count("worker", *MINE, "--work", "work")
    assert (count, ended.returncode) == (1, 78)  # the profile has no shared ledger


@pytest.fixture
def at_the_desk(desk):
    """Return a function that gives a file to the desk, to be checked with `mine`, and returns its folder."""

    def folder_of(file):
        folder = FileFolder("20260101000000aaaaaaaaaa", desk.folder / "20260101000000aaaaaaaaaa")
        (folder.path / "input").mkdir(parents=True)
        (desk.folder / file).rename(folder.path / "input" / file)
        folder.write(
            DeskFile(name=file, sha256="", byte_count=0, uploaded_by="ann", uploaded_at="", profile="mine")
        )
        return str(folder.path)

    return folder_of


def test_a_check_at_the_desk_opens_it_once(opened_count, at_the_desk):
    count, ended = opened_count(CHILD, at_the_desk("payments.csv"))
    assert (count, ended.returncode) == (1, 0), ended.stderr


def test_a_check_at_the_desk_ends_with_the_status_of_the_command(opened_count, desk, at_the_desk):
    desk.file("odd.csv", "one,other\n1,2\n")
    _, command = opened_count("run", "odd.csv", *MINE)
    _, child = opened_count(CHILD, at_the_desk("odd.csv"))
    assert command.returncode == child.returncode == 65


def test_an_edit_between_two_uses_has_no_effect(desk, sandbox):
    section = sandbox.section()
    config = desk.configuration(mine={"cop": section})
    file = ConfigurationFile(config)
    assert dict(format_choice_of(None, file).layouts) == {}
    desk.configuration(mine={"cop": {**section, "client_id": "another", "rate_per_s": 1}})
    chosen = choose("mine", file)
    desk.configuration(other={"cop": section})
    with opened(chosen) as profile:
        [server] = profile.servers
    assert server.client_id == section["client_id"]
    assert chosen.settings.ledger is None
    assert chosen.fingerprint == profile.fingerprint()
