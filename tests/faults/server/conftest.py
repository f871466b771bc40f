"""Trials: a sandbox with faults and a run against it, both real processes, and what they left behind."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipeline.sandbox import iban

COMMAND = (sys.executable, "-m", "pipeline.cli")
TRIAL_MAX_S = 120
AT_ONCE_MAX = 4  # trials; they mostly wait
HEADER = ("payment_id", "name", "account_type", "sort_code", "account_number", "iban", "amount", "currency")
PROFILE = "trial"
NO_ANSWER = {"unanswered", "deferred", "rejected"}
PROBE_WAIT_S = 0.1
"""Short, so that a server which fails for a moment is tried again within the test: five times in 3 s."""
PATHS = ("ca_file", "client_secret_file", "client_certificate", "client_key", "client_key_password_file")


@dataclass(frozen=True)
class Sandbox:
    folder: Path
    url: str
    call_log: Path

    def section(self, api, *, role="production", **changes):
        """A section of the ready configuration with absolute paths, changed; None removes a key."""
        profile = f"{role}-standard" if api == "standard" else role
        found = tomllib.loads((self.folder / "precheck.toml").read_text())["profiles"][profile]
        section = found["vop" if api == "standard" else api]
        absolute = {key: str(self.folder / section[key]) for key in PATHS if key in section}
        return {key: value for key, value in {**section, **absolute, **changes}.items() if value is not None}

    def calls(self):
        return [json.loads(line) for line in self.call_log.read_text().splitlines()]


@dataclass(frozen=True)
class Trial:
    """What to try: a file, a server, and what the command is told."""

    rows: list
    faults: tuple = ()
    apis: tuple = ("cop",)
    """Sections of the profile: cop, vop (the gateway) or standard."""
    changes: dict = field(default_factory=dict)
    """Of every section."""
    served: tuple = ()
    """Further words for the sandbox."""
    environment: dict = field(default_factory=dict)
    role: str = "production"


@dataclass(frozen=True)
class Seen:
    """What came of a trial."""

    status: int
    out: str
    err: str
    rows: list
    """The outcome file; empty where there is none."""
    calls: list
    took_s: float
    peak_bytes: int
    folder: Path

    @property
    def sentences(self):
        said = [line for line in self.err.splitlines() if line.startswith("precheck: ")]
        return [line for line in said if "SIMULATED" not in line]

    @property
    def questions(self):
        """The calls that asked about a payee, on whichever port; an empty document asks about nobody."""
        return [call for call in self.calls if call["api"] != "token" and call["byte_count"] != len("{}")]

    @property
    def token_calls(self):
        return [call for call in self.calls if call["api"] == "token"]

    @property
    def attempts(self):
        """Calls by question."""
        return Counter(call["question"] for call in self.questions if call["question"])

    def met(self, *faults):
        """The calls that met any of these faults."""
        return [call for call in self.calls if set(call["faults"]) & set(faults)]

    def within(self, start, end):
        """Calls about a payee that arrived between two moments of the server's monotonic clock."""
        return [call for call in self.questions if start < call["monotonic"] < end]

    def codes(self):
        """Outcome and code by payment."""
        return {row["payment_id"]: (row["check_outcome"], row["check_code"]) for row in self.rows}

    def wrong(self, truth):
        """Payments that are said to have an answer which is not the true one; no answer is never wrong."""
        answers = {name: found for name, found in self.codes().items() if found[0] not in NO_ANSWER}
        return [name for name, found in answers.items() if found != truth[name]]

    def is_sound(self, truth):
        """Whether nothing is wrong, nothing is lost, and nothing crashed."""
        is_whole = not self.rows or set(self.codes()) == set(truth)
        return not self.wrong(truth) and is_whole and "Traceback" not in self.err


@contextmanager
def served(folder, *words):
    """A sandbox in a process of its own, while the block lasts."""
    folder.mkdir(parents=True)
    log = folder / "calls.jsonl"
    command = [*COMMAND, "sandbox", "--folder", folder / "sandbox", "--call-log", log, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("https://"), process.stderr.read()
            yield Sandbox(folder / "sandbox", url, log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(TRIAL_MAX_S)


def write_payments(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADER, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_configuration(path, sections):
    lines = []
    for api, section in sections.items():
        lines.append(f"[profiles.{PROFILE}.{'vop' if api == 'standard' else api}]")
        # A JSON string or number is one in TOML too.
        lines += [f"{key} = {json.dumps(value)}" for key, value in section.items()]
    path.write_text("\n".join(lines) + "\n")


def end(process):
    """Wait for a command; the largest memory that it held, in bytes."""
    peak_kib, status = 0, Path(f"/proc/{process.pid}/status")
    deadline = time.monotonic() + TRIAL_MAX_S
    while process.poll() is None:
        assert time.monotonic() < deadline, "the command did not end"
        try:
            found = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        except OSError:
            found = []
        peak_kib = max([peak_kib, *(int(line.split()[1]) for line in found)])
        threading.Event().wait(0.02)
    return peak_kib * 1024


def execute(folder, words, environment):
    """Run the command in a folder; status, standard output, standard error, seconds, peak memory."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    own = {
        "HOME": str(folder / "home"),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "COLUMNS": "200",
    }
    (folder / "home").mkdir(exist_ok=True)
    started = time.monotonic()
    with (folder / "out.txt").open("w") as out, (folder / "err.txt").open("w") as err:
        process = subprocess.Popen(
            [*COMMAND, *map(str, words)],
            cwd=folder,
            env={**kept, **own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        try:
            peak_bytes = end(process)
        finally:
            process.kill()
            process.wait()
    took_s = time.monotonic() - started
    said = (folder / "out.txt").read_text(), (folder / "err.txt").read_text()
    return process.returncode, *said, took_s, peak_bytes


def attempt(folder, trial, sandbox):
    """One command against a sandbox that is served."""
    write_payments(folder / "payments.csv", trial.rows)
    changes = {"probe_wait_s": PROBE_WAIT_S, **trial.changes}
    sections = {api: sandbox.section(api, role=trial.role, **changes) for api in trial.apis}
    write_configuration(folder / "trial.toml", sections)
    words = ["run", "payments.csv", "--config", "trial.toml", "--profile", PROFILE]
    status, out, err, took_s, peak_bytes = execute(folder, words, trial.environment)
    path = folder / "payments.precheck" / "outcomes.csv"
    rows = []
    if path.exists():
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    return Seen(status, out, err, rows, sandbox.calls(), took_s, peak_bytes, folder)


def try_one(folder, trial):
    chosen = [word for fault in trial.faults for word in ("--fault", fault)]
    with served(folder / "server", *chosen, *trial.served) as sandbox:
        return attempt(folder, trial, sandbox)


def uk_row(number):
    """A payment to an account of the simulated network, of a bank and a branch of its own."""
    return {
        "payment_id": f"UK-{number:05d}",
        "name": f"Invented Payee {number}",
        "account_type": "Personal",
        "sort_code": f"{10_000 + number % 90 + 100 * (number // 90):06d}",
        "account_number": f"{10_000_000 + number}",
        "amount": f"{number}.00",
        "currency": "GBP",
    }


def iban_row(number):
    return {
        "payment_id": f"EU-{number:05d}",
        "name": f"Invented Payee {number}",
        "iban": iban.compose("NL", f"RABO{number:010d}"),
        "amount": f"{number}.00",
        "currency": "EUR",
    }


@dataclass(frozen=True)
class Lab:
    """Where trials are made: a folder, and the truth about every row that there is."""

    folder: Path
    truth: dict

    @staticmethod
    def uk_rows(count):
        """So many payments with sort code and account number."""
        return [uk_row(number) for number in range(1, count + 1)]

    @staticmethod
    def iban_rows(count):
        """So many payments with an IBAN."""
        return [iban_row(number) for number in range(1, count + 1)]

    def truth_of(self, rows):
        return {row["payment_id"]: self.truth[row["payment_id"]] for row in rows}

    def try_out(self, **trials):
        """Trials by name -> what came of each; some go on at a time."""
        seen = self.several(lambda name: try_one(self.folder / name, trials[name]), trials)
        return dict(zip(trials, seen, strict=True))

    def served(self, name, *words):
        """A sandbox for several commands, while the block lasts."""
        return served(self.folder / name, *words)

    def attempt(self, name, trial, sandbox):
        """One command against a sandbox that is served; the same name again goes on in the same folder."""
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        return attempt(self.folder / name, trial, sandbox)

    @staticmethod
    def consult(seen):
        """What `precheck doctor` says about the profile of a run before: its exit, and its words."""
        words = ["doctor", "--config", "trial.toml", "--profile", PROFILE]
        status, _, err, _, _ = execute(seen.folder, words, {"COLUMNS": "1000"})
        return status, err

    @staticmethod
    def several(do, items):
        """Do the same with each of several things, some of them at a time; a list in the same order."""
        with ThreadPoolExecutor(AT_ONCE_MAX) as pool:
            return list(pool.map(do, items))


@pytest.fixture(scope="session")
def truth(tmp_path_factory):
    """What a server without faults answers: outcome and code by payment."""
    folder = tmp_path_factory.mktemp("truth")
    quick = {"rate_per_s": 1000}
    trials = {
        "uk": Trial([*map(uk_row, range(1, 401))], apis=("cop",), changes=quick),
        "iban": Trial([*map(iban_row, range(1, 101))], apis=("vop",), changes=quick),
    }
    uk, european = Lab.several(lambda name: try_one(folder / name, trials[name]), trials)
    assert (uk.status, european.status) == (0, 0), uk.err + european.err
    codes = {**uk.codes(), **european.codes()}
    # Nobody is told a name that matches, so that every match is a false one.
    assert {outcome for outcome, _ in codes.values()} <= {"no_match", "not_possible"}
    return codes


@pytest.fixture
def lab(tmp_path, truth):
    return Lab(tmp_path, truth)


@pytest.fixture(scope="session")
def a_trial():
    return Trial
