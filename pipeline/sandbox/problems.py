"""Problem details: the one shape of every error response.

Source: API reference, "Problem details" and "Errors". Codes beyond the five of the reference are for
what it does not describe: an unknown path, a wrong method, a limit that was exceeded, a clock that is off.
"""

from collections.abc import Mapping

from schemas.problem import Problem, ProblemCode

NOT_FOUND = "NOT_FOUND"
METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
UNAVAILABLE = "SERVICE_UNAVAILABLE"
TIMESTAMP_INVALID = "TIMESTAMP_INVALID"

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
}


class ProblemError(Exception):
    """A request that ends in problem details."""

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        """Describe the problem.

        Args:
            status: HTTP status.
            code: machine-readable code.
            detail: what is wrong with this request; never quotes a name, an account or a secret.
            headers: response headers that belong to the problem, such as Retry-After.
        """
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})

    def to_json(self, instance: str) -> bytes:
        """The problem details, all members present.

        Args:
            instance: path of the request.
        """
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
    """404: not shown in the reference."""
    return ProblemError(404, NOT_FOUND, "there is nothing at this path")


def format_error(detail: str) -> ProblemError:
    """400: the request is malformed or fails validation."""
    return ProblemError(400, ProblemCode.FORMAT_ERROR, detail)


def client_invalid(detail: str, headers: Mapping[str, str] | None = None) -> ProblemError:
    """401: the requester is not authorised."""
    return ProblemError(401, ProblemCode.CLIENT_INVALID, detail, headers)


def too_many_requests(detail: str, retry_after_s: int) -> ProblemError:
    """429: a limit was exceeded; not shown in the reference."""
    return ProblemError(429, TOO_MANY_REQUESTS, detail, {"Retry-After": str(retry_after_s)})
