"""Purging: the names go, the answers stay, and nothing else may change."""

import sqlite3

import anyio
import pytest
from ledgers import asked, open_attempts
from refusals import refused

from pipeline.errors import LockedError, OutputError, UsageError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.purge import purge
from pipeline.stores.values import RunIdentity

OLD, NOW, LATER = (f"2031-03-0{day}T09:00:00.000Z" for day in (1, 2, 3))
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")


@pytest.fixture
def ledger(tmp_path):
    """The path of a ledger with a close match of an old and of a new day, and a match."""
    path = tmp_path / "ledger.db"
    answers = [("MBAM", "Quillan Oldname", OLD), ("MBAM", "Quillan Newname", NOW), ("MTCH", None, OLD)]

    async def main():
        async with opened.writing():
            for n, (code, name, time) in enumerate(answers):
                await opened.intend(bytes([n]) * 32, attempt=1, request_id=f"id-{n}", time=time)
                answer = Answer(n, AnswerState.ANSWERED, code, name, f"id-{n}", time, 1)
                await opened.settle(bytes([n]) * 32, answer)

    with SqliteLedger.open(path, IDENTITY, now=OLD) as opened:
        anyio.run(main)
    return path


def answers(path):
    with SqliteLedger.open(path, IDENTITY, now=LATER) as opened:
        return list(opened.answers())


def test_old_names_go_and_newer_ones_stay(ledger):
    before = answers(ledger)

    assert purge(ledger, answers_before=NOW, now=LATER) == 1

    assert b"Oldname" not in ledger.read_bytes()
    assert b"Newname" in ledger.read_bytes()
    assert answers(ledger) == [before[0]._replace(matched_name=None), *before[1:]]


def test_a_purged_question_is_not_open_again(ledger):
    purge(ledger, answers_before=LATER, now=LATER)
    questions = asked(ledger)
    with SqliteLedger.open(ledger, IDENTITY, now=LATER) as opened:
        assert open_attempts(opened, questions) == {}


def test_a_purge_is_on_record_and_can_be_said_again(ledger):
    assert purge(ledger, answers_before=LATER, now=LATER) == 2
    assert purge(ledger, answers_before=LATER, now=LATER) == 0
    db = sqlite3.connect(ledger)
    assert db.execute("SELECT time, answers_before, name_count FROM purge").fetchall() == [
        (LATER, LATER, 2),
        (LATER, LATER, 0),
    ]
    db.close()


def test_other_files_go_only_where_a_name_is_due(ledger, tmp_path):
    outcomes = tmp_path / "outcomes.csv"
    outcomes.touch()
    purge(ledger, answers_before=OLD, now=LATER, first=outcomes.unlink)
    assert outcomes.exists()
    purge(ledger, answers_before=LATER, now=LATER, first=outcomes.unlink)
    assert not outcomes.exists()


def test_other_files_go_also_where_the_names_went_before(ledger, tmp_path):
    outcomes = tmp_path / "outcomes.csv"
    outcomes.touch()
    purge(ledger, answers_before=NOW, now=LATER)
    purge(ledger, answers_before=NOW, now=LATER, first=outcomes.unlink)
    assert not outcomes.exists()


def test_other_files_go_whenever_nothing_is_to_be_kept(tmp_path):
    SqliteLedger.open(tmp_path / "ledger.db", IDENTITY, now=OLD).close()
    outcomes = tmp_path / "outcomes.csv"
    outcomes.touch()
    assert purge(tmp_path / "ledger.db", answers_before=LATER, now=LATER, first=outcomes.unlink) == 0
    assert not outcomes.exists()


@pytest.mark.parametrize(
    "change",
    [
        "matched_name = 'Somebody Else'",
        "matched_name = NULL, code = 'MTCH'",
        "matched_name = NULL, time = NULL",
        "matched_name = NULL, request_id = 'id-9'",
        "matched_name = NULL, state = 'refused'",
        "matched_name = NULL, intent = 99",
    ],
)
def test_the_file_allows_this_change_of_an_answer_and_no_other(ledger, change):
    db = sqlite3.connect(ledger)
    with pytest.raises(sqlite3.IntegrityError, match="an answer never changes"):
        db.execute(f"UPDATE answer SET {change} WHERE matched_name IS NOT NULL")
    db.close()


def test_a_folder_without_a_ledger_is_told_and_left_as_it_is(tmp_path):
    with refused(UsageError, "stores.no_ledger_in_folder"):
        purge(tmp_path / "ledger.db", answers_before=NOW, now=NOW)
    assert list(tmp_path.iterdir()) == []


def test_a_strangers_file_is_not_touched(tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(200))
    with refused(OutputError, "stores.not_a_ledger"):
        purge(path, answers_before=NOW, now=NOW)
    assert path.read_bytes() == b"SQLite format 3\0" + bytes(200)


def test_a_run_that_is_working_keeps_its_ledger(ledger):
    with SqliteLedger.open(ledger, IDENTITY, now=NOW), pytest.raises(LockedError):
        purge(ledger, answers_before=LATER, now=LATER)


def test_a_reason_is_kept(ledger):
    with SqliteLedger.open(ledger, IDENTITY, now=NOW) as opened:
        opened.allow("an umbrella company", time=NOW)
    db = sqlite3.connect(ledger)
    assert db.execute("SELECT time, reason FROM allowance").fetchall() == [(NOW, "an umbrella company")]
    db.close()
