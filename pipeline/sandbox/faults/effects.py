"""The effects that faults can have on an exchange, as values."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from pipeline.sandbox.replies import Reply
from schemas.outcomes import ApiName


@dataclass(frozen=True, slots=True)
class Scene:
    """What an effect needs to know about the exchange."""

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
    """A wait before the reply is sent."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class ResponderPause:
    """The gateway's wait for a silent responder: 7 s for CoP, 5 s for VoP."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Another way of sending the reply; the connection cannot be used afterwards."""

    pieces: Callable[[bytes, bytes], Iterable[bytes]]  # (head, body) -> the pieces to write
    pause_s: float = 0.0  # after each piece
    ending: Ending = Ending.CLOSE


@dataclass(frozen=True, slots=True)
class Swap:
    """The replies to two requests in flight are swapped."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """All access tokens issued so far become invalid."""


class ConnectionFault(Enum):
    """A fault that affects every connection."""

    HALF_CLOSE = auto()
    """When the client closes its side, the server keeps the other side open."""
    CLOSE_IN_HANDSHAKE = auto()
    """The server closes the connection instead of completing the handshake."""
    LATE_CERTIFICATE = auto()
    """The server asks for the client certificate only after the handshake, when a request has arrived."""


Effect = ReplyChange | Pause | ResponderPause | Delivery | Swap | Revocation | ConnectionFault
