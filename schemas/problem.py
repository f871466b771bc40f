"""Problem details: the body of every error response of the three APIs.

Source: API reference, "Problem details" and "Errors". It does not show which members are always present, nor
all codes, so every member may be missing, and any code is accepted.
"""

from enum import StrEnum

from schemas.strict import Document


class ProblemCode(StrEnum):
    """The five codes that the reference lists; a server may send others."""

    FORMAT_ERROR = "FORMAT_ERROR"
    CLIENT_INVALID = "CLIENT_INVALID"
    SERVER_ERROR = "SERVER_ERROR"
    SSL_ERROR = "SSL_ERROR"
    TIMEOUT_ERROR = "TIMEOUT_ERROR"


class Problem(Document):
    """One error of a server."""

    type: str | None = None
    code: str | None = None
    title: str | None = None
    status: int | None = None
    detail: str | None = None
    instance: str | None = None
