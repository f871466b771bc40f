"""The ledger: what it promised is on disk, what is not its own it refuses, and it holds no names."""

import json
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from ledgers import asked, open_attempts
from refusals import refused

from pipeline.errors import DiskError, InputError, LockedError, OutputError, PrecheckError, UsageError
from pipeline.frames import Answer, AnswerState, Check
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import FinalAnswer, FinishRecord, FruitlessQuestion, ReusedAnswer, RunIdentity
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

NOW = "2031-03-01T09:00:00.000Z"
LATER = "2031-03-01T09:00:01.000Z"
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")
NAME = "Quillon Feathermoor"
ACCOUNT = "99999912345678"


def a_check(number: int = 1, **changes: str | None) -> Check:
    check = Check(number, ApiName.COP, ACCOUNT, NAME, "Personal", *[None] * 8)
    return check._replace(**changes)


def an_answer(attempts: int = 1, **changes: object) -> Answer:
    answer = Answer(1, AnswerState.ANSWERED, "MBAM", "Quillan Feathermoor", "id-1", LATER, attempts)
    return answer._replace(**changes)


def opened(folder: Path, identity: RunIdentity = IDENTITY, *, fresh: bool = False) -> SqliteLedger:
    return SqliteLedger.open(folder / "ledger.db", identity, now=NOW, fresh=fresh)


async def ask(ledger: SqliteLedger, question: bytes, answer: Answer) -> None:
    await ledger.intend(question, attempt=answer.attempts, request_id="id-1", time=NOW)
    await ledger.settle(question, answer)


async def intend_only(ledger: SqliteLedger, question: bytes) -> None:
    async with ledger.writing():
        await ledger.intend(question, attempt=1, request_id="id-2", time=NOW)


def ask_all(ledger: SqliteLedger, answers: dict[bytes, Answer]) -> None:
    async def main() -> None:
        async with ledger.writing(), anyio.create_task_group() as tasks:
            for question, answer in answers.items():
                tasks.start_soon(ask, ledger, question, answer)

    anyio.run(main)


# --- one run, taken up again ---


def test_a_settled_answer_comes_back_whole_after_reopening(tmp_path):
    answer = an_answer()
    with opened(tmp_path) as ledger:
        question = ledger.question_key(a_check())
        ask_all(ledger, {question: answer})
    with opened(tmp_path) as ledger:
        assert list(ledger.answers()) == [FinalAnswer(question, *answer[1:])]
        assert open_attempts(ledger, [question]) == {}


def test_a_refusal_is_a_final_answer_too(tmp_path):
    refusal = an_answer(state=AnswerState.REFUSED, code="FORMAT_ERROR", matched_name=None)
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q" * 32: refusal})
        [final] = ledger.answers()
    assert final == FinalAnswer(b"q" * 32, *refusal[1:])


def test_a_request_without_an_ending_stays_open_and_counts_as_sent(tmp_path):
    async def main(ledger: SqliteLedger) -> None:
        async with ledger.writing():
            await ledger.intend(b"doubt", attempt=1, request_id="id-1", time=NOW)
            await ledger.intend(b"failed", attempt=1, request_id="id-2", time=NOW)
            await ledger.fail(b"failed", attempt=1, code="TIMEOUT_ERROR", time=LATER)
            await ledger.intend(b"failed", attempt=2, request_id="id-3", time=LATER)

    with opened(tmp_path) as ledger:
        anyio.run(main, ledger)
    with opened(tmp_path) as ledger:
        assert open_attempts(ledger, [b"doubt", b"failed"]) == {b"doubt": 1, b"failed": 2}
        assert list(ledger.answers()) == []


def test_an_open_question_is_settled_in_a_later_run_with_its_attempts_counted_on(tmp_path):
    with opened(tmp_path) as ledger:

        async def main() -> None:
            async with ledger.writing():
                await ledger.intend(b"q", attempt=1, request_id="id-1", time=NOW)

        anyio.run(main)
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer(attempts=2)})
        assert [final.attempts for final in ledger.answers()] == [2]


def test_a_new_version_of_the_tool_takes_up_the_run_of_an_older_one(tmp_path):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer()})
    with opened(tmp_path, IDENTITY._replace(tool_version="0.2.0")) as ledger:
        assert len(list(ledger.answers())) == 1


@pytest.mark.parametrize(
    ("field", "other"),
    [("input_sha256", "input"), ("profile_sha256", "profile"), ("environment", "environment")],
)
def test_the_run_of_another_input_profile_or_environment_is_refused_by_name(tmp_path, field, other):
    with opened(tmp_path) as ledger:
        anyio.run(intend_only, ledger, b"q")
    with refused(UsageError, f"stores.of_other_{other}", "advice.other_folder", "advice.start_over"):
        opened(tmp_path, IDENTITY._replace(**{field: "different"}))


def test_the_folder_of_an_import_that_has_begun_takes_no_other_run(tmp_path):
    with opened(tmp_path, IDENTITY._replace(environment="bank")) as ledger:
        ledger.speak("en", time=NOW)
    with refused(UsageError, "stores.of_other_environment", "advice.other_folder", "advice.start_over"):
        opened(tmp_path)


@pytest.mark.parametrize("field", ["input_sha256", "profile_sha256", "environment"])
def test_a_folder_without_any_answer_takes_another_run(tmp_path, field):
    async def fail(ledger):
        async with ledger.writing():
            await ledger.intend(b"q", attempt=1, request_id="id-1", time=NOW)
            await ledger.fail(b"q", attempt=1, code="HTTP_404", time=LATER)

    with opened(tmp_path) as ledger:
        anyio.run(fail, ledger)
        ledger.allow("said by the first run", time=NOW)
        ledger.finish(NOW, question_count=0, unanswered_count=0, outcome_sha256="0f" * 32)
    with opened(tmp_path, IDENTITY._replace(**{field: "different"})) as ledger:
        assert getattr(ledger.run, field) == "different"
        assert ledger.last_finish is None
        assert open_attempts(ledger, [b"q"]) == {}
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        assert db.execute("SELECT count(*) FROM allowance").fetchone() == (0,)


def test_a_folder_whose_answers_were_used_again_belongs_to_its_run(tmp_path):
    with opened(tmp_path) as ledger:
        ledger.reuse([ReusedAnswer(b"q", "MTCH", "id-1", NOW, "3d" * 32, LATER)])
    with refused(UsageError, "stores.of_other_input"):
        opened(tmp_path, IDENTITY._replace(input_sha256="different"))


def test_the_same_run_keeps_its_record_where_nothing_had_to_be_asked(tmp_path):
    with opened(tmp_path) as ledger:
        finish = ledger.finish(NOW, question_count=0, unanswered_count=0, outcome_sha256="0f" * 32)
    with opened(tmp_path) as ledger:
        assert ledger.last_finish == finish


def test_a_refused_folder_can_be_worked_in_afterwards(tmp_path):
    with opened(tmp_path) as ledger:
        anyio.run(intend_only, ledger, b"q")
    with pytest.raises(UsageError):
        opened(tmp_path, IDENTITY._replace(environment="production"))
    opened(tmp_path).close()


def test_fresh_forgets_the_run_and_its_identity(tmp_path):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer()})
    with opened(tmp_path, IDENTITY._replace(environment="production"), fresh=True) as ledger:
        assert list(ledger.answers()) == []


def test_a_log_left_without_its_ledger_does_not_leak_into_the_next_run(tmp_path):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer()})
        shutil.copy(tmp_path / "ledger.db-wal", tmp_path / "kept")
    (tmp_path / "ledger.db").unlink()
    (tmp_path / "kept").rename(tmp_path / "ledger.db-wal")
    with opened(tmp_path) as ledger:
        assert list(ledger.answers()) == []


# --- the key of a question ---


def test_the_number_of_a_check_is_no_part_of_its_question(tmp_path):
    with opened(tmp_path) as ledger:
        assert ledger.question_key(a_check(1)) == ledger.question_key(a_check(2))


def test_every_other_field_of_a_check_is_part_of_its_question(tmp_path):
    with opened(tmp_path) as ledger:
        keys = {ledger.question_key(a_check())}
        keys |= {ledger.question_key(a_check(**{field: "other"})) for field in Check._fields[1:]}
    assert len(keys) == len(Check._fields)


def test_fields_that_read_the_same_when_joined_are_different_questions(tmp_path):
    with opened(tmp_path) as ledger:
        moved = [a_check(lei='A","B', organisation_bic=None), a_check(lei="A", organisation_bic="B")]
        absent = [a_check(remittance=None), a_check(remittance=""), a_check(remittance="null")]
        assert len({ledger.question_key(check) for check in moved + absent}) == 5


def test_a_question_keeps_its_key_in_its_run_and_has_another_in_another_run(tmp_path):
    with opened(tmp_path / "one") as ledger:
        key = ledger.question_key(a_check())
    with opened(tmp_path / "one") as ledger:
        assert ledger.question_key(a_check()) == key
    with opened(tmp_path / "two") as ledger:
        assert ledger.question_key(a_check()) != key


# --- what must never be written ---


def test_settling_twice_is_refused_even_with_the_same_answer(tmp_path):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer()})

        async def again() -> None:
            async with ledger.writing():
                await ledger.settle(b"q", an_answer(code="ANNM"))

        with pytest.raises(AssertionError, match="settled"):
            anyio.run(again)
        assert [final.code for final in ledger.answers()] == ["MBAM"]


@pytest.mark.parametrize("state", [AnswerState.UNANSWERED, AnswerState.DEFERRED])
def test_what_is_not_final_cannot_be_settled(tmp_path, state):
    with opened(tmp_path) as ledger, pytest.raises(BaseExceptionGroup) as raised:
        ask_all(ledger, {b"q": an_answer(state=state)})
    assert raised.group_contains(AssertionError, match="not a final answer")


def test_an_attempt_that_does_not_follow_the_last_one_is_refused(tmp_path):
    with opened(tmp_path) as ledger, pytest.raises(BaseExceptionGroup) as raised:
        ask_all(ledger, {b"q": an_answer(attempts=2)})
    assert raised.group_contains(AssertionError, match="skipped")


def test_nothing_is_written_outside_of_writing(tmp_path):
    with opened(tmp_path) as ledger, pytest.raises(AssertionError, match="outside"):
        anyio.run(ask, ledger, b"q", an_answer())


@pytest.mark.parametrize("statement", ["UPDATE answer SET code = 'MTCH'", "DELETE FROM answer"])
def test_the_file_itself_refuses_to_change_or_lose_an_answer(tmp_path, statement):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer()})
    db = sqlite3.connect(tmp_path / "ledger.db")
    with pytest.raises(sqlite3.IntegrityError, match="an answer never"):
        db.execute(statement)
    db.close()


def changed(table, count=1):
    return Sentence("stores.found_lines_changed", table=table, count=count)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("INSERT INTO intent VALUES(9, x'00', 2, 'id-9', '2030', 0, x'00')", changed("intent")),
        ("UPDATE intent SET question = x'00' WHERE id = 2", changed("intent")),
        ("UPDATE finish SET unanswered_count = 0", changed("finish")),
        ("DELETE FROM intent WHERE id = 1", "stores.found_lines_missing"),
        ("UPDATE run SET run_key = randomblob(32)", changed("intent", 2)),
        ("UPDATE run SET created_at = '2013-03-01T09:00:00.000Z'", changed("run")),
        ("UPDATE run SET created_at = CAST(x'32303331ff' AS TEXT)", "stores.ledger_damaged"),
        ("UPDATE run SET input_sha256 = profile_sha256", changed("run")),
        ("UPDATE allowance SET reason = 'another'", changed("allowance")),
        ("INSERT INTO purge VALUES(1, '2030', '2031', 0, 0, x'00')", changed("purge")),
    ],
)
def test_a_line_changed_by_another_hand_makes_the_ledger_untrusted(tmp_path, statement, why):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer()})
        anyio.run(intend_only, ledger, b"r")
        ledger.allow("an umbrella company", time=NOW)
        ledger.finish(NOW, question_count=2, unanswered_count=1, outcome_sha256="0" * 64)
    db = sqlite3.connect(tmp_path / "ledger.db")
    db.execute(statement)
    db.commit()
    db.close()
    with refused(PrecheckError, why):
        opened(tmp_path)


@pytest.mark.parametrize("column", [b"name_proof", b"created_at", b"tool_version", b"name_count", b"reason"])
def test_a_column_whose_name_was_damaged_is_refused_with_a_sentence(tmp_path, column):
    with opened(tmp_path):
        pass
    path = tmp_path / "ledger.db"
    data = path.read_bytes()
    assert column in data
    path.write_bytes(data.replace(column, b"x" + column[1:]))
    with refused(InputError, "stores.ledger_altered", "stores.found_other_tables"):
        opened(tmp_path)


def test_no_name_and_no_account_of_the_payer_is_on_disk(tmp_path):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {ledger.question_key(a_check()): an_answer(matched_name=None)})
        on_disk = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert NAME.encode() not in on_disk
    assert ACCOUNT.encode() not in on_disk


# --- the folder and its files ---


def test_folder_and_files_are_private(tmp_path):
    folder = tmp_path / "payroll.precheck"
    with opened(folder) as ledger:
        ask_all(ledger, {b"q": an_answer()})
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {".lock": 0o600, "ledger.db": 0o600, "ledger.db-wal": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_closed_ledger_is_one_file_without_a_log(tmp_path):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer()})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "ledger.db"]
    ledger.close()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"payment_id,name\n1,x\n" * 50])
def test_a_file_that_is_not_a_ledger_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with refused(OutputError, "stores.not_a_ledger"):
        opened(tmp_path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused_and_left_as_it_is(tmp_path):
    db = sqlite3.connect(tmp_path / "ledger.db")
    db.execute("CREATE TABLE theirs(a)")
    db.close()
    before = (tmp_path / "ledger.db").read_bytes()
    with refused(OutputError, "stores.not_a_ledger"):
        opened(tmp_path)
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_a_ledger_of_another_format_is_refused(tmp_path):
    opened(tmp_path).close()
    db = sqlite3.connect(tmp_path / "ledger.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with refused(OutputError, "stores.ledger_of_other_version"):
        opened(tmp_path)


def test_a_link_in_the_ledgers_place_is_refused(tmp_path):
    opened(tmp_path / "real").close()
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "ledger.db").symlink_to(tmp_path / "real" / "ledger.db")
    with refused(OutputError, "files.name_taken_by", "files.symbolic_link"):
        opened(tmp_path / "trap")


def a_ledger_of_many_answers(folder: Path) -> Path:
    with opened(folder) as ledger:
        ask_all(ledger, {number.to_bytes(32): an_answer() for number in range(400)})
    return folder / "ledger.db"


def test_a_truncated_ledger_is_refused_never_recreated(tmp_path):
    path = a_ledger_of_many_answers(tmp_path)
    os.truncate(path, path.stat().st_size // 2)
    with refused(DiskError, "stores.ledger_damaged", "stores.restore_from_copy", "advice.ask_again"):
        opened(tmp_path)


def test_an_overwritten_page_is_found_at_opening(tmp_path):
    path = a_ledger_of_many_answers(tmp_path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    with refused(DiskError, "stores.ledger_damaged"):
        opened(tmp_path)


def test_a_ledger_that_another_program_has_open_is_left_to_it(tmp_path):
    opened(tmp_path).close()
    other = sqlite3.connect(tmp_path / "ledger.db")
    other.execute("SELECT count(*) FROM run").fetchall()
    other.execute("BEGIN IMMEDIATE")
    with refused(LockedError, "stores.ledger_in_use"):
        opened(tmp_path)
    other.close()


def test_a_folder_that_cannot_be_made_is_an_output_error(tmp_path):
    (tmp_path / "file").touch()
    with refused(OutputError, "files.not_writable", "system.enotdir", "advice.make_writable"):
        opened(tmp_path / "file" / "folder")


# --- finishing ---


def test_a_run_is_finished_only_when_every_question_has_its_answer(tmp_path):
    with opened(tmp_path) as ledger:
        assert ledger.finished_at is None
        ask_all(ledger, {b"q": an_answer()})
        ledger.finish(NOW, question_count=2, unanswered_count=1, outcome_sha256="aa")
        assert ledger.finished_at is None
        assert ledger.last_finish == FinishRecord(NOW, 2, 1, "aa")
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"p": an_answer()})
        ledger.finish(LATER, question_count=2, unanswered_count=0, outcome_sha256="bb")
    with opened(tmp_path) as ledger:
        assert ledger.finished_at == LATER
        assert ledger.last_finish == FinishRecord(LATER, 2, 0, "bb")


def test_a_run_cannot_be_called_finished_with_answers_missing(tmp_path):
    with opened(tmp_path) as ledger:
        ask_all(ledger, {b"q": an_answer()})
        with pytest.raises(AssertionError, match="missing"):
            ledger.finish(NOW, question_count=2, unanswered_count=0, outcome_sha256="aa")


# --- many tasks, cancellation, a full disk ---


def test_more_tasks_than_a_batch_holds_are_all_recorded(tmp_path):
    answers = {number.to_bytes(32): an_answer(request_id=f"id-{number}") for number in range(1500)}
    with opened(tmp_path) as ledger:
        ask_all(ledger, answers)
        recorded = {final.question: final.request_id for final in ledger.answers()}
    assert recorded == {question: answer.request_id for question, answer in answers.items()}


def test_a_mistake_in_one_write_stops_every_write(tmp_path):
    async def main(ledger: SqliteLedger) -> None:
        async with ledger.writing():
            await ledger.intend(b"q", attempt=1, request_id="id-1", time=NOW)
            with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
                await ledger.fail(b"q", attempt=1, code=None, time=NOW)
            with refused(DiskError, "stores.earlier_write_failed"):
                await ledger.intend(b"p", attempt=1, request_id="id-2", time=NOW)

    with opened(tmp_path) as ledger:
        anyio.run(main, ledger)
    with opened(tmp_path) as ledger:
        assert open_attempts(ledger, [b"q", b"p"]) == {b"q": 1}


def test_leaving_by_cancellation_keeps_what_was_being_written(tmp_path):
    async def main(ledger: SqliteLedger) -> None:
        async with ledger.writing():
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    for number in range(100):
                        tasks.start_soon(ask, ledger, number.to_bytes(32), an_answer())
                    await anyio.lowlevel.checkpoint()
                    scope.cancel()

    with opened(tmp_path) as ledger:
        anyio.run(main, ledger)
    with opened(tmp_path) as ledger:
        everything = {number.to_bytes(32) for number in range(100)}
        assert set(anyio.run(ledger.known, list(everything))) == everything


CHILD_ON_A_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
import anyio
from pipeline.errors import DiskError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity

resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
ledger = SqliteLedger.open(Path(sys.argv[1]), RunIdentity(*sys.argv[2:]), now="now")
messages = []
count = iter(range(1_000_000))

async def work():
    try:
        for number in count:
            question = number.to_bytes(32)
            await ledger.intend(question, attempt=1, request_id="id", time="now")
            await ledger.settle(question, Answer(1, AnswerState.ANSWERED, "MTCH", None, "id", "now", 1))
            print(question.hex())
    except DiskError as error:
        messages.append(str(error))

async def main():
    async with ledger.writing(), anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(work)

anyio.run(main)
assert len(messages) == 20, messages
assert all("ledger.db: cannot be written" in message for message in messages), messages
ledger.close()
"""


def child(script: str, folder: Path) -> list[str]:
    return [sys.executable, "-c", script, str(folder / "ledger.db"), *IDENTITY]


def test_a_full_disk_tells_every_waiter_and_loses_nothing_that_was_acknowledged(tmp_path):
    run = subprocess.run(
        child(CHILD_ON_A_FULL_DISK, tmp_path), capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    acknowledged = {bytes.fromhex(line) for line in run.stdout.split()}
    assert len(acknowledged) > 100
    with opened(tmp_path) as ledger:
        assert acknowledged <= {final.question for final in ledger.answers()}
        ask_all(ledger, {b"after": an_answer()})


# --- other processes, and kills ---

CHILD_THAT_ASKS = """
import os, sys
from pathlib import Path
import anyio
from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity

def say(word, question):
    os.write(1, f"{word} {question.hex()}\\n".encode())

async def work():
    for question in questions:
        attempt = attempts.get(question, 0) + 1
        await ledger.intend(question, attempt=attempt, request_id="id", time="now")
        say("sent", question)
        await ledger.settle(question, Answer(1, AnswerState.ANSWERED, "MTCH", None, "id", "now", attempt))
        say("answered", question)

async def main():
    async with ledger.writing(), anyio.create_task_group() as tasks:
        for _ in range(16):
            tasks.start_soon(work)

identity = RunIdentity(*sys.argv[2:])
with SqliteLedger.open(Path(sys.argv[1]), identity, now="2031-03-01T08:00:00.000Z") as ledger:
    everything = [n.to_bytes(32) for n in range(20_000)]
    known = anyio.run(ledger.known, everything)
    attempts = {q: history.attempts for q, history in known.items()}
    questions = (q for q in everything if q not in known or known[q].answer is None)
    os.write(1, b"ready\\n")
    anyio.run(main)
"""


def test_an_answered_check_is_never_sent_again_whatever_kills_the_run(tmp_path):
    chance = random.Random(20310301)
    sent: list[str] = []
    answered: set[str] = set()
    for kill_count in range(5):
        lines_max = chance.choice([0, 1, chance.randrange(2, 40), chance.randrange(40, 1500)])
        with subprocess.Popen(child(CHILD_THAT_ASKS, tmp_path), stdout=subprocess.PIPE, text=True) as run:
            lines = [run.stdout.readline() for _ in range(lines_max)]
            run.kill()
            lines += run.stdout.readlines()
        sent_now = [line.split()[1] for line in lines if line.startswith("sent")]
        assert answered.isdisjoint(sent_now), "an answered check was sent again"
        sent += sent_now
        answered |= {line.split()[1] for line in lines if line.startswith("answered")}
        with opened(tmp_path) as ledger:
            recorded = {final.question.hex() for final in ledger.answers()}
        intended = {question.hex() for question in asked(tmp_path / "ledger.db")}
        assert answered <= recorded, "an acknowledged answer was lost"
        assert set(sent) <= intended, "a request left before its intent was on disk"
        assert len(sent) - len(set(sent)) <= 16 * (kill_count + 1), "more was repeated than was in flight"
    assert len(answered) > 100


def test_a_second_process_is_told_who_works_in_the_folder(tmp_path):
    with subprocess.Popen(child(CHILD_THAT_ASKS, tmp_path), stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout.readline() == "ready\n"
        host = os.uname().nodename
        since = "2031-03-01 08:00:00 UTC"
        with refused(LockedError, "files.process_since", pid=owner.pid, host=host, since=since):
            opened(tmp_path, fresh=True)
        owner.kill()
        owner.stdout.read()
    with opened(tmp_path):
        owner_now = json.loads((tmp_path / ".lock").read_text())
    assert owner_now == {"pid": os.getpid(), "host": host, "started_at": NOW}


def test_one_process_cannot_open_a_folder_twice(tmp_path):
    with opened(tmp_path), pytest.raises(LockedError):
        opened(tmp_path)


# What runs got nowhere with


def fail_in_run(ledger: SqliteLedger, question: bytes, codes: list[str], *, minute: int) -> None:
    """A run that asks a question in vain, and ends."""
    first = open_attempts(ledger, [question]).get(question, 0) + 1

    async def main() -> None:
        async with ledger.writing():
            for attempt, code in enumerate(codes, start=first):
                time = f"2031-03-01T09:{minute:02}:00.000Z"
                await ledger.intend(question, attempt=attempt, request_id="id", time=time)
                await ledger.fail(question, attempt=attempt, code=code, time=time)

    anyio.run(main)
    ledger.finish(
        f"2031-03-01T09:{minute:02}:30.000Z", question_count=1, unanswered_count=1, outcome_sha256="f"
    )


def test_runs_that_got_nowhere_with_a_question_are_counted_by_its_last_reply_in_each(tmp_path):
    with opened(tmp_path) as ledger:
        question = ledger.question_key(a_check())
        fail_in_run(ledger, question, ["HTTP_401", "HTTP_401"], minute=1)
        assert anyio.run(ledger.fruitless) == {question: FruitlessQuestion(1, "HTTP_401", 2)}
        fail_in_run(ledger, question, ["HTTP_403", "SERVER_ERROR"], minute=2)
        assert anyio.run(ledger.fruitless) == {question: FruitlessQuestion(1, "HTTP_401", 2)}
        fail_in_run(ledger, question, ["NETWORK", "CONTRACT"], minute=3)
    with opened(tmp_path) as ledger:
        assert anyio.run(ledger.fruitless) == {question: FruitlessQuestion(2, "CONTRACT", 6)}
        assert anyio.run(ledger.known, [question])[question].code == "CONTRACT"


def test_a_run_that_was_killed_counts_as_one_with_the_next(tmp_path):
    with opened(tmp_path) as ledger:
        question = ledger.question_key(a_check())

        async def killed() -> None:
            async with ledger.writing():
                await ledger.intend(question, attempt=1, request_id="id", time=NOW)
                await ledger.fail(question, attempt=1, code="HTTP_404", time=NOW)

        anyio.run(killed)
        fail_in_run(ledger, question, ["HTTP_404"], minute=1)

        assert anyio.run(ledger.fruitless) == {question: FruitlessQuestion(1, "HTTP_404", 2)}


def test_a_question_that_was_answered_in_the_end_is_not_counted_nor_one_in_doubt_said_to_have_failed(
    tmp_path,
):
    with opened(tmp_path) as ledger:
        answered, in_doubt = (ledger.question_key(a_check(number, name=f"P {number}")) for number in (1, 2))
        fail_in_run(ledger, answered, ["HTTP_403"], minute=1)
        fail_in_run(ledger, in_doubt, ["HTTP_403"], minute=2)

        async def second() -> None:
            async with ledger.writing():
                await ask(ledger, answered, an_answer(2))
                await ledger.intend(in_doubt, attempt=2, request_id="id", time=LATER)

        anyio.run(second)

        assert anyio.run(ledger.fruitless) == {in_doubt: FruitlessQuestion(1, "HTTP_403", 1)}
        assert anyio.run(ledger.known, [in_doubt])[in_doubt].code is None
