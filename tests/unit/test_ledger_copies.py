"""The copy that a folder keeps of a run which processes share: everything once, in the order it left."""

import sqlite3

import anyio
import pytest
from pydantic import SecretStr

from pipeline.frames import AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.reader import ledger_reader
from pipeline.stores.values import FinalAnswer, LedgerCounts, RecordedRequest, RunIdentity

NOW = "2031-03-01T09:00:00.000Z"
LATER = "2031-03-01T09:00:07.000Z"
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")
SECRET = SecretStr("a secret of our own")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "ledger.db"


@pytest.fixture(params=[None, SECRET], ids=["in clear", "encrypted"])
def ledger(request, path):
    with SqliteLedger.open(path, IDENTITY, now=NOW, secret=request.param) as opened:
        opened.secret = request.param
        yield opened


def question(number):
    return number.to_bytes(32)


def answered(number, attempt=1, name="Quillan Feathermoor", state=AnswerState.ANSWERED):
    request_id = f"{number}/{attempt}"
    answer = FinalAnswer(question(number), state, "MBAM", name, request_id, LATER, attempt)
    return RecordedRequest(question(number), attempt, request_id, NOW, None, None, answer, "")


def in_doubt(number, attempt=1):
    return RecordedRequest(question(number), attempt, f"{number}/{attempt}", NOW, None, None, None, "")


def failed(number, attempt=1, detail=""):
    return in_doubt(number, attempt)._replace(failed_with="TIMEOUT_ERROR", failed_at=LATER, detail=detail)


def open_attempts(ledger):
    """Question -> its requests, of those without an answer."""
    known = anyio.run(ledger.known, [question(number) for number in range(10)])
    return {number: one.attempts for number, one in known.items() if one.answer is None}


def test_what_others_recorded_is_in_the_folder_as_if_it_had_been_asked_there(ledger, path):
    requests = [failed(1, detail="too busy"), in_doubt(2), answered(3), answered(1, 2, name=None)]

    ledger.copy(requests)

    known = anyio.run(ledger.known, [question(number) for number in range(5)])
    assert {number[-1]: (one.attempts, one.code) for number, one in known.items()} == {
        1: (2, None),
        2: (1, None),
        3: (1, None),
    }
    assert list(ledger.answers()) == [requests[2].answer, requests[3].answer]
    assert ledger.counts == LedgerCounts(4, 2, 0)
    assert open_attempts(ledger) == {question(2): 1}
    ledger.close()
    with ledger_reader(path, now=NOW) as reader:  # every seal is whole
        asked = [request.question for request in requests[2:]]
        found = reader.answers_to(asked, ledger.secret, with_names=True)
        assert [found[question] for question in asked] == [requests[2].answer, requests[3].answer]


def test_what_is_there_is_not_added_again_and_what_ended_since_is(ledger):
    ledger.copy([in_doubt(1), in_doubt(2), answered(3)])
    later = [answered(1), failed(2), answered(3), in_doubt(4)]

    for _ in range(2):
        ledger.copy(later)

        assert ledger.counts == LedgerCounts(4, 2, 0)
        assert sorted(one.question[-1] for one in ledger.answers()) == [1, 3]
        assert open_attempts(ledger) == {question(2): 1, question(4): 1}


def test_after_a_copy_the_ledger_takes_writes_as_before(ledger, path):
    ledger.copy([failed(1), answered(2)])

    async def ask():
        async with ledger.writing():
            await ledger.intend(question(1), attempt=2, request_id="own", time=NOW)

    anyio.run(ask)
    ledger.copy([answered(3)])
    ledger.close()
    with SqliteLedger.open(path, IDENTITY, now=NOW, secret=ledger.secret) as again:
        assert again.counts == LedgerCounts(4, 2, 0)
        again.copy([answered(3), in_doubt(5)])
        assert again.counts == LedgerCounts(5, 2, 0)


def test_a_copy_is_all_or_nothing(ledger):
    broken = answered(2)._replace(sent_at=None)

    with pytest.raises(sqlite3.IntegrityError):
        ledger.copy([answered(1), broken])

    assert ledger.counts == LedgerCounts(0, 0, 0)


def test_no_name_of_a_copy_stands_in_a_ledger_with_a_key(ledger, path):
    ledger.copy([answered(1), failed(2, detail="for Quillan Feathermoor")])
    ledger.close()

    is_clear = any(b"Feathermoor" in file.read_bytes() for file in path.parent.iterdir())

    assert is_clear is (ledger.secret is None)


def test_many_requests_are_copied(ledger):
    ledger.copy([answered(number) for number in range(2_500)])
    ledger.copy([answered(number) for number in range(2_400, 2_600)])

    assert ledger.counts == LedgerCounts(2_600, 2_600, 0)
