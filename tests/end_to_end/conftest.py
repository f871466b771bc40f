"""The real command in a folder of its own, and real servers on loopback to run it against."""

import asyncio
import csv
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

COMMAND = Path(sys.executable).with_name("precheck")
COMMAND_MAX_S = 60
HEADER = ("payment_id", "name", "account_type", "sort_code", "account_number", "iban", "amount", "currency")
VOLATILE = ("check_id", "check_time", "check_attempts")
"""What two runs of one file may differ in."""


@dataclass(frozen=True)
class Finished:
    status: int
    out: str
    err: str

    @property
    def sentences(self):
        """The lines that say what is wrong, or how to go on."""
        said = [line for line in self.err.splitlines() if line.startswith("precheck: ")]
        return [line for line in said if "SIMULATED" not in line]


class Desk:
    """A user's desk: a working folder, a home, and the command. Nothing outside of it is touched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = {
            **kept,
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "COLUMNS": "200",
        }

    def __call__(self, *words, **changes) -> Finished:
        """Run the command to its end; `changes` are of the environment."""
        with self.start(*words, **changes) as process:
            return self.end(process)

    def start(self, *words, limits: Callable[[], None] | None = None, stderr=subprocess.PIPE, **changes):
        """Start the command; `limits` are set in the child before it begins."""
        return subprocess.Popen(
            [COMMAND, *map(str, words)],
            cwd=self.folder,
            env=self.environment | changes,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            preexec_fn=limits,  # noqa: PLW1509 (the one way to limit a child; pytest runs one thread here)
        )

    def end(self, process) -> Finished:
        try:
            out, err = process.communicate(timeout=COMMAND_MAX_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        assert "Traceback" not in err, err
        return Finished(process.returncode, out, err)

    def payments(self, rows, name="payments.csv", header=HEADER, **style) -> Path:
        """Write a payment file; a row is a dict, and a field it lacks is empty."""
        path = self.folder / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, header, restval="", lineterminator="\n", **style)
            writer.writeheader()
            writer.writerows(rows)
        return path

    def outcomes(self, folder="payments.precheck", delimiter=","):
        """The rows of an outcome file."""
        path = self.folder / folder / "outcomes.csv"
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file, delimiter=delimiter))

    def stable_outcomes(self, folder="payments.precheck"):
        """The rows of an outcome file without what two runs may differ in."""
        rows = self.outcomes(folder)
        return [{key: value for key, value in row.items() if key not in VOLATILE} for row in rows]

    def configuration(self, name="mine.toml", **profiles) -> Path:
        path = self.folder / name
        lines = []
        for profile, apis in profiles.items():
            for api, section in apis.items():
                lines.append(f"[profiles.{profile}.{api}]")
                # A JSON string or number is one in TOML too.
                lines += [f"{key} = {json.dumps(value)}" for key, value in section.items()]
        path.write_text("\n".join(lines) + "\n")
        return path


@dataclass(frozen=True)
class Sandbox:
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

    def calls(self, since=0):
        """What the server was asked, from the call of that number on."""
        if not self.call_log.exists():
            return []
        lines = self.call_log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")][since:]

    def questions(self, since=0):
        """Of these calls, those that ask about a payee; an empty document asks about nobody."""
        return [
            call for call in self.calls(since) if call["api"] != "token" and call["byte_count"] != len("{}")
        ]

    @property
    def call_count(self):
        return len(self.calls())

    def section(self, profile, api, **changes):
        """A section of the ready configuration with absolute paths, changed; None removes a key."""
        section = tomllib.loads(self.config.read_text())["profiles"][profile][api]
        files = ("ca_file", "client_secret_file", "client_certificate", "client_key")
        for key in (*files, "client_key_password_file"):
            if key in section:
                section[key] = str(self.folder / section[key])
        return {key: value for key, value in {**section, **changes}.items() if value is not None}

    def wait_for_calls(self, count, since):
        """Return once the server has been asked so many more questions."""
        hold_until(lambda: len(self.questions(since)) >= count)


def hold_until(holds):
    """Look at another process's files until they say so: there is no event to wait for."""
    deadline = time.monotonic() + COMMAND_MAX_S
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        threading.Event().wait(0.005)


@contextmanager
def served(folder: Path, *words) -> Iterator[Sandbox]:
    """A sandbox in a process of its own, while the block lasts."""
    folder.mkdir(parents=True)
    log = folder / "calls.jsonl"
    command = [COMMAND, "sandbox", "--folder", folder / "sandbox", "--call-log", log, *map(str, words)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder
    ) as process:
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("https://"), "the sandbox did not start"
            yield Sandbox(folder / "sandbox", url, log, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(COMMAND_MAX_S)


Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@contextmanager
def impostor(certificate: Path, handler: Handler) -> Iterator[str]:
    """A server that hands out a token and answers whatever `handler` says; its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    is_ready, inside = threading.Event(), []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/token":
            return web.json_response({"access_token": "canary-token-5f1d", "token_type": "Bearer"})
        return await handler(request)

    async def serve() -> None:
        runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        stop = asyncio.Event()
        inside.extend((runner.addresses[0][1], asyncio.get_running_loop(), stop))
        is_ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_ready.wait(COMMAND_MAX_S)
    port, loop, stop = inside
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


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
def misbehaving(sandbox):
    """`with misbehaving(handler) as url`: the certificate is the sandbox's, so its ca.pem trusts it."""

    def start(handler):
        return impostor(sandbox.folder / "server_ec.pem", handler)

    return start


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
