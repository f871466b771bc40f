"""The real command in folders of its own, against real sandboxes, and what they left behind."""

import csv
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

COMMAND = (sys.executable, "-m", "pipeline.cli")
COMMAND_MAX_S = 90
SEED = 20301
HEADER = ("payment_id", "name", "account_type", "sort_code", "account_number", "amount", "currency")
VOLATILE = ("check_id", "check_time", "check_attempts")
"""What two runs of one file may differ in."""


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    status: int
    out: str
    err: str
    wall_s: float

    @property
    def sentences(self):
        said = [line for line in self.err.splitlines() if line.startswith("precheck: ")]
        return [line for line in said if "SIMULATED" not in line]


class Running:
    """A command that was started."""

    def __init__(self, process, started):
        self.process = process
        self._started = started

    @property
    def has_ended(self):
        return self.process.poll() is not None

    def end(self):
        try:
            out, err = self.process.communicate(timeout=COMMAND_MAX_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return Finished(self.process.returncode, out, err, time.monotonic() - self._started)

    def kill_when(self, is_time):
        """SIGKILL at that moment, unless it ends before; how it ended."""
        while not is_time() and not self.has_ended:
            threading.Event().wait(0.0005)
        self.process.kill()
        return self.end()


class Desk:
    """A user's desk: a working folder, a home, and the command. Nothing outside of it is touched."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = {
            **kept,
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "COLUMNS": "200",
        }

    def __call__(self, *words, **how) -> Finished:
        return self.start(*words, **how).end()

    def start(self, *words, prefix=(), limits: Callable[[], None] | None = None, **changes) -> Running:
        """Start the command; `prefix` goes before it, `limits` are set in the child, `changes` are of its
        environment.
        """
        process = subprocess.Popen(
            [*prefix, *COMMAND, *map(str, words)],
            cwd=self.folder,
            env=self.environment | changes,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limits,  # noqa: PLW1509 (the one way to limit a child; used where there is one thread)
        )
        return Running(process, time.monotonic())

    def payments(self, rows, name="payments.csv", header=HEADER) -> Path:
        path = self.folder / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, header, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return path

    def configuration(self, section, name="mine.toml") -> Path:
        """A configuration with one profile, `mine`; `section` is that of CoP, or one per API."""
        path = self.folder / name
        lines = []
        for api, values in (section if "cop" in section or "vop" in section else {"cop": section}).items():
            # A JSON string or number is one in TOML too.
            lines += [f"[profiles.mine.{api}]", *(f"{key} = {json.dumps(values[key])}" for key in values)]
        path.write_text("\n".join(lines) + "\n")
        return path

    def using(self, section):
        """The words for a profile with this section."""
        return "--config", self.configuration(section), "--profile", "mine"


@dataclass(frozen=True)
class Sandbox:
    """A sandbox in a process of its own, with a log of what it was asked."""

    folder: Path
    call_log: Path

    def section(self, api="cop", profile="production", **changes):
        """A section of the ready configuration with absolute paths, changed."""
        section = tomllib.loads((self.folder / "precheck.toml").read_text())["profiles"][profile][api]
        for key in ("ca_file", "client_secret_file"):
            section[key] = str(self.folder / section[key])
        return {**section, **changes}

    def both(self, **changes):
        """Sections of both gateways."""
        return {api: self.section(api, **changes) for api in ("cop", "vop")}

    def calls(self, since=0):
        """The questions that the server was asked, from the one of that number on."""
        if not self.call_log.exists():
            return []
        lines = self.call_log.read_text().splitlines(keepends=True)
        calls = [json.loads(line) for line in lines if line.endswith("\n")]
        return [call for call in calls if call["api"] != "token" and call["byte_count"] != len("{}")][since:]


@contextmanager
def served(folder: Path, *words):
    folder.mkdir(parents=True)
    log = folder / "calls.jsonl"
    command = [*COMMAND, "sandbox", "--folder", folder / "sandbox", "--call-log", log, "--seed", SEED, *words]
    with subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout.readline().startswith("https://"), "the sandbox did not start"
            yield Sandbox(folder / "sandbox", log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(COMMAND_MAX_S)


class Image(NamedTuple):
    """What a ledger held at one moment, read from a copy: to open a ledger changes it."""

    is_sound: bool
    intents: frozenset[str]
    """Correlation ids of the requests that may have left."""
    answered: frozenset[str]
    """Of these, the ids of those that brought a final answer."""
    open: frozenset[str]
    """Of these, the ids of those with neither answer nor failure."""


NOTHING = Image(is_sound=True, intents=frozenset(), answered=frozenset(), open=frozenset())


def read_ledger(folder: Path, at: Path) -> Image:
    """Copy what a run left in its folder, and read the ledger there."""
    shutil.rmtree(at, ignore_errors=True)
    if not (folder / "ledger.db").exists():
        return NOTHING
    at.mkdir()
    for name in ("ledger.db", "ledger.db-wal"):
        if (folder / name).exists():
            shutil.copy(folder / name, at / name)
    with closing(sqlite3.connect(at / "ledger.db")) as db:
        sound = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute(
            "SELECT intent.request_id, answer.intent IS NOT NULL, failure.intent IS NOT NULL FROM intent"
            " LEFT JOIN answer ON answer.intent = intent.id LEFT JOIN failure ON failure.intent = intent.id"
        ).fetchall()
    return Image(
        sound,
        frozenset(request_id for request_id, _, _ in rows),
        frozenset(request_id for request_id, is_answered, _ in rows if is_answered),
        frozenset(request_id for request_id, is_answered, has_failed in rows if not is_answered | has_failed),
    )


def stable(path: Path):
    """The rows of an outcome file, without what two runs may differ in."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [{key: row[key] for key in row if key not in VOLATILE} for row in csv.DictReader(file)]


def hold_until(holds):
    """Look at another process's files until they say so: there is no event to wait for."""
    deadline = time.monotonic() + COMMAND_MAX_S
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        threading.Event().wait(0.002)


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path / "desk")


@pytest.fixture(scope="session")
def desk_in():
    """`desk_in(folder)`: one more desk."""
    return Desk


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory):
    """The sandbox that most tests share; it answers at once."""
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
def ledger_image():
    """`ledger_image(folder, at=copy)`: what the ledger of a folder holds now."""
    return read_ledger


@pytest.fixture(scope="session")
def stable_rows():
    """`stable_rows(path)`: an outcome file as it is compared."""
    return stable


@pytest.fixture(scope="session")
def rows_of():
    """`rows_of(count)`: payments to distinct accounts of the simulated network, all fit to be checked."""

    def rows(count):
        return [
            {
                "payment_id": f"PAY-{number:06d}",
                "name": f"Invented Payee {number}",
                "account_type": "Personal",
                "sort_code": f"01{number // 10**6:04d}",
                "account_number": f"{10_000_000 + number}",
                "amount": f"{number}.00",
                "currency": "GBP",
            }
            for number in range(1, count + 1)
        ]

    return rows


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """`sample(count)`: a payment file of all kinds, with every outcome that the network gives."""
    folder = tmp_path_factory.mktemp("sample")

    def write(count):
        path = folder / f"sample_{count}.csv"
        if not path.exists():
            words = ("sandbox", "--write-payments", path, "--rows", count, "--seed", SEED)
            subprocess.run([*COMMAND, *map(str, words)], check=True, timeout=COMMAND_MAX_S)
        return path

    return write


@pytest.fixture
def chance(request):
    """A seed that is told when the test fails: run again with it by hand."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed of {request.node.name}: {seed}")  # noqa: T201 (pytest shows it for a failure)
    return random.Random(seed)


@pytest.fixture
def small_disk(tmp_path):
    """`small_disk(kib)`: a folder on a disk of that size, and how to make it larger. Needs root."""
    mounted = []

    def make(kib, name="disk"):
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs", folder],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            pytest.skip("no right to mount a small disk: run as root")
        mounted.append(folder)

        def remount(options):
            subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)

        return folder, remount

    yield make
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="session")
def file_size_limit():
    """`file_size_limit(byte_count)`: for `limits=`; the form of a full disk that needs no root."""

    def limits(byte_count):
        def set_them():
            # Without this the signal ends the process, and what is tried is another thing.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (byte_count, byte_count))

        return set_them

    return limits


@pytest.fixture(scope="session")
def clock():
    return time.monotonic
