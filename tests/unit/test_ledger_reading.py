"""A ledger that is only read, and the answers in it that an earlier run was given."""

import sqlite3
from contextlib import closing

import anyio
import pytest
from pydantic import SecretStr
from refusals import refused

from pipeline.errors import InputError, LockedError, OutputError, UsageError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite import seals
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.reader import ledger_reader
from pipeline.stores.values import FinalAnswer, LedgerCounts, ReusedAnswer, RunIdentity

NOW, LATER = "2031-03-01T09:00:00.000Z", "2031-03-01T09:00:01.000Z"
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "test", "0.1.0")
REUSED = ReusedAnswer(b"r" * 32, "MTCH", "id-9", "2031-02-01T00:00:00.000Z", "3d" * 32, NOW)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "ledger.db"


@pytest.fixture
def filled(path, check_of):
    """A ledger with an answer after a failure, a request in doubt, and a reused answer."""

    async def main(ledger):
        key = ledger.question_key(check_of())
        async with ledger.writing():
            await ledger.intend(key, attempt=1, request_id="id-1", time=NOW)
            await ledger.fail(key, attempt=1, code="TIMEOUT_ERROR", time=NOW)
            await ledger.intend(key, attempt=2, request_id="id-2", time=NOW)
            await ledger.settle(key, Answer(1, AnswerState.ANSWERED, "ANNM", None, "id-2", LATER, 2))
            await ledger.intend(b"doubt", attempt=1, request_id="id-3", time=NOW)

    with SqliteLedger.open(path, IDENTITY, now=NOW) as ledger:
        anyio.run(main, ledger)
        ledger.reuse([REUSED])
        ledger.finish(LATER, question_count=3, unanswered_count=1, outcome_sha256="0f" * 32)
    return path


def test_a_record_tells_what_the_ledger_holds(filled, check_of):
    with ledger_reader(filled, now=NOW) as record:
        assert record.run == IDENTITY
        assert record.created_at == NOW
        assert record.counts == LedgerCounts(attempt_count=3, answer_count=1, reused_count=1)
        assert record.last_finish.outcome_sha256 == "0f" * 32
        answered, reused = record.answers()
        assert answered.question == record.question_key(check_of())
        assert reused == FinalAnswer(b"r" * 32, AnswerState.REUSED, "MTCH", None, "id-9", REUSED.time, 0)


def test_every_attempt_has_its_end(filled, check_of):
    with ledger_reader(filled, now=NOW) as record:
        assert [tuple(attempt) for attempt in record.attempts(check_of())] == [
            (1, "id-1", NOW, "failed", "TIMEOUT_ERROR", NOW, None, False),
            (2, "id-2", NOW, "answered", "ANNM", LATER, None, False),
        ]
        assert record.attempts(check_of(name="Somebody Else")) == []


def test_an_attempt_without_an_end_is_in_doubt(path, check_of):
    async def main(ledger):
        async with ledger.writing():
            await ledger.intend(ledger.question_key(check_of()), attempt=1, request_id="id-1", time=NOW)

    with SqliteLedger.open(path, IDENTITY, now=NOW) as ledger:
        anyio.run(main, ledger)
    with ledger_reader(path, now=NOW) as record:
        assert [tuple(attempt) for attempt in record.attempts(check_of())] == [
            (1, "id-1", NOW, "in doubt", None, None, None, False)
        ]


def test_reading_changes_nothing_in_the_folder(filled):
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in filled.parent.iterdir()}
    with ledger_reader(filled, now=NOW):
        pass
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in filled.parent.iterdir()} == before


def test_two_may_read_and_no_run_may_work_meanwhile(filled):
    with ledger_reader(filled, now=NOW), ledger_reader(filled, now=NOW), pytest.raises(LockedError):
        SqliteLedger.open(filled, IDENTITY, now=NOW)
    with SqliteLedger.open(filled, IDENTITY, now=NOW), refused(LockedError, "files.folder_in_use"):
        ledger_reader(filled, now=NOW).__enter__()


def test_who_writes_beside_the_ledger_is_alone_and_says_so_in_the_lock(filled):
    with ledger_reader(filled, now=NOW, alone=True) as record:
        assert record.counts.answer_count == 1
        for alone in (True, False):
            with refused(LockedError, "files.folder_in_use"):
                ledger_reader(filled, now=NOW, alone=alone).__enter__()
    with ledger_reader(filled, now=NOW), pytest.raises(LockedError):
        ledger_reader(filled, now=NOW, alone=True).__enter__()


def test_a_copy_without_the_lock_file_is_read(filled):
    (filled.parent / ".lock").unlink()
    with ledger_reader(filled, now=NOW) as record:
        assert record.counts.answer_count == 1


def test_what_a_kill_left_in_the_log_is_read_too(filled):
    with closing(sqlite3.connect(filled, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        seals.register_seal(db, *db.execute("SELECT run_key FROM run").fetchone())
        db.execute(seals.insertion("purge"), ("x", "y", 0))
        copies = [(file, file.read_bytes()) for file in filled.parent.glob("ledger.db*")]
    for file, content in copies:
        file.write_bytes(content)
    log = filled.with_name("ledger.db-wal")
    assert log.stat().st_size

    with ledger_reader(filled, now=NOW) as record:
        assert record.counts.answer_count == 1

    assert not log.exists() or not log.stat().st_size


def test_a_folder_without_a_ledger_is_a_usage_error_and_none_is_made(path):
    with refused(UsageError, "files.no_such_folder"):
        ledger_reader(path, now=NOW).__enter__()
    assert not path.parent.exists()
    path.parent.mkdir()
    with refused(UsageError, "stores.no_ledger_in_folder"):
        ledger_reader(path, now=NOW).__enter__()
    assert not list(path.parent.iterdir())


def test_a_strangers_file_and_a_changed_line_are_refused(filled):
    filled.write_bytes(filled.read_bytes().replace(b"ANNM", b"MTCH"))
    with refused(InputError, "stores.ledger_altered", "stores.found_lines_changed", table="answer", count=1):
        ledger_reader(filled, now=NOW).__enter__()
    filled.write_bytes(b"not a ledger")
    with refused(OutputError, "stores.not_a_ledger"):
        ledger_reader(filled, now=NOW).__enter__()


def test_a_reused_answer_that_was_changed_is_noticed(filled):
    filled.write_bytes(filled.read_bytes().replace(b"2031-02-01", b"2031-02-28"))
    with refused(InputError, "stores.ledger_altered", "stores.found_lines_changed", table="reuse", count=1):
        ledger_reader(filled, now=NOW).__enter__()


@pytest.mark.parametrize("statement", ["DELETE FROM reuse", "UPDATE reuse SET code = 'MTCH'"])
def test_a_reused_answer_never_changes_and_never_leaves(filled, statement):
    with (
        closing(sqlite3.connect(filled)) as db,
        pytest.raises(sqlite3.IntegrityError, match="an answer never"),
    ):
        db.execute(statement)


def test_a_reused_answer_is_final_when_the_run_is_taken_up_again(filled):
    with SqliteLedger.open(filled, IDENTITY, now=NOW) as ledger:
        assert [final.state for final in ledger.answers()] == [AnswerState.ANSWERED, AnswerState.REUSED]
        with pytest.raises(AssertionError, match="answers are missing"):
            ledger.finish(LATER, question_count=3, unanswered_count=0, outcome_sha256="")
        ledger.finish(LATER, question_count=2, unanswered_count=0, outcome_sha256="")


def test_whoever_only_reads_needs_no_key_and_is_told_no_name(path, check_of):
    async def main(ledger):
        key = ledger.question_key(check_of())
        async with ledger.writing():
            await ledger.intend(key, attempt=1, request_id="id-1", time=NOW)
            await ledger.settle(
                key, Answer(1, AnswerState.ANSWERED, "MBAM", "Adah Quillon", "id-1", LATER, 1)
            )

    with SqliteLedger.open(path, IDENTITY, now=NOW, secret=SecretStr("canary")) as ledger:
        anyio.run(main, ledger)
    with ledger_reader(path, now=NOW) as record:
        [answer] = record.answers()
        assert (answer.code, answer.matched_name) == ("MBAM", None)
        assert [attempt.ended for attempt in record.attempts(check_of())] == ["answered"]
