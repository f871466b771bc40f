"""The pool of processes that works on the parts of a data set."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from desk import WARM

BUSY = """
import time
from pipeline.executors.datasets.engines import pool_engine
with pool_engine(2) as pool:
    list(pool.each(time.sleep, [300, 300]))
"""


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def at_work(pid):
    """The processes of the pool of this one that have begun: each has a group of its own."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if os.getpgid(int(child)) == int(child)]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_the_processes_of_a_pool_end_when_their_command_is_killed(wait_until):
    environment = os.environ | {"PYTHONPATH": WARM.inherited}  # and not forks
    with subprocess.Popen([sys.executable, "-c", BUSY], env=environment) as command:
        try:
            wait_until(lambda: len(at_work(command.pid)) == 2)
            processes = at_work(command.pid)
        finally:
            command.kill()
    try:
        wait_until(lambda: not any(map(is_alive, processes)))
    finally:
        for pid in filter(is_alive, processes):
            os.kill(pid, signal.SIGKILL)
