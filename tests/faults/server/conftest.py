"""Trials: a sandbox with faults and a run against it, both real processes, and what they left behind."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from desk import served
from measured import Measured, MeasuredDesk

from pipeline.sandbox import iban

AT_ONCE_MAX = 4  # trials; they mostly wait
NO_ANSWER = {"unanswered", "deferred", "rejected"}
PROBE_WAIT_S = 0.1
"""Short, so that a server which fails for a moment is tried again within the test: five times in 3 s."""


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

    def sections(self, sandbox):
        """The profile that the command uses: API -> section."""
        changes = {"probe_wait_s": PROBE_WAIT_S, **self.changes}
        if self.apis == ("standard",):
            return {"vop": sandbox.section(f"{self.role}-standard", "vop", **changes)}
        return {api: sandbox.section(self.role, api, **changes) for api in self.apis}


@dataclass(frozen=True)
class Seen(Measured):
    """What came of a trial."""

    rows: list
    """The outcome file; empty where there is none."""
    calls: list
    took_s: float
    ended: float
    """When the command had ended, by the clock that tells when calls arrived."""
    desk: MeasuredDesk
    using: tuple
    """The words that made the command use the profile of the trial."""

    @property
    def questions(self):
        """The calls that asked about a payee, on whichever port."""
        return [call for call in self.calls if call["api"] != "token"]

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

    @property
    def rejected(self):
        """The payments that are rejected."""
        return [name for name, (outcome, _) in self.codes().items() if outcome == "rejected"]

    def wrong(self, truth):
        """Payments that are said to have an answer which is not the true one; no answer is never wrong."""
        answers = {name: found for name, found in self.codes().items() if found[0] not in NO_ANSWER}
        return [name for name, found in answers.items() if found != truth[name]]

    def is_sound(self, truth):
        """Whether nothing is wrong, nothing is lost, and nothing crashed."""
        is_whole = not self.rows or set(self.codes()) == set(truth)
        return not self.wrong(truth) and is_whole and "Traceback" not in self.err


def attempt(folder, trial, sandbox):
    """One command against a sandbox that is served."""
    desk = MeasuredDesk(folder)
    file, using = desk.payments(trial.rows), desk.using(**trial.sections(sandbox))
    started = time.monotonic()
    finished = desk("run", file, *using, **trial.environment)
    ended = time.monotonic()
    is_written = (desk.folder / "payments.precheck" / "outcomes.csv").exists()
    rows = desk.outcomes() if is_written else []
    return Seen(
        **vars(finished),
        rows=rows,
        calls=sandbox.calls(),
        took_s=ended - started,
        ended=ended,
        desk=desk,
        using=using,
    )


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
        return attempt(self.folder / name, trial, sandbox)

    @staticmethod
    def consult(seen):
        """What `precheck doctor` says about the profile of a run before: its exit, and its words."""
        finished = seen.desk("doctor", *seen.using, COLUMNS="1000")
        return finished.status, finished.out + finished.err

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
