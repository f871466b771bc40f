"""purge of many folders by age: what is old and finished goes, on record; all else is told and left."""

import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from forgers import fit_manifest, forging
from refusals import said

from pipeline.desk.folders import FileFolder
from pipeline.desk.retention import forget_old
from schemas.desk import DeskFile

pytestmark = pytest.mark.usefixtures("in_this_process")

UK = {"account_type": "Personal", "sort_code": "00-11-22", "account_number": "00012345", "currency": "GBP"}
MATCH = UK | {"payment_id": "P1", "name": "Avery Thornwood", "amount": "100.00"}
CLOSE = UK | {"payment_id": "P2", "name": "Averi Thornwood", "amount": "25.50"}
LONG_AGO = "2020-01-02T03:04:05.678Z"


@pytest.fixture
def checked(desk, sandbox):
    """`checked(name, rows)`: the folder of a run in runs/, done long ago, or today."""

    def run(name, rows, *words, long_ago=True):
        out = desk.folder / "runs" / f"{name}.precheck"
        desk.ran("run", desk.payments(rows, f"{name}.csv"), *sandbox.using("sandbox"), "--out", out, *words)
        if long_ago:
            age(out)
        return out

    return run


def age(folder):
    """Turn the clock of a ledger back, seals and all."""
    with forging(folder / "ledger.db") as db:
        for table, column in (("run", "created_at"), ("answer", "time"), ("finish", "time")):
            db.execute(f"UPDATE {table} SET {column} = ?", (LONG_AGO,))
    fit_manifest(folder)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}


def purges(folder):
    return json.loads((folder / "manifest.json").read_text())["purges"]


@pytest.mark.nightly
def test_finished_folders_of_a_pattern_are_purged_by_age_and_all_others_told_and_left(desk, checked):
    old, matches = checked("old", [MATCH, CLOSE]), checked("matches", [MATCH])
    young = checked("young", [CLOSE], long_ago=False)
    unfinished = checked("unfinished", [MATCH, CLOSE], "--limit", "1")
    stranger = desk.folder / "runs" / "stranger.precheck"
    stranger.mkdir()
    (stranger / "notes.txt").write_text("mine")
    left = {folder: contents(folder) for folder in (young, unfinished, stranger)}
    words = ("--older-than", "90d", "--payments", "--by", "J. Treasurer", "--reason", "policy 7")

    finished = desk("purge", "runs/*.precheck", *words)

    assert finished.status == 75
    assert {folder: contents(folder) for folder in left} == left
    assert (
        said("cli.purged", folder="runs/old.precheck", what=[said("cli.returned_names", count=1)])
        in finished.err
    )
    assert said("cli.nothing_to_purge", folder="runs/young.precheck", count=90) in finished.err
    assert said("jobs.purge_run_not_finished", folder="runs/unfinished.precheck") in finished.err
    assert said("stores.no_ledger_in_folder", parent="runs/stranger.precheck") in finished.err
    for folder in (old, matches):
        assert set(contents(folder)) == {"ledger.db", "manifest.json", "summary.json"}
        [purge] = purges(folder)
        assert (purge["by"], purge["reason"]) == ("J. Treasurer", "policy 7")
        assert {"outcomes.csv", "report.html", "report.xlsx", "attention.csv"} <= set(purge["files"])
        assert b"Thornwood" not in b"".join(contents(folder).values())
        assert desk("verify", folder).status == 0


MOVED = ("", "-2")


def test_the_retention_of_a_desk_and_a_pattern_forget_runs_that_were_moved_aside_too(desk, checked):
    """Of a desk that keeps files for a day, and of a command with a pattern of folders."""
    of_command = [checked("old", [MATCH, CLOSE])]
    of_desk = FileFolder("1", desk.folder / "desk" / "1")
    shutil.copytree(of_command[0], of_desk.run)
    of_desk.write(
        DeskFile(name="old.csv", sha256="0", byte_count=1, uploaded_by="Mara", uploaded_at=LONG_AGO)
    )
    for number in MOVED:
        for run in (of_command[0], of_desk.run):
            aside = run.with_name(f"{run.name}.2020-01-02T030405{number}")
            shutil.copytree(run, aside)
            (of_command if run == of_command[0] else []).append(aside)

    count = forget_old([of_desk], 1, datetime.now(UTC) + timedelta(days=2), lambda *_: None)
    purged = desk("purge", "runs/*.precheck", "--older-than", "90d", "--payments")

    assert (count, purged.status) == (1, 0), purged.err
    left = [path for path in of_desk.path.iterdir() if path.is_dir()]
    assert len(left) == 1 + len(MOVED)
    for folder in (*of_command, *left):
        assert b"Thornwood" not in b"".join(contents(folder).values()), folder
        assert len(purges(folder)) == 1


def test_a_second_purge_of_the_same_folders_changes_nothing(desk, checked):
    folder = checked("old", [CLOSE])
    words = ("purge", folder, "--older-than", "90d", "--outcomes")
    assert desk(*words).status == 0
    after = contents(folder)

    again = desk(*words)

    assert again.status == 0
    assert said("cli.nothing_to_purge", count=90) in again.err
    assert contents(folder) == after


def test_a_dry_run_says_what_would_go_and_deletes_nothing(desk, checked):
    folder = checked("old", [CLOSE])
    before = contents(folder)

    finished = desk("purge", folder, "--older-than", "90d", "--outcomes", "--dry-run")

    assert finished.status == 0
    assert said("cli.would_be_purged", what=[said("cli.returned_names", count=1)]) in finished.err
    expected = said(
        "cli.would_be_deleted", files="outcomes.csv, attention.csv, reasons.jsonl, report.html, report.xlsx"
    )
    assert expected in finished.err
    assert contents(folder) == before


def test_what_split_and_fix_wrote_goes_with_the_payments(desk, checked):
    folder = checked("old", [MATCH, CLOSE])
    desk("split", folder, "--allow-simulated")
    desk("fix", folder, "--accept", "close_match", "--reason", "judged", "--allow-simulated")

    outcomes = desk("purge", folder, "--older-than", "90d", "--outcomes")
    split_files = {name for name in contents(folder) if name.startswith(("release", "hold"))}
    payments = desk("purge", folder, "--older-than", "90d", "--payments")

    assert (outcomes.status, payments.status) == (0, 0)
    assert split_files == {"release.simulated.csv", "hold.simulated.csv", "hold_reasons.csv"}
    assert set(contents(folder)) == {"ledger.db", "manifest.json", "summary.json", "approvals.json"}
    assert desk("verify", folder).status == 0


def test_a_folder_that_is_named_and_has_no_run_is_a_usage_error_that_stops_no_other(desk, checked):
    folder = checked("old", [CLOSE])
    (desk.folder / "empty").mkdir()

    finished = desk("purge", "empty", "nowhere", folder)
    nothing = desk("purge", "runs/*.nothing", "--older-than", "90d")

    assert finished.status == 2
    assert said("cli.returned_names", count=1) + " purged" in finished.err
    assert nothing.status == 2
    assert said("jobs.no_folder_matches_pattern", word="runs/*.nothing") in nothing.err


def test_a_name_that_is_not_fit_to_be_put_on_record_purges_nothing(desk, checked):
    folder = checked("old", [MATCH, CLOSE])
    before = contents(folder)

    finished = desk("purge", folder, "--older-than", "0d", "--by", "x\ny\x1b[31m")

    assert finished.status == 2
    assert said("runs.omit_these_characters") in finished.err
    assert contents(folder) == before
