"""An HTTP exchange as plain values, so that an API can be written and read without a network."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple


class Request(NamedTuple):
    """A POST request, ready to be sent."""

    path: str
    """The path below the server's base URL, starting with a slash."""
    headers: Mapping[str, str]
    body: bytes


class Response(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    """Keyed by lower-case name."""
    body: bytes


def timestamp(moment: datetime) -> str:
    """A moment as the APIs write it: UTC, milliseconds, Z (API reference, "Request headers").

    >>> timestamp(datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))
    '2030-01-02T03:04:05.678Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
