"""With a key, the names that banks returned lie encrypted in the ledger, and only that key reads them."""

import sqlite3
from contextlib import closing

import anyio
import pytest
from forgers import forge, forging
from pydantic import SecretStr
from refusals import refused

from pipeline.errors import ConfigurationError, DiskError, InputError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.purge import purge
from pipeline.stores.values import RunIdentity

NOW, LATER = "2031-03-01T09:00:00.000Z", "2031-03-02T09:00:00.000Z"
IDENTITY = RunIdentity("1f" * 32, "2e" * 32, "sandbox", "0.1.0")
KEY, OTHER_KEY = SecretStr("invented key"), SecretStr("another invented key")
NAMES = ["Quillan Feathermoor", "Zoë Quillon", None, "Quillan Feathermoor"]


@pytest.fixture
def open_ledger(tmp_path):
    def open_it(secret=KEY, **how):
        return SqliteLedger.open(tmp_path / "ledger.db", IDENTITY, now=NOW, secret=secret, **how)

    return open_it


def settle(ledger):
    async def main():
        async with ledger.writing():
            for n, name in enumerate(NAMES):
                question, code = bytes([n]) * 32, "MTCH" if name is None else "MBAM"
                await ledger.intend(question, attempt=1, request_id=f"id-{n}", time=NOW)
                await ledger.settle(question, Answer(n, AnswerState.ANSWERED, code, name, f"id-{n}", NOW, 1))

    anyio.run(main)


@pytest.fixture
def path(tmp_path, open_ledger):
    """Of a ledger whose names are encrypted with KEY."""
    with open_ledger() as ledger:
        settle(ledger)
    return tmp_path / "ledger.db"


def test_names_are_read_again_with_the_key(path, open_ledger):
    with open_ledger() as ledger:
        assert [answer.matched_name for answer in ledger.answers()] == NAMES


def test_no_name_and_no_key_is_in_the_bytes_of_the_folder(tmp_path, open_ledger):
    with open_ledger() as ledger:
        settle(ledger)
        while_open = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    closed = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for canary in ("Feathermoor", "Quillon", KEY.get_secret_value()):
        assert canary.encode() not in while_open + closed


def test_one_name_twice_is_not_seen_to_be_one_name(path):
    with closing(sqlite3.connect(path)) as db:
        written = [name for [name] in db.execute("SELECT matched_name FROM answer") if name is not None]
    assert len(set(written)) == len(written) == 3


def test_without_a_key_names_lie_in_clear(tmp_path, open_ledger):
    with open_ledger(None) as ledger:
        settle(ledger)
    assert b"Quillan Feathermoor" in (tmp_path / "ledger.db").read_bytes()


@pytest.mark.parametrize(
    ("secret", "sentence"),
    [(None, "stores.names_are_encrypted"), (OTHER_KEY, "stores.encrypted_with_other_key")],
)
def test_without_its_key_a_ledger_is_refused_and_left_as_it_is(path, open_ledger, secret, sentence):
    before = path.read_bytes()
    with refused(ConfigurationError, sentence) as caught:
        open_ledger(secret)
    assert path.read_bytes() == before
    assert "invented" not in str(caught.value)
    with open_ledger() as ledger:
        assert len(list(ledger.answers())) == len(NAMES)


def test_a_ledger_begun_in_clear_takes_no_key_later(open_ledger):
    with open_ledger(None) as ledger:
        settle(ledger)
    with refused(ConfigurationError, "stores.ledger_key_differs", "stores.begun_without_key"):
        open_ledger()


def test_fresh_begins_with_whatever_key_there_is(path, open_ledger):
    with open_ledger(OTHER_KEY, fresh=True) as ledger:
        assert not list(ledger.answers())


def test_purging_needs_no_key_and_leaves_answers_that_the_key_opens(path, open_ledger):
    assert purge(path, answers_before=LATER, now=LATER) == 3
    with open_ledger() as ledger:
        assert [answer.matched_name for answer in ledger.answers()] == [None] * 4


def test_an_encrypted_name_that_was_changed_breaks_its_seal(path, open_ledger):
    with forging(path, reseals=False) as db:
        db.execute("UPDATE answer SET matched_name = zeroblob(40) WHERE intent = 1")
    with refused(InputError, "stores.ledger_altered", "stores.found_names_changed"):
        open_ledger()


MOVED = "UPDATE answer SET matched_name = (SELECT matched_name FROM answer WHERE intent = 1) WHERE intent = 4"


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (MOVED, "stores.found_name_not_decrypted"),
        ("UPDATE answer SET matched_name = zeroblob(40) WHERE intent = 4", "stores.found_name_not_decrypted"),
        ("UPDATE answer SET matched_name = zeroblob(5) WHERE intent = 4", "stores.found_name_not_decrypted"),
        (
            "UPDATE answer SET matched_name = 'Someone Else' WHERE intent = 4",
            "stores.found_name_not_encrypted",
        ),
    ],
)
def test_a_forged_name_is_never_read_as_one_that_a_bank_returned(path, open_ledger, change, finding):
    forge(path, change)
    with open_ledger() as ledger, refused(DiskError, finding):
        list(ledger.answers())


def test_an_encrypted_name_in_a_ledger_that_says_it_has_none_is_refused(path, open_ledger):
    forge(path, "UPDATE run SET name_proof = NULL")
    with (
        open_ledger(None) as ledger,
        refused(DiskError, "stores.ledger_damaged", "stores.found_name_not_encrypted"),
    ):
        list(ledger.answers())


def test_a_ledger_without_any_name_takes_another_key(open_ledger):
    open_ledger(KEY).close()
    open_ledger(OTHER_KEY).close()
    with open_ledger(OTHER_KEY) as ledger:
        settle(ledger)
    with pytest.raises(ConfigurationError):
        open_ledger(KEY)
