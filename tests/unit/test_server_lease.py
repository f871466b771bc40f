"""Runs take turns at a server, whatever ends them."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from pipeline.errors import DiskError, IncompleteError, OutputError
from pipeline.stores.sqlite.server_lease import leased, write_record

HOLDER = """
import sys, anyio
from pathlib import Path
from datetime import UTC, datetime
from pipeline.stores.sqlite.server_lease import leased
def now():
    return datetime.now(UTC)
async def main():
    async with leased(Path(sys.argv[1]), sys.argv[2], 0.1, clock=now, waiting=lambda _: None):
        print("mine", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)
anyio.run(main)
"""


def now():
    return datetime.now(UTC)


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lease of the server "a" until its standard input ends."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "turns"), "a"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mine\n"
        yield process


def take(folder, scope="a", *, window_s=0.0, within_s=10.0):
    """Take a lease and end it; how long it took, and whether another run held it."""
    said = []

    async def main():
        with anyio.fail_after(within_s):
            started = time.monotonic()
            async with leased(folder, scope, window_s, clock=now, waiting=lambda _: said.append(scope)):
                return time.monotonic() - started

    return anyio.run(main), bool(said)


def test_turn_at_a_server_that_another_run_asks_is_waited_for(tmp_path, holder):
    with pytest.raises(TimeoutError):
        take(tmp_path / "turns", within_s=0.6)
    holder.stdin.close()
    take(tmp_path / "turns")


def test_run_that_waits_is_told_so_once(tmp_path, holder):
    said = []

    async def main():
        with anyio.move_on_after(0.8):
            async with leased(tmp_path / "turns", "a", 0.0, clock=now, waiting=said.append):
                pass

    anyio.run(main)
    [said_holder] = said
    assert (said_holder.server, said_holder.pid) == ("a", holder.pid)
    since = datetime.fromisoformat(said_holder.since)
    assert abs((datetime.now(UTC) - since).total_seconds()) < 10
    assert said_holder.since_when == f" since {since:%Y-%m-%d %H:%M:%S} UTC"


def test_run_that_does_not_say_yet_who_it_is_is_another_run(tmp_path, holder):
    [lock] = (tmp_path / "turns").iterdir()
    said = []
    for content in (
        b"",
        b"%.3f" % time.time(),
        b"unfinished",
        b"unfinished x y",
        b"nonsense 1 2",
        b"\xff 1 2",
    ):
        lock.write_bytes(content)

        async def main():
            with anyio.move_on_after(0.1):
                async with leased(tmp_path / "turns", "a", 0.0, clock=now, waiting=said.append):
                    pass

        anyio.run(main)
    assert {(each.name, each.since_when) for each in said} == {("another run", "")}


@pytest.mark.parametrize("patience_s", [0.0, 0.6])
def test_run_that_has_waited_long_enough_ends_with_75_and_says_for_whom(tmp_path, holder, patience_s):
    said = []

    async def main():
        deadline = anyio.current_time() + patience_s
        async with leased(tmp_path / "turns", "a|0", 0.0, clock=now, waiting=said.append, deadline=deadline):
            pass

    [lock] = (tmp_path / "turns").iterdir()
    lock.rename(lock.with_name(f"{sha256(b'a|0').hexdigest()[:32]}.lock"))
    started = time.monotonic()
    with pytest.raises(
        IncompleteError, match=rf"^a: process {holder.pid} has been .*the time to wait for it is"
    ):
        anyio.run(main)
    assert patience_s <= time.monotonic() - started < patience_s + 1
    assert len(said) == (patience_s > 0)


def test_deadline_that_comes_after_the_turn_began_ends_nothing(tmp_path):
    async def main():
        deadline = anyio.current_time()
        async with leased(tmp_path / "turns", "a", 0.0, clock=now, waiting=print, deadline=deadline):
            await anyio.sleep(0.01)
            return True

    assert anyio.run(main)


def test_run_that_waits_has_the_turn_once_the_other_one_ended(tmp_path, holder):
    async def main():
        with anyio.fail_after(10):
            async with leased(
                tmp_path / "turns", "a", 0.0, clock=now, waiting=lambda _: holder.stdin.close()
            ):
                return holder.wait(10)

    assert anyio.run(main) == 0


def test_turn_at_another_server_is_free(tmp_path, holder):
    assert take(tmp_path / "turns", "b")[1] is False


def test_first_turn_begins_at_once(tmp_path):
    waited_s, _ = take(tmp_path / "turns", window_s=5.0)
    assert waited_s < 1.0


def test_next_turn_begins_one_window_after_the_last_one_ended(tmp_path):
    take(tmp_path / "turns")
    ended = time.time()
    waited_s, somebody = take(tmp_path / "turns", window_s=0.7)
    assert not somebody
    assert time.time() - ended >= 0.65
    assert waited_s < 5.0


def test_turn_long_after_the_last_one_begins_at_once(tmp_path):
    take(tmp_path / "turns")
    [lock] = (tmp_path / "turns").iterdir()
    lock.write_text(f"{time.time() - 60:.3f}")
    assert take(tmp_path / "turns", window_s=5.0)[0] < 1.0


def test_clock_that_went_back_makes_nobody_wait_longer_than_a_window(tmp_path):
    take(tmp_path / "turns")
    [lock] = (tmp_path / "turns").iterdir()
    lock.write_text(f"{time.time() + 86_400:.3f}")
    assert take(tmp_path / "turns", window_s=0.3)[0] < 2.0


def test_turn_of_a_killed_run_is_free_after_a_window(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait(10)
    waited_s, somebody = take(tmp_path / "turns", window_s=0.5)
    assert not somebody
    assert waited_s >= 0.5


def test_lock_file_that_cannot_be_made_is_told_with_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="XDG_STATE_HOME"):
        take(tmp_path / "file")


def test_lock_tells_when_the_turn_ended_and_until_then_that_it_has_not(tmp_path):
    told = []

    async def main():
        for _ in range(2):
            async with leased(tmp_path, "a", 0.0, clock=now, waiting=lambda _: None):
                [lock] = tmp_path.iterdir()
                told.append(lock.read_text().rstrip())
        told.append(lock.read_text().rstrip())

    anyio.run(main)
    assert all(re.fullmatch(rf"unfinished {os.getpid()} 20\d\d-[-:\dT]+Z", each) for each in told[:2])
    assert re.fullmatch(r"\d+\.\d{3}", told[2])
    assert abs(time.time() - float(told[2])) < 5


def test_turn_that_an_error_ended_is_not_finished(tmp_path):
    async def main():
        async with leased(tmp_path, "a", 0.0, clock=now, waiting=lambda _: None):
            raise OutputError("x")

    with pytest.raises(OutputError):
        anyio.run(main)
    [lock] = tmp_path.iterdir()
    assert lock.read_text().startswith(f"unfinished {os.getpid()} ")


def test_locks_are_private_and_name_no_server(tmp_path):
    folder = tmp_path / "state" / "turns"
    take(folder, "cop.example|0123")
    [lock] = folder.iterdir()
    assert re.fullmatch(r"[0-9a-f]{32}\.lock", lock.name)
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_link_in_the_place_of_a_lock_is_refused_and_not_followed(tmp_path):
    take(tmp_path / "turns")
    [lock] = (tmp_path / "turns").iterdir()
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=r"cannot be written.*XDG_STATE_HOME"):
        take(tmp_path / "turns")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is always full")
def test_turn_that_cannot_be_written_down_is_not_taken():
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(DiskError, match="make room"):
        write_record(full.fileno(), Path("/dev"), b"unfinished")
