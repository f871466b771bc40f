"""What has the name of a file of ours in a run's folder, and is none of its own: refused first of all."""

import os

import pytest
from refusals import refused

from pipeline.errors import OutputError
from pipeline.files.folder_lock import locked
from pipeline.runs.starting import refuse_foreign_files
from schemas.outcomes import Environment

NAMES = (
    *(".lock", "ledger.db", "ledger.db-wal", "ledger.db.new", "approvals.json", "approvals.json.part"),
    *("outcomes.csv", "outcomes.csv.part", "outcomes.parquet", "summary.json", "manifest.json", "payees.csv"),
    *("changes.jsonl", "report.html", "report.xlsx", "attention.csv", "corrected.csv", "hold_reasons.csv"),
)
NOW = "2030-01-02T03:04:05.678Z"


def link(path, precious):
    path.symlink_to(precious)


def hard_link(path, precious):
    path.hardlink_to(precious)


def pipe(path, precious):
    os.mkfifo(path)


def folder(path, precious):
    path.mkdir()


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("make", [link, hard_link, pipe, folder])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_file_of_its_own_is_refused_and_left_alone(tmp_path, name, make, fresh):
    precious = tmp_path / "precious"
    precious.write_text("[]")
    run = tmp_path / "run"
    run.mkdir()
    make(run / name, precious)
    before = (run / name).lstat()

    with refused(OutputError, "files.name_taken_by", "files.remove_it", "advice.other_folder", path=name):
        refuse_foreign_files(run, Environment.SANDBOX, now=NOW, fresh=fresh)

    assert precious.read_text() == "[]"
    assert [path.name for path in run.iterdir()] == [name]
    assert (run / name).lstat()[:7] == before[:7]


@pytest.mark.parametrize("said", ["precious", "{}", "[1]", '{"pid": 1}', "null", "0" * 5000])
def test_a_lock_that_says_something_else_is_nobodys_of_ours(tmp_path, said):
    path = tmp_path / ".lock"
    path.write_text(said)
    with refused(OutputError, "files.not_a_lock_file"):
        refuse_foreign_files(tmp_path, Environment.SANDBOX, now=NOW, fresh=False)
    with refused(OutputError, "files.not_a_lock_file"), locked(tmp_path, NOW):
        pass
    assert path.read_text() == said


@pytest.mark.parametrize("said", ["", "\0" * 80])
def test_a_lock_that_a_power_loss_left_is_ours(tmp_path, said):
    (tmp_path / ".lock").write_text(said)
    with locked(tmp_path, NOW):
        refuse_foreign_files(tmp_path, Environment.SANDBOX, now=NOW, fresh=False)
        left = (tmp_path / ".lock").read_text()
    (tmp_path / ".lock").write_text(left)  # as a run that was killed leaves it
    with locked(tmp_path, NOW):
        pass
    assert (tmp_path / ".lock").read_text() == ""


@pytest.mark.parametrize("said", ["", "[{}]", "\xff", "{}"])
def test_decisions_that_cannot_be_read_are_refused_before_anything_is_asked(tmp_path, said):
    path = tmp_path / "approvals.json"
    path.write_text(said, "latin-1")
    with refused(OutputError, "runs.decisions_unreadable", "runs.restore_from_copy", path="approvals.json"):
        refuse_foreign_files(tmp_path, Environment.SANDBOX, now=NOW, fresh=False)
    assert path.read_text("latin-1") == said


def test_a_folder_without_anything_is_ours(tmp_path):
    refuse_foreign_files(tmp_path, Environment.SANDBOX, now=NOW, fresh=False)
    refuse_foreign_files(tmp_path / "not there yet", Environment.SANDBOX, now=NOW, fresh=False)
