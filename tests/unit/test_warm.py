"""Children that are forks (tests/warm.py) are what children are to the program that starts them."""

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from desk import WARM
from refusals import refused
from warm import Warm

from pipeline.errors import InputError
from pipeline.files import child_process
from pipeline.files.memory import GIB
from pipeline.formats import parquet
from pipeline.formats.table import ReadingOptions

MAIN = "from pipeline.files.confined import main; main()"


def parquet_of(rows):
    file = io.BytesIO()
    pl.DataFrame({"name": rows}).write_parquet(file)
    return file.getvalue()


def parsed(data):
    return parquet.read(data, ReadingOptions({}), where="pay.parquet").cells


@pytest.fixture(params=["a fork", "an interpreter"])
def child(request, monkeypatch):
    """Which it is; with this PYTHONPATH the program has the one or the other."""
    places = {"a fork": WARM.python_path, "an interpreter": WARM.inherited}
    monkeypatch.setenv("PYTHONPATH", places[request.param])
    return request.param


@pytest.fixture
def reading(child, wait_until):
    """A child that waits for its file, and the process that will read it, which has its limit of memory."""
    request = {"module": "pipeline.files.parquet_rows", "options": {}, "memory_max_bytes": 2 * GIB}
    with subprocess.Popen(
        [*child_process.INTERPRETER, "-c", MAIN, json.dumps(request)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_process.environment(),
    ) as process:
        pipe = Path(f"/proc/self/fd/{process.stdin.fileno()}").readlink()
        found = []

        def has_begun():
            found[:] = [pid for pid in holders_of(pipe) if f"{2 * GIB} " in (pid / "limits").read_text()]
            return found

        wait_until(has_begun)
        yield process, *found
        process.kill()


def holders_of(pipe):
    """The processes whose standard input this is."""
    for task in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (task / "fd/0").readlink() == pipe:
                yield task


def test_the_table_comes_back(child):
    assert parsed(parquet_of(["Ada Quillon", None])).rows() == [("Ada Quillon",), (None,)], child


def test_what_is_damaged_is_refused(child):
    data = parquet_of(["Ada Quillon"] * 1000)
    with refused(InputError, "files.is_damaged", where="pay.parquet"):
        parsed(data[:8] + bytes(60) + data[68:])


def test_the_one_that_reads_is_a_fork_or_the_child_itself(child, reading):
    process, parser = reading
    assert (int(parser.name) == process.pid) == (child == "an interpreter")


def test_an_end_by_a_signal_is_seen_as_one(reading):
    process, parser = reading
    os.kill(int(parser.name), signal.SIGTERM)
    assert process.wait(30) == -signal.SIGTERM


def test_whoever_kills_the_child_ends_the_one_that_reads(reading, wait_until):
    process, parser = reading
    pipe = (parser / "fd/0").readlink()
    process.kill()
    process.wait(30)
    wait_until(lambda: not list(holders_of(pipe)))


def test_a_started_command_is_our_child_though_a_child_that_is_gone_opened_the_door_first(tmp_path):
    warm = Warm()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": warm.python_path}
    child = [sys.executable, "-P", "-m", "payee_precheck", "--version"]
    subprocess.run(child, env=environment, cwd=tmp_path, check=True, capture_output=True)
    with Path(os.devnull).open("r+") as nothing:
        pid = warm.start(
            ["--version"], folder=tmp_path, environment=environment, streams=(nothing.fileno(),) * 3
        )
    assert os.waitpid(pid, 0) == (pid, 0)
