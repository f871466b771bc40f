"""An HTTP exchange as plain values, so that an API can be written and read without a network."""

from collections.abc import Mapping
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
