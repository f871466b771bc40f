"""Problem details: the form of every error response.

Source: API reference, "Problem details" and "Errors"; codes for cases that it does not describe are ours.
Clients under development put names and tokens in the wrong place, so only texts that look harmless are
repeated here and in the call log.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from schemas.problem import Problem, ProblemCode

NOT_FOUND = "NOT_FOUND"
METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
UNAVAILABLE = "SERVICE_UNAVAILABLE"
TIMESTAMP_INVALID = "TIMESTAMP_INVALID"
TOO_SLOW = "REQUEST_TIMEOUT"
EXPECTATION_FAILED = "EXPECTATION_FAILED"

_TITLES: Mapping[str, str] = {
    ProblemCode.FORMAT_ERROR: "Validation of the request failed; see detail",
    ProblemCode.CLIENT_INVALID: "Validating the client failed; see detail",
    ProblemCode.SERVER_ERROR: "Internal Server Error",
    ProblemCode.SSL_ERROR: "SSL/TLS handshake failed",
    ProblemCode.TIMEOUT_ERROR: "Responder Timeout",
    NOT_FOUND: "No such resource",
    METHOD_NOT_ALLOWED: "The method is not allowed",
    TOO_MANY_REQUESTS: "Too many requests; see Retry-After",
    UNAVAILABLE: "The service is not available",
    TIMESTAMP_INVALID: "The time of the request is not valid; see detail",
    TOO_SLOW: "The request took too long to arrive",
    EXPECTATION_FAILED: "The expectation cannot be met",
}


class Refusal(StrEnum):
    """Why a request was refused, in one word for the call log."""

    HTTP = "http"  # not well-formed HTTP/1.1
    SLOW = "slow"
    EXPECTATION = "expectation"
    PATH = "path"
    METHOD = "method"
    QUERY = "query"
    TOKEN_MISSING = "token missing"  # noqa: S105 (no password)
    TOKEN_UNKNOWN = "token unknown"  # noqa: S105 (no password)
    TOKEN_EXPIRED = "token expired"  # noqa: S105 (no password)
    TOKEN_OF_ANOTHER_SERVER = "token of another server"  # noqa: S105 (no password)
    CLIENT = "client"  # at the token endpoint: an unknown client, a wrong secret or scope
    CERTIFICATE_MISSING = "certificate missing"
    CERTIFICATE = "certificate"
    REQUESTING_BANK = "requesting bank"
    CORRELATION_ID = "correlation id"
    TIMESTAMP = "timestamp"
    CONTENT_TYPE = "content type"
    CONTENT_ENCODING = "content encoding"
    FORM = "form"
    DOCUMENT = "document"
    DAILY_CAP = "daily cap"
    RATE = "rate"


class ProblemError(Exception):
    """A request must be answered with problem details."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        refusal: Refusal | None = None,
    ) -> None:
        """Describe the problem without any name, account or secret; `headers` are added to the response."""
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.refusal = refusal

    def to_json(self, instance: str) -> bytes:
        """Return problem details for a request to this path, with all members."""
        problem = Problem(
            type=f"https://problems.sandbox.invalid/{self.code}",
            code=self.code,
            title=_TITLES[self.code],
            status=self.status,
            detail=self.detail,
            instance=instance,
        )
        return problem.to_json()


def not_found() -> ProblemError:
    """404: an unknown path; not in the reference."""
    return ProblemError(404, NOT_FOUND, "there is nothing at this path", refusal=Refusal.PATH)


def too_slow(part: str, wait_max_s: float) -> ProblemError:
    """408: part of the request came too late, and the connection is closed."""
    detail = f"{part}: incomplete after {wait_max_s:g} seconds"
    return ProblemError(408, TOO_SLOW, detail, {"Connection": "close"}, Refusal.SLOW)


def format_error(detail: str, refusal: Refusal) -> ProblemError:
    """400: the request is malformed or fails validation."""
    return ProblemError(400, ProblemCode.FORMAT_ERROR, detail, refusal=refusal)


def client_invalid(detail: str, refusal: Refusal, headers: Mapping[str, str] | None = None) -> ProblemError:
    """401: the requester is not authorised."""
    return ProblemError(401, ProblemCode.CLIENT_INVALID, detail, headers, refusal)


def too_many_requests(detail: str, retry_after_s: int, refusal: Refusal) -> ProblemError:
    """429: a limit was exceeded; not in the reference."""
    return ProblemError(429, TOO_MANY_REQUESTS, detail, {"Retry-After": str(retry_after_s)}, refusal)


_MEMBER = re.compile(r"[a-z][A-Za-z]{0,30}|[a-z]+(_[a-z]+){1,4}")
_SEGMENT = re.compile(r"[a-z][a-z0-9.-]{0,30}")
_HIDDEN = "..."


def shown_member(name: str) -> str:
    """Return the name of a member of a document or form if it looks like one, or else `...`.

    >>> shown_member("partyAgent"), shown_member("client_id"), shown_member("Avery Thornwood")
    ('partyAgent', 'client_id', '...')
    """
    return name if _MEMBER.fullmatch(name) else _HIDDEN


def shown_path(path: str) -> str:
    """Return an unknown path, with segments hidden that do not look like words.

    >>> shown_path("/sandbox/vop/v2/checks"), shown_path("/checks/00112200012345/Avery%20Thornwood")
    ('/sandbox/vop/v2/checks', '/checks/.../...')
    """
    segments = path.split("/")
    return "/".join(part if not part or _SEGMENT.fullmatch(part) else _HIDDEN for part in segments)
