"""The interface of the three name-check APIs: paths, headers, documents, servers.

Source: API reference, "Endpoints", "Request headers" and "Servers".
"""

from dataclasses import dataclass

from schemas.cop import NameVerificationRequest
from schemas.outcomes import ApiName, Environment
from schemas.vop import GatewayRequest, StandardRequest

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
