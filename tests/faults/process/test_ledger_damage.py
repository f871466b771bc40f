"""A11: a ledger that is not what the run left behind is refused with the reason, and nothing is sent."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from ledgers import asked, open_attempts

from pipeline.errors import PrecheckError
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity

ROW_COUNT = 300
NOW = "2030-01-02T03:04:05.678Z"


@pytest.fixture
def half_done(desk, sandbox, sample):
    """The folder of a run that has half of its answers, and the words to go on with it."""
    folder = desk.folder / "results"
    words = (
        "run",
        sample(ROW_COUNT),
        *desk.using(**sandbox.both(rate_per_s=500)),
        "--quiet",
        "--out",
        folder,
    )
    finished = desk(*words, "--limit", ROW_COUNT // 2, XDG_STATE_HOME=str(desk.folder / "state0"))
    assert finished.status == 75, finished.err
    return folder, words


def identity_in(path):
    with closing(sqlite3.connect(path)) as db:
        row = db.execute("SELECT input_sha256, profile_sha256, environment, tool_version FROM run").fetchone()
    return RunIdentity(*row)


def contents(path, identity, questions):
    with SqliteLedger.open(path, identity, now=NOW) as ledger:
        return list(ledger.answers()), open_attempts(ledger, questions), ledger.last_finish


def test_no_flipped_byte_changes_what_a_ledger_says(half_done, chance, tmp_path, tell, is_long):
    folder, _ = half_done
    data = (folder / "ledger.db").read_bytes()
    copy = tmp_path / "copy"
    copy.mkdir()
    path = copy / "ledger.db"
    path.write_bytes(data)
    identity = identity_in(path)
    questions = asked(path)
    truth = contents(path, identity, questions)
    flip_count = 5000 if is_long else 400
    refused_count = same_count = 0
    for _ in range(flip_count):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= chance.randrange(1, 256)
        for stale in copy.glob("ledger.db*"):
            stale.unlink()
        path.write_bytes(damaged)
        try:
            same_count += contents(path, identity, questions) == truth
        except PrecheckError:
            refused_count += 1
    tell(
        "A11",
        "flipped bytes",
        tried=flip_count,
        survived=refused_count + same_count,
        figure=f"refused {refused_count}; of no effect, in unused space {same_count}; believed 0",
        goal="refused, or of no effect",
    )


def flip_an_answer(path):
    """One letter of one reason code: a page that SQLite finds sound."""
    data = path.read_bytes()
    for sound, other in ((b"ANNM", b"ANNN"), (b"MTCH", b"NTCH"), (b"NMTC", b"MMTC")):
        if sound in data:
            path.write_bytes(data.replace(sound, other, 1))
            return
    raise AssertionError("no answer to change")


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def truncate_to_a_page(path):
    os.truncate(path, 4096)


def empty(path):
    os.truncate(path, 0)


def of_another_program(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 7")


def of_a_later_version(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def no_database(path):
    path.write_bytes(b"payment_id,name\n" * 2000)


def edited_by_hand(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TRIGGER answer_never_changes")
        db.execute("UPDATE answer SET code = 'MTCH'")
        db.commit()


DAMAGES = {
    flip_an_answer: (65, "differs from what the run wrote"),
    truncate: (74, "damaged"),
    truncate_to_a_page: (74, "damaged"),
    edited_by_hand: (65, "differs from what the run wrote"),
    empty: (73, "not a ledger"),
    of_another_program: (73, "not a ledger"),
    no_database: (73, "not a ledger"),
    of_a_later_version: (73, "another version"),
}


def test_a_damaged_or_foreign_ledger_is_refused_without_a_call(
    desk, sandbox, half_done, network_payments, tmp_path, tell
):
    folder, words = half_done
    sound = tmp_path / "sound"
    shutil.copytree(folder, sound)
    other_file = desk.payments(network_payments(3))
    config = words[2:6]
    cases = [(damage.__name__, damage, words, expected) for damage, expected in DAMAGES.items()]
    cases += [
        ("another input", None, ("run", other_file, *config, "--out", folder), (2, "another input file")),
        (
            "another profile",
            None,
            ("run", words[1], "--out", folder),
            (2, "holds a run with the profile mine"),
        ),
    ]
    right = []
    before = sandbox.call_count
    for number, (name, damage, command, (status, sentence)) in enumerate(cases):
        shutil.rmtree(folder)
        shutil.copytree(sound, folder)
        if damage is not None:
            damage(folder / "ledger.db")
        finished = desk(*command, XDG_STATE_HOME=str(desk.folder / f"state-{number}"))
        is_told = (
            len(finished.sentences) == 1 and sentence in finished.err and "Traceback" not in finished.err
        )
        if finished.status == status and is_told:
            right.append(name)
        else:
            print(name, finished.status, finished.err[-400:])  # noqa: T201 (pytest shows it for a failure)
    call_count = len(sandbox.questions(before))
    tell(
        "A11",
        "truncated, edited, foreign ledger",
        tried=len(cases),
        survived=len(right) * (call_count == 0),
        figure=f"refused with the reason {len(right)}; calls {call_count}",
        goal="refused with the reason; calls 0",
    )
