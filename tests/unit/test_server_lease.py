"""The lock of a server: its runs hold it together, and the first of them alone for a moment."""

import fcntl
import re
import signal
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from refusals import refused

from pipeline.errors import DiskError, IncompleteError, OutputError
from pipeline.stores.leased_shares import Waiting
from pipeline.stores.sqlite.server_lease import ServerLock, file_name, write_record
from pipeline.wording import Sentence

OF_ANOTHER_RUN = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.pwrite(lock, b"unfinished", 0)
print("mine", flush=True)
sys.stdin.read()
"""


def now():
    return datetime.now(UTC)


@pytest.fixture
def turns(tmp_path):
    (tmp_path / "turns").mkdir()
    return tmp_path / "turns"


@pytest.fixture
def holder(turns):
    """A run that was stopped as it began: it has the lock of the server "a" alone until its input ends."""
    command = [sys.executable, "-c", OF_ANOTHER_RUN, turns / f"{file_name('a')}.lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mine\n"
        yield process


def take(folder, scope="a", *, window_s=0.0, wait_max_s=10.0, announce=lambda _: None):
    """Take a lock; it, and how long the requests of the last run may still count."""

    async def main():
        lock = ServerLock(folder, scope, window_s, now)
        try:
            return lock, await lock.take(Waiting(announce, anyio.current_time() + wait_max_s))
        except BaseException:
            lock.end()
            raise

    return anyio.run(main)


def test_a_run_that_was_stopped_as_it_began_is_waited_for(turns, holder):
    announced = []

    def end_it(other):
        announced.append(other)
        holder.stdin.close()

    lock, rest_s = take(turns, announce=end_it)
    lock.end()
    assert holder.wait(10) == 0
    assert rest_s == 0.0
    [other] = announced
    assert other.waited_for == Sentence(
        "stores.waiting_for", holder=Sentence("stores.another_run"), server="a"
    )


def test_a_run_that_only_begins_is_not_announced(turns):
    announced = []

    async def main():
        one, two = (ServerLock(turns, "a", 0.0, now) for _ in range(2))
        await one.take(Waiting(announced.append, anyio.current_time()))
        async with anyio.create_task_group() as group:
            group.start_soon(two.take, Waiting(announced.append, anyio.current_time() + 10))
            await anyio.lowlevel.checkpoint()
            assert one.share()
        one.end()
        two.end()

    anyio.run(main)
    assert announced == []


def test_one_that_is_waited_for_is_announced_once(turns, holder):
    announced = []
    with pytest.raises(IncompleteError):
        take(turns, wait_max_s=0.8, announce=announced.append)
    assert len(announced) == 1


@pytest.mark.parametrize("patience_s", [0.0, 0.6])
def test_run_that_has_waited_long_enough_ends_with_75_and_says_for_whom(turns, holder, patience_s):
    announced = []
    [lock] = turns.iterdir()
    lock.rename(lock.with_name(f"{file_name('a|0')}.lock"))
    started = time.monotonic()
    with refused(IncompleteError, "stores.wait_timed_out", "stores.another_run", server="a"):
        take(turns, "a|0", wait_max_s=patience_s, announce=announced.append)
    assert patience_s <= time.monotonic() - started < patience_s + 1
    assert len(announced) == (patience_s > 0)


def test_runs_hold_it_together_until_the_last_of_them_has_ended(turns):
    def is_free():
        with (turns / f"{file_name('a')}.lock").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    announced = []
    one, _ = take(turns)
    assert one.share()
    two, _ = take(turns, announce=announced.append)
    assert (announced, is_free()) == ([], False)
    one.end()
    assert not is_free()
    two.end()
    assert is_free()


def test_lock_of_another_server_is_free(turns, holder):
    announced = []
    take(turns, "b", announce=announced.append)[0].end()
    assert announced == []


def test_who_comes_first_need_not_rest(turns):
    lock, rest_s = take(turns, window_s=5.0)
    lock.end()
    assert rest_s == 0.0


def test_who_comes_next_rests_for_one_window_from_the_end_of_the_last_one(turns):
    take(turns)[0].end()
    lock, rest_s = take(turns, window_s=5.0)
    lock.end()
    assert 3.0 < rest_s <= 5.0


def test_who_comes_while_another_is_at_work_is_not_alone(turns):
    one, alone_s = take(turns)
    one.share()
    two, rest_s = take(turns)
    one.end()
    two.end()
    assert (alone_s, rest_s) == (0.0, None)


def test_long_after_the_last_one_nothing_counts(turns):
    [lock] = ended(turns)
    lock.write_text(f"{time.time() - 60:.3f}")
    assert rest_after(turns) == 0.0


def test_clock_that_went_back_makes_nobody_wait_longer_than_a_window(turns):
    [lock] = ended(turns)
    lock.write_text(f"{time.time() + 86_400:.3f}")
    assert rest_after(turns) == 5.0


def test_one_that_was_killed_counts_for_a_window(turns, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait(10)
    assert rest_after(turns) == 5.0


def ended(turns):
    take(turns)[0].end()
    return turns.iterdir()


def rest_after(turns):
    lock, rest_s = take(turns, window_s=5.0)
    lock.end()
    return rest_s


def test_lock_file_that_cannot_be_made_is_told_with_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    with refused(OutputError, "files.not_writable", "stores.set_state_home"):
        take(tmp_path / "file")


def test_lock_names_a_run_at_work_until_the_last_one_has_ended(turns):
    written = []
    one, _ = take(turns)
    [lock] = turns.iterdir()
    one.share()
    two, _ = take(turns)
    for each in (None, one, two):
        if each is not None:
            each.end()
        written.append(lock.read_text())
    assert written[:2] == ["unfinished", "unfinished"]
    assert re.fullmatch(r"\d+\.\d{3}", written[2])
    assert abs(time.time() - float(written[2])) < 5
    three, _ = take(turns)
    assert lock.read_text() == "unfinished"
    three.end()


def test_locks_are_private_and_name_no_server(tmp_path):
    folder = tmp_path / "state" / "turns"
    take(folder, "cop.example|0123")[0].end()
    [lock] = folder.iterdir()
    assert re.fullmatch(r"[0-9a-f]{32}\.lock", lock.name)
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_link_in_the_place_of_a_lock_is_refused_and_not_followed(turns, tmp_path):
    [lock] = ended(turns)
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with refused(OutputError, "files.not_writable", "system.eloop", "stores.set_state_home"):
        take(turns)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is always full")
def test_lock_that_the_disk_has_no_room_for_is_not_taken():
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        refused(DiskError, "files.not_writable_make_room"),
    ):
        write_record(full.fileno(), Path("/dev"), b"unfinished")


def test_lock_that_may_not_be_written_names_the_setting_of_its_folder(turns):
    [lock] = ended(turns)
    with lock.open("rb") as file, refused(OutputError, "files.not_writable", "stores.set_state_home"):
        write_record(file.fileno(), turns, b"unfinished")
