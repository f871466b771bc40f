"""What a server says of a problem lies in the ledger with its request, and leaves it with the names."""

import sqlite3
from contextlib import closing

import anyio
import pytest
from forgers import forge
from pydantic import SecretStr
from refusals import refused

from pipeline.errors import DiskError, InputError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.purge import purge
from pipeline.stores.sqlite.reader import ledger_reader
from pipeline.stores.values import RunIdentity

OLD, NOW, LATER = (f"2031-03-0{day}T09:00:00.000Z" for day in (1, 2, 3))
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "test", "0.1.0")
KEY = SecretStr("invented key")
BUSY, REFUSED = "the gate of Quillan is busy", "data.name: refused for Quillan"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def fill(path, check_of):
    """`fill(time)`: one more question, with a failure and a refusal at that time, in a run of its own."""

    def fill_at(time, *, number=1, secret=None):
        async def main(ledger):
            key = ledger.question_key(check_of(name=f"Payee {number}"))
            async with ledger.writing():
                await ledger.intend(key, attempt=1, request_id="id-1", time=time)
                await ledger.fail(key, attempt=1, code="SERVER_ERROR", time=time, detail=BUSY)
                await ledger.intend(key, attempt=2, request_id="id-2", time=time)
                refused = Answer(1, AnswerState.REFUSED, "FORMAT_ERROR", None, "id-2", time, 2)
                await ledger.settle(key, refused, REFUSED)

        with SqliteLedger.open(path, IDENTITY, now=time, secret=secret) as ledger:
            anyio.run(main, ledger)

    return fill_at


@pytest.fixture
def details(path, check_of):
    """`details(number)`: of each request for a question, first to last."""

    def of(number=1, secret=None):
        with ledger_reader(path, now=LATER) as record:
            attempts = record.attempts(check_of(name=f"Payee {number}"), secret)
            return [(attempt.detail, attempt.has_hidden_detail) for attempt in attempts]

    return of


def test_it_is_kept_with_its_request(fill, details):
    fill(NOW)
    assert details() == [(BUSY, False), (REFUSED, False)]


def test_it_goes_with_the_names_of_its_time(path, fill, details):
    fill(OLD)
    fill(NOW, number=2)
    with ledger_reader(path, now=LATER) as record:
        assert [record.detail_count(time) for time in (OLD, NOW, LATER)] == [0, 2, 4]

    purge(path, answers_before=NOW, now=LATER)
    assert (details(1), details(2)) == ([(None, False)] * 2, [(BUSY, False), (REFUSED, False)])

    purge(path, answers_before=LATER, now=LATER)
    assert b"Quillan" not in path.read_bytes()
    with SqliteLedger.open(path, IDENTITY, now=LATER) as ledger:
        assert [answer.code for answer in ledger.answers()] == ["FORMAT_ERROR"] * 2


def test_under_a_key_it_is_read_with_the_key_only(path, fill, details):
    fill(NOW, secret=KEY)
    assert b"Quillan" not in path.read_bytes()
    assert details(secret=KEY) == [(BUSY, False), (REFUSED, False)]
    assert details() == [(None, True), (None, True)]


def test_under_a_key_it_cannot_be_passed_off_as_a_name(path, fill):
    fill(NOW, secret=KEY)
    forge(path, "UPDATE answer SET matched_name = (SELECT detail FROM problem WHERE intent = answer.intent)")
    with (
        SqliteLedger.open(path, IDENTITY, now=LATER, secret=KEY) as ledger,
        refused(DiskError, "stores.ledger_damaged", "stores.found_name_not_decrypted"),
    ):
        list(ledger.answers())


def test_a_changed_word_breaks_its_seal(path, fill, details):
    fill(NOW)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE problem SET detail = 'all is well'")
    with refused(InputError, "stores.ledger_altered", "stores.found_lines_changed", table="problem", count=2):
        details()
