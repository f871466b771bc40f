"""The interface of the three name-check APIs, and the settings of a sandbox.

Source: API reference, "Endpoints", "Request headers" and "Servers".
"""

import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.sandbox.faults.selection import Selection
from schemas.cop import NameVerificationRequest
from schemas.outcomes import ApiName, Environment
from schemas.vop import GatewayRequest, StandardRequest

TOKEN_PATH = "/5a9dbf0c-3f0e-4d0e-9b1c-7a3f52d0c001/oauth2/v2.0/token"  # noqa: S105 (of an invented tenant)
DESCRIPTION_PATH = "/openapi.json"
CLIENT_IDS = {
    Environment.SANDBOX: "c0de0000-0000-4000-8000-000000000001",
    Environment.TEST: "c0de0000-0000-4000-8000-000000000002",
    Environment.PRODUCTION: "c0de0000-0000-4000-8000-000000000003",
}
REQUESTING_BIC = "TREZFRP0XXX"  # an invented BIC of the participant in the client certificate
SCOPES = {role: f"api://payee-verification-{role.value}/.default" for role in CLIENT_IDS}

Question = NameVerificationRequest | GatewayRequest


@dataclass(frozen=True, slots=True)
class NameCheckApi:
    """One of the three APIs."""

    name: ApiName
    path: str  # relative to the base URL of a server
    correlation_header: str
    document: type[Question]
    roles: tuple[Environment, ...]  # the servers that offer it


APIS = (
    NameCheckApi(
        ApiName.COP,
        "/copgateway/v1.0/confirmation-payee/name-verification",
        "x-fapi-interaction-id",
        NameVerificationRequest,
        (Environment.SANDBOX, Environment.TEST, Environment.PRODUCTION),
    ),
    NameCheckApi(
        ApiName.VOP_GATEWAY,
        "/vopgateway/v1/payee-verifications",
        "X-Request-ID",
        GatewayRequest,
        (Environment.SANDBOX, Environment.PRODUCTION),
    ),
    NameCheckApi(
        ApiName.VOP_STANDARD,
        "/vop/v1/payee-verifications",
        "X-Request-ID",
        StandardRequest,
        (Environment.SANDBOX, Environment.PRODUCTION),
    ),
)


class ServerCertificate(StrEnum):
    """What is wrong with the server's certificate, if anything."""

    GOOD = "good"
    WRONG_AUTHORITY = "wrong-authority"  # by an authority other than the one in ca.pem
    EXPIRED = "expired"
    WRONG_HOST = "wrong-host"  # for another host


class Tls(StrEnum):
    """The TLS versions and suites that the server accepts."""

    REFERENCE = "reference"  # the versions and suites of the API reference
    OLD = "1.1-only"  # TLS 1.1 and nothing later
    OTHER_SUITE = "other-suite"  # TLS 1.2 and 1.3, with suites that the reference does not list


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The settings of a sandbox."""

    folder: Path  # folder for certificates, secrets and precheck.toml; folder 0700, files 0600
    host: str = "127.0.0.1"
    port: int = 0  # 0 means any free port
    seed: int = 1  # seed of the simulated network
    token_life_s: int = 3600
    latency_s: float = 0.0  # median of a log-normal delay of every answer; 0 means no delay
    latency_spread: float = 0.73
    """Standard deviation of the logarithm of that delay. With 0.73 the 95th percentile is 3.3 times the
    median; with 0 every answer takes the same time."""
    rehearse: bool = False  # true if unknown accounts get invented answers, instead of AC01 and NOAP
    responder_faults: bool = False  # true if some banks misbehave: slow, failing, silent, or with broken TLS
    cop_responder_wait_s: float = 7.0
    vop_responder_wait_s: float = 5.0
    daily_cap: int = 50  # requests per UTC day and client in role test; the rest are refused
    rate_per_s_max: int | None = None  # per client; beyond it the answer is 429; not in the reference
    clock_skew_max_s: float = 300.0  # how far X-Request-Timestamp may be off in either direction; our choice
    request_wait_s: float = 10.0  # for a client's TLS handshake, the head of a request, and its body
    call_log: Path | None = None  # file that gets one JSON line per request, appended
    client_certificate_required: bool = False  # true if TLS refuses clients without a valid certificate
    server_certificate: ServerCertificate = ServerCertificate.GOOD
    tls: Tls = Tls.REFERENCE
    faults: tuple[Selection, ...] = ()  # the active faults, with the requests that they affect

    verdicts: tuple[Path, ...] = ()  # for the verdict on the client: .json, .xml (JUnit) or text
    scenario: str | None = None  # the name of the scenario that is served
    has_control: bool = False  # true if the sandbox has a control address, in its folder

    def responder_wait_s(self, api: ApiName) -> float:
        """How long the gateway waits for a responder of this API before it answers 504."""
        return self.cop_responder_wait_s if api is ApiName.COP else self.vop_responder_wait_s


@dataclass(slots=True)
class Clock:
    """This machine's time, or a deliberately wrong one."""

    ahead_s: float = 0.0  # offset from the machine's clock; negative if behind

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self.ahead_s
