"""The journal: a client's connections, and its calls in order of arrival."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.sandbox.calls import Call
from pipeline.sandbox.client_hello import ClientHello
from schemas.outcomes import ApiName


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
    responder_waits_s: Mapping[ApiName, float] = field(default_factory=dict)
    """How long the gateway of each API waits for a responder."""
    has_rate: bool = False
    """True if the server has had a rate limit at any time so far."""

    def write(self, call: Call) -> None:
        """Record a call."""
        self.calls.append(call)
