"""A real sandbox on a free loopback port, and a client that knows nothing but HTTP and TLS."""

import asyncio
import http.client
import json
import ssl
import threading
import tomllib
import urllib.parse
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.sandbox.server import SandboxSettings, serve

try:  # the loop on which the command serves
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop

READY_MAX_S = 30


def timestamp(ahead_s=0):
    """X-Request-Timestamp of a client whose clock is so far ahead."""
    moment = datetime.now(UTC) + timedelta(seconds=ahead_s)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict
    content: bytes

    @property
    def document(self):
        return json.loads(self.content)


@dataclass(frozen=True)
class Sandbox:
    url: str
    folder: Path

    @property
    def address(self):
        parts = urllib.parse.urlsplit(self.url)
        return parts.hostname, parts.port

    @property
    def profiles(self):
        return tomllib.loads((self.folder / "precheck.toml").read_text())["profiles"]

    def context(self, *, certificate=None, key=None, password=None):
        """A TLS context that trusts the sandbox and, where asked to, presents a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.folder / "ca.pem")
        if certificate is not None:
            context.load_cert_chain(certificate, key, password)
        return context

    def member_context(self):
        """The context of the participant for whom the sandbox issued a certificate."""
        passphrase = (self.folder / "client.passphrase").read_text()
        return self.context(
            certificate=self.folder / "client.pem", key=self.folder / "client.key", password=passphrase
        )

    def send(self, method, path, body=None, headers=None, context=None):
        connection = http.client.HTTPSConnection(*self.address, context=context or self.context(), timeout=20)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def form(self, role="sandbox", **changes):
        section = self.profiles[role]["cop"]
        fields = {
            "grant_type": "client_credentials",
            "client_id": section["client_id"],
            "client_secret": (self.folder / section["client_secret_file"]).read_text(),
            "scope": section["scope"],
            **changes,
        }
        return urllib.parse.urlencode({key: value for key, value in fields.items() if value is not None})

    def token_path(self):
        return urllib.parse.urlsplit(self.profiles["sandbox"]["cop"]["token_url"]).path

    def ask_token(self, method="POST", body=None, query="", headers=None):
        return self.send(
            method,
            self.token_path() + query,
            self.form() if body is None else body,
            headers or {"Content-Type": "application/x-www-form-urlencoded"},
        )

    def token(self, role="sandbox"):
        reply = self.ask_token(body=self.form(role))
        assert reply.status == 200
        return reply.document["access_token"]

    def check(self, path, document, *, token=None, context=None, **changes):
        """Send a good request; a header that is changed to None is left out."""
        correlation = "x-fapi-interaction-id" if "/copgateway/" in path else "X-Request-ID"
        headers = {
            correlation: str(uuid.uuid4()),
            "X-Request-Timestamp": timestamp(),
            "Content-Type": "application/json",
            "Authorization": f"Bearer {token}" if token else None,
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        body = document if isinstance(document, str | bytes) else json.dumps(document)
        sent = {name: value for name, value in headers.items() if value is not None}
        return self.send("POST", path, body, sent, context)


@contextmanager
def served(folder, **changes):
    """A sandbox that serves while the block lasts."""
    is_ready, urls = threading.Event(), []
    loop = new_event_loop()
    stop = asyncio.Event()

    def announce(url):
        urls.append(url)
        is_ready.set()

    def work():
        try:
            loop.run_until_complete(
                serve(SandboxSettings(folder=folder, **changes), announce=announce, stop=stop)
            )
        finally:
            is_ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert is_ready.wait(READY_MAX_S)
        assert urls, "the sandbox did not start"
        yield Sandbox(urls[0], folder)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory):
    with served(tmp_path_factory.mktemp("sandbox") / "folder") as running:
        yield running


@pytest.fixture(scope="session")
def serving():
    """For a test that needs a sandbox of its own: `with serving(folder, ...) as sandbox`."""
    return served


@pytest.fixture(scope="session")
def token(sandbox):
    return sandbox.token()


@pytest.fixture(scope="session")
def stamp():
    """`stamp(ahead_s)`: X-Request-Timestamp of a client whose clock is so far ahead."""
    return timestamp
