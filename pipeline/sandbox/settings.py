"""The settings of a sandbox and their names."""

import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.sandbox.faults.selection import Selection
from schemas.outcomes import ApiName, Environment

TENANT_ID = "5a9dbf0c-3f0e-4d0e-9b1c-7a3f52d0c001"
"""The invented tenant of the identity provider."""

TOKEN_PATH = f"/{TENANT_ID}/oauth2/v2.0/token"

DESCRIPTION_PATH = "/openapi.json"

CLIENT_IDS = {
    Environment.SANDBOX: "c0de0000-0000-4000-8000-000000000001",
    Environment.TEST: "c0de0000-0000-4000-8000-000000000002",
    Environment.PRODUCTION: "c0de0000-0000-4000-8000-000000000003",
}
SCOPES = {role: f"api://payee-verification-{role.value}/.default" for role in CLIENT_IDS}


class ServerCertificate(StrEnum):
    """The fault of the server's certificate, if any."""

    GOOD = "good"
    WRONG_AUTHORITY = "wrong-authority"  # issued by another authority than the one in ca.pem
    EXPIRED = "expired"
    WRONG_HOST = "wrong-host"  # for another host than the one that serves


class Tls(StrEnum):
    """The TLS versions and suites of the server."""

    REFERENCE = "reference"  # those of the API reference
    OLD = "1.1-only"  # TLS 1.1 and nothing later
    OTHER_SUITE = "other-suite"  # TLS 1.2 and 1.3, with suites that the reference does not list


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The settings of a sandbox."""

    folder: Path
    """Where certificates, secrets and precheck.toml are written; folder 0700, files 0600."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: a free one."""
    seed: int = 1
    """From which the simulated network is computed."""
    token_life_s: int = 3600
    latency_s: float = 0.0
    """Median of a log-normal wait added to every answer; 0 for none."""
    latency_spread: float = 0.73
    """Standard deviation of that wait's logarithm. With 0.73 the 95th percentile is 3.3 times the median,
    with 0 every answer takes the same time."""
    rehearse: bool = False
    """True if unknown accounts get an invented answer in a usual mix, instead of AC01 and NOAP."""
    responder_faults: bool = False
    """True if banks that can misbehave do: slow, failing, silent, broken TLS."""
    cop_responder_wait_s: float = 7.0
    vop_responder_wait_s: float = 5.0
    daily_cap: int = 50
    """Requests a UTC day and client in the role test."""
    rate_per_s_max: int | None = None
    """Requests in any one second and client, beyond which the answer is 429; an addition of ours."""
    clock_skew_max_s: float = 300.0
    """How far X-Request-Timestamp may be from the time here, either way; a choice of ours."""
    request_wait_s: float = 10.0
    """How long a client may take for its TLS handshake, for the head of a request, and for its body."""
    call_log: Path | None = None
    """Where one JSON line per request is appended."""
    client_certificate_required: bool = False
    """True if the TLS handshake itself refuses a client without a valid certificate."""
    server_certificate: ServerCertificate = ServerCertificate.GOOD
    tls: Tls = Tls.REFERENCE
    faults: tuple[Selection, ...] = ()
    """What goes wrong, and for whom."""

    verdicts: tuple[Path, ...] = ()
    """Where the verdict on the client is written when the sandbox ends: .json, .xml (JUnit), else text."""
    scenario: str | None = None
    """The name of the scenario that is served."""
    has_control: bool = False
    """True if there is a control address in the folder."""

    def responder_wait_s(self, api: ApiName) -> float:
        """The gateway's timeout for a responder of an API, then 504."""
        return self.cop_responder_wait_s if api is ApiName.COP else self.vop_responder_wait_s


@dataclass(slots=True)
class Clock:
    """The time of this machine, or one that is off on purpose."""

    ahead_s: float = 0.0  # how far ahead of the machine's clock it goes; negative: behind

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self.ahead_s
