"""A reply that has not been sent yet, as a value that faults can change."""

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Self


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def with_headers(self, **changes: str | None) -> Self:
        """Return the reply with other headers, `_` for `-` in their names; None removes a header."""
        headers = dict(self.headers)
        for name, value in changes.items():
            spelled = name.replace("_", "-")
            headers.pop(spelled, None)
            if value is not None:
                headers[spelled] = value
        return replace(self, headers=headers)

    def head(self) -> bytes:
        """Status line and headers, as sent on the connection."""
        headers = {**self.headers, "Content-Length": str(len(self.body))}
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def whole(self) -> bytes:
        """Head and body."""
        return self.head() + self.body
