"""A bank of the test's own that remembers every byte it got, and commands that are measured."""

import json
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from desk import section_in, served
from impostors import impostor
from measured import MeasuredDesk

SECRET = "canary-secret-77aa"


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
    bank = Bank()

    async def answer(request):
        body = await request.read()
        bank.bodies.append(body)
        return await handler(request, body)

    with impostor(folder, answer) as bank.url:
        yield bank


@pytest.fixture
def desk(tmp_path):
    return MeasuredDesk(tmp_path / "desk")


@pytest.fixture(scope="session")
def sandbox_folder(tmp_path_factory):
    """The certificates and the configuration that a sandbox wrote before it was stopped."""
    with served(tmp_path_factory.mktemp("certificates") / "here") as sandbox:
        return sandbox.folder


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
        sections = {}
        for api in ("vop",) if profile.endswith("standard") else ("cop", "vop"):
            section = section_in(sandbox_folder, profile, api, base_url=bank.url)
            if "token_url" in section:
                section |= {"token_url": f"{bank.url}/token", "client_secret_file": str(secret)}
            changed = section | changes
            sections[api] = {key: value for key, value in changed.items() if value is not None}
        return desk.using(**sections)

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
