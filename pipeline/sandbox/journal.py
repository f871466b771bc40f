"""A client's connections and calls: the journal for the verdict, and a log for tests to count."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pipeline.files.disk_errors import writing
from pipeline.sandbox.client_hello import ClientHello
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

TOKEN = "token"  # noqa: S105 (a word in the log)
"""Logged for the token endpoint, in place of an API's name."""


@dataclass(slots=True)
class Call:
    """What is known of one request; its log line contains no name and no account number."""

    time: float  # arrival, in seconds since the epoch
    monotonic: float  # arrival, in monotonic seconds
    path: str  # the path as in the reference, or its harmless part; empty if the request was not HTTP
    http_version: str
    method: str = ""
    connection: int = 0  # the number of its connection, counted from 1
    waiting_count: int = 0  # requests sent on this connection before this one was answered
    role: str | None = None
    api: str | None = None  # an ApiName, or TOKEN; None for an unknown path
    status: int | None = None  # None if the client left before the answer, or a fault suppressed it
    refused: str | None = None  # why it was refused, a word of `problems.Refusal`
    answered: float | None = None  # monotonic seconds when the answer was ready
    is_abandoned: bool = False  # true if the client had left by the time of the answer
    retry_after_s: float | None = None  # the pause requested in the answer
    token: str | None = None  # hash of the access token: equal hashes mean the same token
    request_id: str | None = None  # the correlation id, if the request has a valid one
    question: str | None = None  # SHA-256 of the question: equal hashes mean the same question
    byte_count: int | None = None  # length of the body, as the client declared it
    has_cookie: bool = False  # true if the client sent a cookie
    faults: tuple[str, ...] = ()  # names of the faults applied to it
    account: str | None = None  # the account asked about, for faults that affect one account; not logged
    headers: dict[str, str] = field(default_factory=dict)  # response headers for this request; not logged

    @property
    def asked(self) -> ApiName | None:
        """The API of a name check; None for other requests."""
        return None if self.api is None or self.api == TOKEN else ApiName(self.api)


@dataclass(slots=True)
class Visit:
    """One connection."""

    number: int = 0  # counted from 1
    port: str = ""  # the port's TLS fault; empty for the serving port
    started: float = field(default_factory=time.monotonic)
    lasted_until: float | None = None  # monotonic seconds; None while it is open
    hello: ClientHello | None = None
    version: str | None = None  # negotiated TLS version; None if the handshake failed
    suite: str | None = None
    failure: str | None = None  # OpenSSL's name of the handshake failure
    is_plain_http: bool = False


@dataclass(slots=True)
class Journal:
    """All connections and calls so far, at about 1 KiB per call."""

    visits: list[Visit] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    responder_waits_s: Mapping[ApiName, float] = field(default_factory=dict)  # waits by each gateway
    has_rate: bool = False  # true if the server has had a rate limit at any time so far

    @property
    def checks(self) -> list[Call]:
        """Name checks, in order of arrival."""
        return [call for call in self.calls if call.asked is not None]

    def write(self, call: Call) -> None:
        """Record a call."""
        self.calls.append(call)


_LOGGED = (
    "time", "monotonic", "connection", "waiting_count", "role", "api", "method", "path", "status", "refused",
    "answered", "is_abandoned", "retry_after_s", "request_id", "question", "token", "http_version",
    "byte_count", "has_cookie", "faults",
)  # fmt: skip
"""The attributes of a call in its log line."""
_KEYS = {"waiting_count": "waiting", "is_abandoned": "abandoned", "has_cookie": "cookie"}
"""Their keys, if other than their names."""


class CallLog:
    """Appends calls to a log file immediately."""

    def __init__(self, path: Path) -> None:
        """Open the log, mode 0600, for appending (OutputError, DiskError: it cannot be opened)."""
        with writing(path, otherwise=Sentence("advice.other_file")):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def write(self, call: Call) -> None:
        """Append one call, in a single write."""
        line = {_KEYS.get(name, name): getattr(call, name) for name in _LOGGED}
        os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")


def fingerprint(question: bytes) -> str:
    """Return the SHA-256 of a question, in hexadecimal."""
    return hashlib.sha256(question).hexdigest()
