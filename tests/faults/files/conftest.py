"""The real command in a folder of its own, and a bank of the test's own that remembers every byte it got."""

import asyncio
import csv
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

COMMAND = (sys.executable, "-m", "pipeline.cli")
COMMAND_MAX_S = 120
HEADER = ("payment_id", "name", "account_type", "sort_code", "account_number", "iban", "amount", "currency")
SECRET = "canary-secret-77aa"
TOKEN = "canary-token-5f1d"

# A small process between, because the peak of a child counts the memory of whoever forks it.
_MEASURED = """
import json, os, resource, subprocess, sys
limit, mask = int(sys.argv[1]), int(sys.argv[2])
os.umask(mask)
if limit:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
done = subprocess.run(sys.argv[3:], stdin=subprocess.DEVNULL, capture_output=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
text = [said.decode(errors="backslashreplace") for said in (done.stdout, done.stderr)]
print(json.dumps([done.returncode, *text, peak]))
"""


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    status: int
    out: str
    err: str
    peak_bytes: int
    """Of memory, resident, of the command or one of its children."""

    @property
    def sentences(self):
        said = [line for line in self.err.splitlines() if line.startswith("precheck: ")]
        return [line for line in said if "SIMULATED" not in line]

    @property
    def is_one_sentence_about_the_file(self):
        return self.status == 65 and len(self.sentences) == 1 and "Traceback" not in self.err


class Desk:
    """A user's desk: a working folder, a home, and the command. Nothing outside of it is touched."""

    def __init__(self, folder):
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        self.environment = {
            **kept,
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "TMPDIR": str(self.temporary),
            "COLUMNS": "200",
        }

    def __call__(self, *words, memory_max_bytes=0, umask=0o022, **changes):
        """Run the command to its end, in little memory if so said; `changes` are of the environment."""
        limits = (str(memory_max_bytes), str(umask))
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, *limits, *COMMAND, *map(str, words)],
            cwd=self.folder,
            env=self.environment | changes,
            stdout=subprocess.PIPE,
            timeout=COMMAND_MAX_S,
            check=True,
        )
        return Finished(*json.loads(done.stdout))

    def start(self, *words, umask=0o022, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **changes):
        """Start the command."""
        return subprocess.Popen(
            [*COMMAND, *map(str, words)],
            cwd=self.folder,
            env=self.environment | changes,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            umask=umask,
        )

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def payments(self, rows, name="payments.csv", header=HEADER):
        """Write a payment file; a row is a dict, and a field it lacks is empty."""
        path = self.folder / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, header, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return path

    def rows(self, folder, name="outcomes.csv"):
        with (self.folder / folder / name).open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file))

    def cells(self, folder, name):
        """Every cell of a file, the headers too."""
        with (self.folder / folder / name).open(newline="", encoding="utf-8-sig") as file:
            return [cell for row in csv.reader(file) for cell in row]


@dataclass
class Bank:
    """A server that answers as the test says, and what it was asked."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    """As they came over the wire."""

    @property
    def questions(self):
        return [json.loads(body) for body in self.bodies]

    @property
    def names(self):
        return [question["data"]["name"] for question in self.questions if "data" in question] + [
            question["party"]["name"] for question in self.questions if "party" in question
        ]

    @property
    def accounts(self):
        return [question["data"]["identification"] for question in self.questions if "data" in question] + [
            question["partyAccount"]["iban"] for question in self.questions if "party" in question
        ]


CORRELATION = ("x-fapi-interaction-id", "X-Request-ID")


def replied(request, body, status=200):
    """A reply with its correlation id."""
    echo = {name: value for name, value in request.headers.items() if name in CORRELATION}
    return web.json_response(body, status=status, headers=echo)


def verdict(request, code, name=None):
    """The same verdict of whichever API was asked; MTCH is a match for both."""
    if "copgateway" not in request.path:
        return replied(request, {"partyNameMatch": code} | ({} if name is None else {"matchedName": name}))
    report = {"matched": True} if code == "MTCH" else {"matched": False, "reasonCode": code}
    return replied(
        request, {"data": {"verificationReport": report | ({} if name is None else {"name": name})}}
    )


async def matches(request, _body):
    return verdict(request, "MTCH")


@contextmanager
def bank_at(folder, handler):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server_ec.pem")
    context.load_verify_locations(folder / "qwac_ca.pem")
    context.verify_mode = ssl.CERT_OPTIONAL
    bank, is_ready, inside = Bank(), threading.Event(), []

    async def answer(request):
        if request.path == "/token":
            return web.json_response({"access_token": TOKEN, "token_type": "Bearer"})
        body = await request.read()
        bank.bodies.append(body)
        return await handler(request, body)

    async def serve():
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
    bank.url = f"https://127.0.0.1:{port}"
    try:
        yield bank
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


@pytest.fixture(scope="session")
def sandbox_folder(tmp_path_factory):
    """The certificates and the configuration that a sandbox wrote before it was stopped."""
    folder = tmp_path_factory.mktemp("certificates")
    command = [*COMMAND, "sandbox", "--folder", folder / "sandbox"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        said = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.wait(COMMAND_MAX_S)
    assert said.startswith("https://"), "the sandbox did not start"
    return folder / "sandbox"


@pytest.fixture(scope="session")
def bank(sandbox_folder):
    """`with bank(handler) as running`: an async function of a request and its body answers."""
    return lambda handler=matches: bank_at(sandbox_folder, handler)


@pytest.fixture
def words(desk, sandbox_folder):
    """`words(bank)`: what makes the command ask that bank."""

    def at(bank, profile="production", **changes):
        secret = desk.folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(SECRET)
        lines = []
        for api, section in tomllib.loads((sandbox_folder / "precheck.toml").read_text())["profiles"][
            profile
        ].items():
            if not isinstance(section, dict):
                continue
            changed = {**section, "base_url": bank.url, **changes}
            if "token_url" in section:
                changed |= {"token_url": f"{bank.url}/token"}
                if "client_secret_env" not in changes:
                    changed["client_secret_file"] = str(secret)
            for key in ("ca_file", "client_certificate", "client_key", "client_key_password_file"):
                if changed.get(key) is not None:
                    changed[key] = str(sandbox_folder / changed[key])
            kept = {key: value for key, value in changed.items() if value is not None}
            lines += [f"[profiles.mine.{api}]", *(f"{key} = {json.dumps(kept[key])}" for key in kept)]
        path = desk.file("mine.toml", "\n".join(lines) + "\n")
        return "--config", path, "--profile", "mine"

    return at


@pytest.fixture(scope="session")
def key_password(sandbox_folder):
    """Of the private key of the sandbox's client certificate."""
    section = tomllib.loads((sandbox_folder / "precheck.toml").read_text())["profiles"]["production-standard"]
    return (sandbox_folder / section["vop"]["client_key_password_file"]).read_text().strip()


@pytest.fixture(scope="session")
def reply():
    """`reply(request, code, name)`: the same verdict of whichever API was asked."""
    return verdict


@pytest.fixture(scope="session")
def problem():
    """`problem(request, body, status)`: any JSON, with the correlation id."""
    return replied


@pytest.fixture
def everything(desk):
    """Every file that the command can have left behind, with its bytes."""

    def found(*but: Path):
        return {
            path: path.read_bytes()
            for path in desk.folder.rglob("*")
            if path.is_file() and not path.is_symlink() and path not in but
        }

    return found
