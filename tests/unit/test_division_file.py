"""The division of an account in a file: changed as one step, by whichever process, whatever a crash left."""

import fcntl
import os
import re
import stat

import anyio
import pytest
from refusals import refused

from pipeline.errors import OutputError
from pipeline.stores.sharing import Division, SharePart, ShareWish, joining, renewed
from pipeline.stores.sqlite.division_file import DivisionFile
from pipeline.stores.values import LeaseHolder, ServerAccount

ACCOUNT = ServerAccount("cop.example|c", "cop", 30, 6, 1.028, 8.0)
ME = joining("1 5.0", LeaseHolder("cop.example", 7, "2031-03-01T09:00:00Z", "host-a"), ACCOUNT)
DIVISION, _ = renewed(Division(), ACCOUNT, ShareWish(SharePart(0, 0), pause_s=3.0), ME, 5.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "turns" / "one.json"


def changed(path, *rules):
    """What each rule was given, one after another."""
    given = []

    async def main():
        file = DivisionFile(path)
        try:
            with anyio.fail_after(5):
                for division in rules:
                    await file.change(lambda before, after=division: (after, given.append(before)))
        finally:
            file.close()

    anyio.run(main)
    return given


def test_what_one_wrote_is_what_the_next_one_is_given(path):
    assert changed(path, DIVISION, Division()) == [Division(), DIVISION]
    assert changed(path, DIVISION) == [Division()]
    assert Division.of_json(DIVISION.as_json()) == DIVISION


def test_half_of_it_after_a_crash_is_nothing_known(path):
    changed(path, DIVISION)
    whole = path.read_bytes()
    for content in (whole[:-1], whole[1:], whole + b" ", b"{}", b"\x00" * 40):
        path.write_bytes(content)
        assert changed(path, DIVISION) == [None]


def test_it_is_private_and_tells_nothing_of_payees(path):
    changed(path, DIVISION)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert set(re.findall(r'"(\w+)":', path.read_text())) == {
        *("paused_until", "shares", "holder", "order", "who", "server", "pid", "since", "host"),
        *(
            "rate_per_s",
            "in_flight_max",
            "part",
            "until",
            "given_up",
            "given_up_until",
            "daily_cap",
            "cap_window",
        ),
    }


def test_who_finds_it_locked_waits_for_the_other(path):
    changed(path, DIVISION)
    other = os.open(path, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    given = []

    async def main():
        file = DivisionFile(path)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(file.change, lambda before: (Division(), given.append(before)))
            await anyio.sleep(0.05)
            assert given == []
            os.close(other)
        file.close()

    anyio.run(main)
    assert given == [DIVISION]


def test_one_that_cannot_be_made_is_told_with_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    with refused(OutputError, "files.not_writable", "stores.set_state_home"):
        DivisionFile(tmp_path / "file" / "one.json")
