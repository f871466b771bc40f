"""Fault table E: a name that a bank returned can be forgotten, and encrypted while it is kept."""

import contextlib
import json
import sqlite3
import threading

import anyio
import pytest

UK = {"name": "Ada Quillon", "sort_code": "010203", "account_number": "10000001", "amount": "1.00"}


def test_e8_a_purged_name_is_gone_and_its_answer_stays(desk, bank, words, tell, reply, everything):
    canaries = [f"Canary {chr(65 + n // 26)}{chr(65 + n % 26)} Heldname" for n in range(200)]

    async def close(request, body):
        number = int(json.loads(body)["data"]["identification"][-4:])
        return reply(request, "MBAM", canaries[number])

    rows = [{**UK, "account_number": f"1000{n:04d}"} for n in range(len(canaries))]
    file = desk.payments(rows)
    with bank(close) as running:
        said = words(running)
        first = desk("run", file, *said, "--out", "out", "--quiet")
        before = desk.outcomes("out")
        kept = desk("purge", "out", "--older-than", "30d")
        assert all(name.encode() in (desk.folder / "out" / "ledger.db").read_bytes() for name in canaries)
        purged = desk("purge", "out", "--outcomes")
        left = {
            path.name: sum(content.count(name.encode()) for name in canaries)
            for path, content in everything().items()
        }
        asked_count = len(running.bodies)
        again = desk("run", file, *said, "--out", "out", "--quiet")
        repeated = len(running.bodies) - asked_count
    after = desk.outcomes("out")
    assert (first.status, kept.status, purged.status, again.status) == (0, 0, 0, 0), purged.err + again.err
    assert [row["check_matched_name"] for row in before] == canaries
    assert after == [{**row, "check_matched_name": ""} for row in before]
    residual = sum(left.values())
    tell(
        "E8",
        "purge of returned names",
        tried=len(canaries),
        survived=len(canaries) - residual - repeated,
        figure=f"{residual} copies left in any file, {repeated} questions repeated",
        goal="0 and 0",
    )


def test_e8_a_purge_after_a_kill_finds_the_names_in_the_log_too(
    desk, bank, words, tell, reply, everything, wait_until
):
    async def close_but_for_the_last(request, body):
        await anyio.sleep(30 if b"10000099" in body else 0)
        return reply(request, "MBAM", f"Canary {body[body.index(b'1000') + 4 :][:4].decode()} Heldname")

    file = desk.payments([{**UK, "account_number": f"1000{n:04d}"} for n in range(100)])
    with bank(close_but_for_the_last) as running:
        with desk.start("run", file, *words(running), "--out", "out") as process:
            wait_until(lambda: len(running.bodies) == 100)
            threading.Event().wait(0.3)  # the last answers are on their way to the disk
            process.kill()
            process.communicate()
        folder = desk.folder / "out"
        copies = sum(path.read_bytes().count(b" Heldname") for path in folder.iterdir())
        purged = desk("purge", "out")
    left = sum(content.count(b" Heldname") for content in everything().values())
    with contextlib.closing(sqlite3.connect(folder / "ledger.db")) as db:
        [(answer_count,)] = db.execute("SELECT count(*) FROM answer")
    assert purged.status == 0, purged.err
    assert answer_count >= 90
    assert copies, "nothing was there to be purged"
    tell(
        "E8",
        "purge of a run that was killed",
        tried=copies,
        survived=copies - left,
        figure=f"{left} copies left",
        goal="0",
    )


@pytest.fixture
def under_a_key(desk, words):
    """`under_a_key(bank)`: the words of a run whose ledger has the key in LEDGER_KEY."""

    def at(bank):
        _, configuration, *profile = words(bank)
        text = configuration.read_text()
        configuration.write_text(f'[profiles.mine]\nledger_key_env = "LEDGER_KEY"\n{text}')
        return "--config", configuration, *profile

    return at


def test_e9_with_a_key_no_returned_name_is_in_the_ledgers_bytes(
    desk, bank, under_a_key, tell, reply, wait_until
):
    first_count = 99  # of a hundred: at the last one the run is killed

    async def close_match(request, body):
        if len(running.bodies) > first_count and b"10000099" in body and not killed:
            await anyio.sleep(30)
        return reply(request, "MBAM", f"Canary {body[body.index(b'1000') + 4 :][:4].decode()} Heldname")

    file = desk.payments([{**UK, "account_number": f"1000{n:04d}"} for n in range(100)])
    folder, killed = desk.folder / "out", b""
    key, other = {"LEDGER_KEY": "canary-ledger-key-31b2"}, {"LEDGER_KEY": "another-ledger-key"}

    def ledger_bytes():
        return b"".join(path.read_bytes() for path in folder.glob("ledger.db*"))

    with bank(close_match) as running:
        command = ("run", file, *under_a_key(running), "--out", "out", "--quiet")
        with desk.start(*command, **key) as process:
            wait_until(lambda: len(running.bodies) > first_count)
            threading.Event().wait(0.3)  # the last answers are on their way to the disk
            process.kill()
            process.communicate()
        killed = ledger_bytes()
        asked_count = len(running.bodies)
        refused = [desk(*command, **wrong) for wrong in ({"LEDGER_KEY": ""}, other)]
        unnamed = desk(*command[:2], *words_without_key(command[3]), *command[4:], **key)
        asked_again_count = len(running.bodies) - asked_count
        resumed = desk(*command, **key)
    finished = ledger_bytes()
    names = [row["check_matched_name"] for row in desk.outcomes("out")]
    purged = desk("purge", "out")
    ends = [*refused, unnamed]
    held = [
        b"Heldname" not in killed + finished + ledger_bytes(),
        b"canary-ledger-key" not in killed + finished,
        [end.status for end in ends] == [78, 78, 78],
        all(len(end.sentences) == 1 and "canary" not in end.err for end in ends),
        asked_again_count == 0,
        resumed.status == 0,
        len(running.bodies) <= asked_count + 64,
        names == [f"Canary {n:04d} Heldname" for n in range(100)],
        purged.status == 0,
    ]
    tell(
        "E9",
        "ledger under a key: killed, no key, another key, resumed, purged",
        tried=len(held),
        survived=sum(held),
        figure=f"{(killed + finished).count(b'Heldname')} names in the bytes; without the key"
        f" {', '.join(str(end.status) for end in ends)}, and {asked_again_count} calls",
        goal="0 names; 78 and 0 calls; then the run goes on",
    )


def words_without_key(configuration):
    """The same profile in a file that names no key."""
    clear = configuration.with_name("clear.toml")
    clear.write_text(configuration.read_text().replace('ledger_key_env = "LEDGER_KEY"\n', ""))
    return "--config", clear
