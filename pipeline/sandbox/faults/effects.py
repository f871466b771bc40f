"""The effects of faults on an exchange, as values: the vocabulary of the catalogue."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from pipeline.sandbox.replies import Reply
from schemas.outcomes import ApiName


@dataclass(frozen=True, slots=True)
class Scene:
    """Facts about the exchange for an effect."""

    path: str
    api: ApiName | None  # None for the token endpoint
    correlation_header: str  # the header that carries the correlation id; empty for the token endpoint
    time_s: float  # seconds since the epoch
    elsewhere: str  # the base URL of another port of this server


class Ending(Enum):
    """How a connection ends."""

    CLOSE = auto()  # normally
    RESET = auto()  # by a TCP reset


@dataclass(frozen=True, slots=True)
class ReplyChange:
    """A reply that replaces the real one."""

    make: Callable[[Reply, Scene], Reply]


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before the reply."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class ResponderPause:
    """A gateway's wait for a silent responder: 7 s CoP, 5 s VoP."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Another way to send the reply than at once; the connection cannot be used afterwards."""

    pieces: Callable[[bytes, bytes], Iterable[bytes]]  # (head, body) -> what is written, piece by piece
    pause_s: float = 0.0  # after each piece
    ending: Ending = Ending.CLOSE


@dataclass(frozen=True, slots=True)
class Swap:
    """The replies to two requests in flight are swapped."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """Every access token issued so far becomes invalid."""


class ConnectionFault(Enum):
    """A fault of every connection."""

    HALF_CLOSE = auto()
    """If the client ends its side, the server keeps the other open."""
    CLOSE_IN_HANDSHAKE = auto()
    """The server ends it instead of its handshake."""
    LATE_CERTIFICATE = auto()
    """The server asks for the client certificate after the handshake, once a request has arrived."""


Effect = ReplyChange | Pause | ResponderPause | Delivery | Swap | Revocation | ConnectionFault
