"""The call log: one JSON line per request that the server answered, for tests that count."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline.disks import refused
from schemas.outcomes import ApiName

TOKEN = "token"  # noqa: S105 (a word in the log)
"""What stands for the token endpoint where others have the name of an API."""


@dataclass(slots=True)
class Call:
    """One request, as far as it is known; its line in the log holds no name and no account number."""

    time: float
    """Seconds since the epoch at arrival."""
    monotonic: float
    """Monotonic seconds at arrival."""
    path: str
    http_version: str
    role: str | None = None
    api: str | None = None
    """An ApiName, or token; None for an unknown path."""
    status: int | None = None
    """None where the client went away before the answer, or a fault let none arrive in order."""
    request_id: str | None = None
    """The correlation id, where the request has a valid one."""
    question: str | None = None
    """SHA-256 of the question; two calls with one value asked the same."""
    byte_count: int | None = None
    """Length of the body, as the client states it."""
    has_cookie: bool = False
    """Whether the client sent a cookie."""
    faults: tuple[str, ...] = ()
    """Names of the faults that it met."""
    account: str | None = None
    """The account it is about; for the faults that befall an account, and not logged."""
    headers: dict[str, str] = field(default_factory=dict)
    """Response headers that depend on the request; not logged."""

    @property
    def asked(self) -> ApiName | None:
        """The API that was asked about a payee; None for a request that was about none."""
        return None if self.api is None or self.api == TOKEN else ApiName(self.api)


class CallLog:
    """Appends calls to a file; each is written at once."""

    def __init__(self, path: Path) -> None:
        """Open the file, mode 0600, for appending.

        Raises:
            OutputError, DiskError: it cannot be opened.
        """
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise refused(path, error, otherwise="choose another file") from error
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def write(self, call: Call) -> None:
        """Append one call, as one write."""
        line = {
            "time": call.time,
            "monotonic": call.monotonic,
            "role": call.role,
            "api": call.api,
            "path": call.path,
            "status": call.status,
            "request_id": call.request_id,
            "question": call.question,
            "http_version": call.http_version,
            "byte_count": call.byte_count,
            "cookie": call.has_cookie,
            "faults": call.faults,
        }
        os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")


def fingerprint(question: bytes) -> str:
    """SHA-256 of a question, in hexadecimal."""
    return hashlib.sha256(question).hexdigest()
