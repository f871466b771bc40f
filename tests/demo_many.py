"""`make demo-many`: one payment file, one account of a provider, three processes, one of which is killed.

A real PostgreSQL is started in a folder of its own, and the sandbox as the provider. `precheck run` and two
workers share the questions, each as on a host of its own: only the database and the work folder connect them.
Then one worker is killed with SIGKILL. What is left is counted: in the outcomes, in the database, and at the
server that was asked.
"""

import argparse
import csv
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from postgres import PostgresServer, programs

PRECHECK = Path(sys.executable).with_name("precheck")
SHORT_LEASE = Path(__file__).with_name("short_lease.py")
OWNER, RUNNER, DATABASE, PROFILE = "precheck_owner", "precheck", "precheck", "many"
RATE_PER_S = {"cop": 20, "vop": 20}
"""Agreed with the provider, for all processes together."""
AGREED = sum(RATE_PER_S.values())
SERVER_PER_S_MAX = 50
"""What the server takes: requests arrive less evenly than they leave."""
IN_FLIGHT_MAX = 16
LATENCY_S = 0.3
TIME_MAX_S = 300.0


class Demo:
    """The hosts, the provider and the database, and how long all this may take."""

    def __init__(self, folder: Path, stack: ExitStack, lease_s: float | None) -> None:
        self.folder = folder
        self.config = folder / "sandbox" / "many.toml"
        self.call_log = folder / "calls.jsonl"
        self._stack = stack
        self._prefix = [] if lease_s is None else [sys.executable, SHORT_LEASE]
        self._began = time.monotonic()
        self._environment = {
            name: os.environ[name] for name in ("PATH", "LANG", "HOME", "TMPDIR") if name in os.environ
        }
        if lease_s is not None:
            self._environment["PRECHECK_TEST_LEASE_S"] = str(lease_s)

    def tell(self, sentence: str) -> None:
        """Print what happens, and when."""
        print(f"{time.monotonic() - self._began:5.1f} s  {sentence}", flush=True)

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Look again and again; end the demo where it takes too long."""
        while not holds():
            if time.monotonic() - self._began > TIME_MAX_S:
                sys.exit(f"demo-many: {what} took too long")
            time.sleep(0.05)

    def start(self, host: str, *words: str | Path) -> subprocess.Popen[str]:
        """Start the command on a host of this name: its own state, its own log."""
        home = self.folder / host
        home.mkdir(exist_ok=True)
        with (home / "log").open("a") as log:
            process = subprocess.Popen(
                [*self._prefix, PRECHECK, *map(str, words)],
                cwd=home,
                env={**self._environment, "XDG_STATE_HOME": str(home / "state")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._stack.callback(_end, process)
        return process

    def run(self, host: str, *words: str | Path) -> None:
        """Run the command to its end, which has to be a good one."""
        self.ended(host, self.start(host, *words))

    def ended(self, host: str, process: subprocess.Popen[str], statuses: tuple[int, ...] = (0,)) -> None:
        """Wait for its end, which has to be one of these."""
        self.wait_until(lambda: process.poll() is not None, host)
        if process.returncode not in statuses:
            sys.exit(f"demo-many: {host} ended with {process.returncode}\n{self.log(host)}")

    def log(self, host: str) -> str:
        """What a host printed."""
        return (self.folder / host / "log").read_text()

    def calls(self) -> list[dict]:
        """The questions that the server looked at so far."""
        if not self.call_log.exists():
            return []
        lines = self.call_log.read_text().splitlines(keepends=True)
        calls = [json.loads(line) for line in lines if line.endswith("\n")]
        return [call for call in calls if call["question"] is not None]


def main() -> None:
    """Show it."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--rows", type=int, default=600, help="payments in the file")
    words.add_argument(
        "--lease", type=float, metavar="SECONDS", help="how long a dead process holds questions"
    )
    said = words.parse_args()
    row_count = said.rows
    if (found := programs()) is None:
        sys.exit("demo-many: no PostgreSQL here; `make tools` installs it on Debian")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="precheck-demo-")))
        demo = Demo(folder, stack, said.lease)
        database = stack.enter_context(_postgres(found, demo))
        sandbox = _provider(demo, database.url(DATABASE, RUNNER))
        demo.run("admin", "sandbox", "--write-payments", folder / "payments.csv", "--rows", str(row_count))
        demo.run("admin", "ledger", "init", *_profile(demo), "--as", OWNER, "--grant-to", RUNNER)
        demo.tell(f"precheck ledger init: {demo.log('admin').splitlines()[-1].removeprefix('precheck: ')}")
        _ask(demo, row_count)
        sandbox.send_signal(signal.SIGTERM)
        demo.ended("provider", sandbox)
        with database.connect(DATABASE) as db:
            wrong = _counted(demo, db, row_count)
    print("All is removed again: database, sandbox, files.")
    sys.exit("demo-many: " + "; ".join(wrong) if wrong else 0)


@contextmanager
def _postgres(found: Path, demo: Demo) -> Iterator[PostgresServer]:
    """A server with an empty database and the two roles."""
    server = PostgresServer(found)
    try:
        server.start()
        with server.connect() as db:
            for role in (OWNER, RUNNER):
                db.execute(f"CREATE ROLE {role} LOGIN")
            db.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
        demo.tell(f"PostgreSQL {found.parent.name} listens on 127.0.0.1:{server.port}")
        yield server
    finally:
        server.close()


def _provider(demo: Demo, ledger: str) -> subprocess.Popen[str]:
    """The sandbox, and a profile of it with the ledger that all hosts share."""
    sandbox = demo.start(
        "provider",
        *("sandbox", "--folder", demo.config.parent, "--call-log", demo.call_log),
        *("--latency", str(LATENCY_S), "--rate-max", str(SERVER_PER_S_MAX)),
        *("--verdict", demo.folder / "verdict.json"),
    )
    assert sandbox.stdout is not None
    url = sandbox.stdout.readline().strip()
    if not url.startswith("https://"):
        sys.exit(f"demo-many: the sandbox did not start\n{demo.log('provider')}")
    key = demo.config.with_name("ledger.key")
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32))
    ready = tomllib.loads(demo.config.with_name("precheck.toml").read_text())["profiles"]["production"]
    lines = [f"[profiles.{PROFILE}]", f'ledger = "{ledger}"', 'ledger_key_file = "ledger.key"']
    for api, rate_per_s in RATE_PER_S.items():
        section = ready[api] | {"rate_per_s": rate_per_s, "in_flight_max": IN_FLIGHT_MAX}
        lines += [f"[profiles.{PROFILE}.{api}]", *(f"{key} = {json.dumps(section[key])}" for key in section)]
    demo.config.write_text("\n".join(lines) + "\n")
    demo.tell(f"the sandbox is the provider: {SERVER_PER_S_MAX} requests a second, answered in {LATENCY_S} s")
    return sandbox


def _profile(demo: Demo) -> tuple[str | Path, ...]:
    return "--profile", PROFILE, "--config", demo.config


def _ask(demo: Demo, row_count: int) -> None:
    """A run and two workers; one of them is killed on the way."""
    work = demo.folder / "work"
    work.mkdir(mode=0o700)
    words = (*_profile(demo), "--work", work)
    workers = {host: demo.start(host, "worker", *words) for host in ("host-2", "host-3")}
    run = demo.start("host-1", "run", demo.folder / "payments.csv", "--out", demo.folder / "outcomes", *words)
    demo.tell(f"host-1 runs a file of {row_count} rows, host-2 and host-3 help; agreed are {AGREED} a second")
    third = row_count // 3
    demo.wait_until(lambda: len(demo.calls()) > third or run.poll() is not None, "a third of the file")
    if workers["host-2"].poll() is not None:
        sys.exit(f"demo-many: host-2 had ended\n{demo.log('host-2')}")
    workers["host-2"].kill()
    workers["host-2"].wait()
    demo.tell(f"host-2 is killed with -9, after {len(demo.calls())} requests of all hosts")
    demo.ended("host-1", run)
    demo.tell("the run has ended")
    workers["host-3"].send_signal(signal.SIGTERM)
    demo.ended("host-3", workers["host-3"])


def _counted(demo: Demo, db: psycopg.Connection, row_count: int) -> list[str]:
    """Count what is left, print it, and return what is not as it should be."""
    with (demo.folder / "outcomes" / "outcomes.csv").open(newline="") as file:
        outcomes = Counter(row["check_outcome"] for row in csv.DictReader(file))
    calls = demo.calls()
    attempts = defaultdict(list)
    for call in sorted(calls, key=lambda call: call["monotonic"]):
        attempts[call["question"]].append(call["request_id"])
    answered = {
        request_id
        for [request_id] in db.execute(
            "SELECT request_id FROM precheck.intent JOIN precheck.answer USING (run, question, attempt)"
        )
    }
    twice = [ids for ids in attempts.values() if len(ids) > 1]
    repeated = [ids for ids in attempts.values() if answered & set(ids[:-1])]
    most = _most_in_a_second([call["monotonic"] for call in calls])
    verdict = json.loads((demo.folder / "verdict.json").read_text())
    in_words = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(f"{row_count} rows, {sum(outcomes.values())} outcomes: {in_words}")
    print(f"{len(attempts)} questions, {len(answered)} answers on record, {len(calls)} requests")
    print(f"{len(twice)} questions were on their way when host-2 was killed, and were asked again")
    print(f"{len(repeated)} questions were asked again after their answer was on record")
    print(f"at most {most} requests in any second; agreed were {AGREED}, the server takes {SERVER_PER_S_MAX}")
    kept, broken = (verdict["counts"][standing] for standing in ("kept", "broken"))
    print(f"verdict of the sandbox: {kept} rules kept, {broken} broken")
    expected = {
        f"{row_count} rows and {sum(outcomes.values())} outcomes": sum(outcomes.values()) == row_count,
        "rows without an answer": not {"unanswered", "deferred"} & outcomes.keys(),
        "not one answer a question": len(answered) == len(attempts),
        "a question was asked again after its answer": not repeated,
        "more was asked again than was in flight": len(twice) <= 2 * IN_FLIGHT_MAX,
        "more requests than agreed": most <= SERVER_PER_S_MAX,
        "the sandbox's verdict": verdict["passed"],
    }
    return [what for what, holds in expected.items() if not holds]


def _most_in_a_second(times: list[float]) -> int:
    times, most, start = sorted(times), 0, 0
    for end, at in enumerate(times):
        while at - times[start] >= 1:
            start += 1
        most = max(most, end - start + 1)
    return most


def _end(process: subprocess.Popen[str]) -> None:
    """Whatever became of it, it is gone."""
    process.kill()
    process.communicate()


if __name__ == "__main__":
    main()
