"""The real command in a folder of its own, and real sandboxes on loopback to run it against.

A pytest plugin: tests/conftest.py loads it, so that every folder of tests has its fixtures.
"""

import atexit
import csv
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import chdir, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner
from warm import Warm, acts_at_start

from pipeline.cli.main import main
from pipeline.reports.wording import SIMULATED

COMMAND = (str(Path(sys.executable).with_name("precheck")),)
COMMAND_MAX_S = 120
HEADER = ("payment_id", "name", "account_type", "sort_code", "account_number", "iban", "amount", "currency")
VOLATILE = ("check_id", "check_time", "check_attempts")
"""What two runs of one file may differ in."""
FILE_KEYS = ("ca_file", "client_secret_file", "client_certificate", "client_key", "client_key_password_file")


FOR_STARTS = {"prefix", "limits", "umask", "stdout", "stderr"}
"""What `Desk.start` does for a command, and a fork that runs to its end has no need of."""
WARM = Warm()
os.environ["PYTHONPATH"] = WARM.python_path
KEPT: dict[tuple, tuple["Finished", Path]] = {}
"""What was on a desk and which command ran -> how it ended, and a copy of the desk as it was then."""


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def sentences(self):
        """The lines that say what is wrong, or how to go on."""
        said = [line for line in self.err.splitlines() if line.startswith("precheck: ")]
        return [line for line in said if not line.endswith(str(SIMULATED))]


class Running(subprocess.Popen):
    """A command that was started."""

    @property
    def has_ended(self):
        return self.poll() is not None

    def end(self, *, may_crash=False) -> Finished:
        """Wait until it has ended, which is never with a traceback, unless that is allowed."""
        try:
            out, err = self.communicate(timeout=COMMAND_MAX_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self.communicate()
            raise
        assert may_crash or "Traceback" not in (err or ""), err
        return Finished(self.returncode, out, err)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stopped in the middle of its work while the block lasts."""
        self.send_signal(signal.SIGSTOP)
        seen = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert seen.si_code == os.CLD_STOPPED, "it had ended before it was stopped"
        try:
            yield
        finally:
            self.send_signal(signal.SIGCONT)

    def kill_when(self, is_time) -> Finished:
        """SIGKILL at that moment, unless it ends before."""
        while not is_time() and not self.has_ended:
            threading.Event().wait(0.0005)
        self.kill()
        return self.end()


class Forked(Running):
    """A command that was started, as a fork of a process that has imported the program."""

    def _execute_child(self, words, *how):
        """As `Popen`, whose arguments these are, such as a folder, an environment and the ends of pipes."""
        folder, environment, ends = how[4], how[5], how[9:15]
        streams = (ends[0], ends[3], ends[5])
        assert -1 not in streams, "each has its stream"
        self.pid = WARM.start(words, folder=folder, environment=environment, streams=streams)
        self._child_created = True
        self._close_pipe_fds(*ends)


class Desk:
    """A user's desk: a working folder, a home, and the command. Nothing outside of it is touched."""

    is_warm = True
    """Whether a command that runs to its end is forked from a process that has imported the program."""
    is_here = False
    """Whether such a command runs in the process of the tests."""
    has_started = False
    """Whether a command was started here that the test may stop, kill, or have run beside others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir(parents=True, exist_ok=True)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = {
            **kept,
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "TMPDIR": str(self.temporary),
            "COLUMNS": "200",
        }

    def __call__(self, *words, **how) -> Finished:
        """Run the command to its end; `how` as for `start`."""
        self._has_waited()
        if self.is_here and not how:
            return self.here(*words)
        if not self.is_warm or FOR_STARTS & how.keys() or acts_at_start(how):
            with self.start(*words, **how) as running:
                return running.end()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            environment = self.environment | {"PYTHONPATH": WARM.python_path} | how
            status = WARM.run(words, folder=self.folder, environment=environment, out=out, err=err)
            finished = Finished(status, *map(_text_of, (out, err)))
        assert "Traceback" not in finished.err, finished.err
        return finished

    def here(self, *words) -> Finished:
        """Run the command to its end in this process, for what needs no process of its own."""
        umask = os.umask(0o077)  # as where a command starts
        try:
            with chdir(self.folder):
                done = CliRunner().invoke(
                    main, [*map(str, words)], env=self.environment, prog_name="precheck"
                )
        finally:
            os.umask(umask)
            structlog.reset_defaults()
            structlog.contextvars.clear_contextvars()
        assert isinstance(done.exception, SystemExit | None), done.exception
        return Finished(done.exit_code, done.stdout, done.stderr)

    def _has_waited(self):
        """Be as if the second was over in which the requests of the command before still count.

        Not where a test starts commands, which may be one of the pace of several.
        """
        if self.is_warm and not self.has_started:
            for lock in (self.folder / "state" / "payee-precheck" / "turns").glob("*.lock"):
                lock.unlink()

    def ran(self, *words) -> Finished:
        """Run the command to its end here, or copy what it left where all this lay on a desk before.

        For what a test begins with: a finished run whose requests are not looked at.
        """
        self._has_waited()
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
        lying = tuple((path.relative_to(self.folder), path.read_bytes()) for path in paths)
        key = lying, *(str(word).replace(str(self.folder), "") for word in words)
        if key in KEPT:
            finished, kept = KEPT[key]
            for path in paths:  # the command may have deleted some
                path.unlink()
            shutil.copytree(kept, self.folder, dirs_exist_ok=True)
            return finished
        finished, kept = self.here(*words), Path(tempfile.mkdtemp(prefix="kept"))
        atexit.register(shutil.rmtree, kept, ignore_errors=True)
        KEPT[key] = finished, Path(shutil.copytree(self.folder, kept / "desk"))
        return finished

    def start(
        self,
        *words,
        prefix=(),
        limits=None,
        umask=-1,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **changes,
    ) -> Running:
        """Start the command.

        Args:
            words: of the command line.
            prefix: a command that runs this one, and its words.
            limits: a function that sets limits in the child before it begins.
            umask: of the child; by default that of the tests.
            stdout: where its output goes.
            stderr: where its errors go.
            changes: of its environment.
        """
        self.has_started = True
        is_warm = self.is_warm and not (prefix or limits or umask != -1 or acts_at_start(changes))
        environment = self.environment | ({"PYTHONPATH": WARM.python_path} if is_warm else {}) | changes
        return (Forked if is_warm else Running)(
            [*map(str, words)] if is_warm else [*prefix, *COMMAND, *map(str, words)],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            umask=umask,
            text=True,
            errors="backslashreplace",
            preexec_fn=limits,  # the one way to limit a child; used where there is one thread
        )

    def file(self, name, content) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def payments(self, rows, name="payments.csv", header=HEADER, **style) -> Path:
        """Write a payment file; a row is a dict, and a field it lacks is empty."""
        path = self.folder / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, header, restval="", lineterminator="\n", **style)
            writer.writeheader()
            writer.writerows(rows)
        return path

    def outcomes(self, folder="payments.precheck", name="outcomes.csv", delimiter=","):
        """The rows of an outcome file."""
        with (self.folder / folder / name).open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file, delimiter=delimiter))

    def stable_outcomes(self, folder="payments.precheck"):
        """The rows of an outcome file without what two runs may differ in."""
        return [{key: row[key] for key in row if key not in VOLATILE} for row in self.outcomes(folder)]

    def departures(self, folder):
        """When the requests of a run left, by the client's own stamps: seconds since the epoch."""
        with closing(sqlite3.connect(self.folder / folder / "ledger.db")) as db:
            times = db.execute("SELECT time FROM intent").fetchall()
        return [datetime.fromisoformat(time).timestamp() for [time] in times]

    def configuration(self, name="mine.toml", **profiles) -> Path:
        """Write a configuration file: profile -> API -> section."""
        lines = []
        for profile, apis in profiles.items():
            for api, section in apis.items():
                lines.append(f"[profiles.{profile}.{api}]")
                # A JSON string or number is one in TOML too.
                lines += [f"{key} = {json.dumps(value)}" for key, value in section.items()]
        return self.file(name, "\n".join(lines) + "\n")

    def using(self, **apis):
        """The words that make the command use a profile of these sections."""
        return "--config", self.configuration(mine=apis), "--profile", "mine"


def _text_of(file):
    file.seek(0)
    return file.read().decode(errors="backslashreplace").replace("\r\n", "\n")


def section_in(folder, profile, api, **changes):
    """A section of a sandbox's ready configuration, with absolute paths, changed; None removes a key."""
    section = tomllib.loads((folder / "precheck.toml").read_text())["profiles"][profile][api]
    absolute = {key: str(folder / section[key]) for key in FILE_KEYS if key in section}
    return {key: value for key, value in {**section, **absolute, **changes}.items() if value is not None}


@dataclass(frozen=True)
class Sandbox:
    """A sandbox in a process of its own, with a log of what it was asked."""

    folder: Path
    url: str
    call_log: Path
    process: subprocess.Popen

    @property
    def config(self):
        return self.folder / "precheck.toml"

    def using(self, profile):
        """The words that make the command use a profile of this sandbox."""
        return "--config", self.config, "--profile", profile

    def section(self, profile="production", api="cop", **changes):
        """A section of the ready configuration, changed."""
        return section_in(self.folder, profile, api, **changes)

    def both(self, **changes):
        """The sections of both gateways."""
        return {api: self.section(api=api, **changes) for api in ("cop", "vop")}

    def calls(self, since=0):
        """What the server was asked, from the call of that number on."""
        if not self.call_log.exists():
            return []
        lines = self.call_log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")][since:]

    def questions(self, since=0):
        """Of these calls, those that are not for a token."""
        return [call for call in self.calls(since) if call["api"] != "token"]

    @property
    def call_count(self):
        return len(self.calls())

    def wait_for_calls(self, count, since):
        """Return once the server has been asked so many more questions."""
        hold_until(lambda: len(self.questions(since)) >= count)


def hold_until(holds):
    """Look at another process's files until they say so: there is no event to wait for."""
    deadline = time.monotonic() + COMMAND_MAX_S
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        threading.Event().wait(0.01)


@contextmanager
def served(folder: Path, *words) -> Iterator[Sandbox]:
    """A sandbox in a process of its own, while the block lasts."""
    folder.mkdir(parents=True)
    log = folder / "calls.jsonl"
    command = ["sandbox", "--folder", folder / "sandbox", "--call-log", log, *words]
    with (Forked if Desk.is_warm else Running)(
        [*(() if Desk.is_warm else COMMAND), *map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=dict(os.environ),
    ) as process:
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("https://"), "the sandbox did not start"
            yield Sandbox(folder / "sandbox", url, log, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(COMMAND_MAX_S)


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path / "desk")


@pytest.fixture
def in_this_process(desk):
    """For tests of what a command decides and writes: commands that run to their end start no process."""
    desk.is_here = True


@pytest.fixture(scope="session")
def desk_in():
    """`desk_in(folder)`: one more desk."""
    return Desk


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory):
    """The sandbox that most tests share. Role test is for tests with a sandbox of their own."""
    with served(tmp_path_factory.mktemp("sandbox") / "here") as running:
        yield running


@pytest.fixture(scope="session")
def serve():
    """For a test that needs a sandbox of its own: `with serve(folder, "--latency", 1) as sandbox`."""
    return served


@pytest.fixture(scope="session")
def wait_until():
    return hold_until


@pytest.fixture(scope="session")
def network_payments():
    """Rows of payments to distinct accounts of the simulated network, all fit to be checked."""

    def rows(count):
        return [
            {
                "payment_id": f"PAY-{number:05d}",
                "name": f"Invented Payee {number}",
                "account_type": "Personal",
                "sort_code": "010203",
                "account_number": f"{10_000_000 + number}",
                "amount": f"{number}.00",
                "currency": "GBP",
            }
            for number in range(1, count + 1)
        ]

    return rows
