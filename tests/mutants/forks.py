"""Runs pytest again and again, each time in a fork of a process that has imported what is not ours.

A request is a line of JSON, [seconds, argument of pytest, ...]; the answer is a line with its exit
status, or a negative number where a signal ended it: -14 is the alarm after that many seconds.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from math import ceil
from pathlib import Path

import aiohttp.web  # noqa: F401  this and what follows: the slow imports of our tests
import aiolimiter  # noqa: F401
import anyio.pytest_plugin  # noqa: F401
import click  # noqa: F401
import httpx  # noqa: F401
import hypothesis.strategies  # noqa: F401
import jinja2  # noqa: F401
import polars as pl  # noqa: F401
import psycopg  # noqa: F401
import pydantic  # noqa: F401
import pytest
import structlog  # noqa: F401
import xdist.plugin  # noqa: F401


def exit_code(seconds: float, arguments: list[str]) -> int:
    """Run pytest in a fork, and end whatever it leaves behind."""
    process = os.fork()
    if process == 0:
        os.setsid()
        signal.alarm(ceil(seconds))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os._exit(pytest.main(arguments))
    _, status = os.waitpid(process, 0)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as `python -m pytest` has it
    for line in sys.stdin:
        seconds, *arguments = json.loads(line)
        print(exit_code(seconds, arguments), flush=True)
