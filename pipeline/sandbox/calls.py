"""The call log: one JSON line per request that the server answered, for tests that count."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline.errors import OutputError


@dataclass(slots=True)
class Call:
    """One request, as far as it is known; it holds no name and no account number."""

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
    """None where the client went away before the answer."""
    request_id: str | None = None
    """The correlation id, where the request has a valid one."""
    question: str | None = None
    """SHA-256 of the question; two calls with one value asked the same."""
    headers: dict[str, str] = field(default_factory=dict)
    """Response headers that depend on the request; not logged."""


class CallLog:
    """Appends calls to a file; each is written at once."""

    def __init__(self, path: Path) -> None:
        """Open the file, mode 0600, for appending.

        Raises:
            OutputError: it cannot be opened.
        """
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise OutputError(f"{path}: cannot be opened ({error.strerror}); choose another file") from error
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
        }
        os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")


def fingerprint(question: bytes) -> str:
    """SHA-256 of a question, in hexadecimal."""
    return hashlib.sha256(question).hexdigest()
