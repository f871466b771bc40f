"""Runs take turns at a server, whatever ends them."""

import signal
import subprocess
import sys

import anyio
import pytest

from pipeline.errors import OutputError
from pipeline.turns import turn

HOLDER = """
import sys, anyio
from pathlib import Path
from pipeline.turns import turn
async def main():
    async with turn(Path(sys.argv[1]), [sys.argv[2]], waiting=lambda: None):
        print("mine", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)
anyio.run(main)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has the turn at the server "a" until its standard input ends."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "state" / "turns.lock"), "a"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mine\n"
        yield process


async def take(path, scope, said, *, within_s=5.0):
    with anyio.fail_after(within_s):
        async with turn(path, [scope], waiting=lambda: said.append(scope)):
            pass


def test_turn_at_a_server_that_another_run_asks_is_waited_for(tmp_path, holder):
    said = []
    path = tmp_path / "state" / "turns.lock"

    async def main():
        with pytest.raises(TimeoutError):
            await take(path, "a", said, within_s=0.6)
        holder.stdin.close()
        await take(path, "a", said)

    anyio.run(main)
    assert said[0] == "a"


def test_turn_at_another_server_is_free(tmp_path, holder):
    said = []
    anyio.run(take, tmp_path / "state" / "turns.lock", "b", said)
    assert said == []


def test_turn_of_a_killed_run_is_free(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait(10)
    said = []
    anyio.run(take, tmp_path / "state" / "turns.lock", "a", said)
    assert said == []


def test_lock_file_that_cannot_be_made_is_told_with_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"turns\.lock|file"):
        anyio.run(take, tmp_path / "file" / "turns.lock", "a", [])
