"""What a fault does to an exchange, as values: the catalogue is written in these words."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from pipeline.sandbox.replies import Reply
from schemas.outcomes import ApiName


@dataclass(frozen=True, slots=True)
class Scene:
    """What an effect may know of the exchange that it affects."""

    path: str
    api: ApiName | None  # None for the token endpoint
    correlation_header: str  # the header that carries the correlation id; empty for the token endpoint
    time_s: float  # seconds since the epoch
    elsewhere: str  # the base URL of another port of this server


class Ending(Enum):
    """How a connection ends."""

    CLOSE = auto()  # in order
    RESET = auto()  # by a TCP reset


@dataclass(frozen=True, slots=True)
class ReplyChange:
    """Another reply than the true one."""

    make: Callable[[Reply, Scene], Reply]


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before the reply."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class ResponderPause:
    """The wait of a gateway for a responder that is silent: 7 s CoP, 5 s VoP."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Another way for the reply to leave than whole and at once; the connection is used up by it."""

    pieces: Callable[[bytes, bytes], Iterable[bytes]]  # (head, body) -> what is written, piece by piece
    pause_s: float = 0.0  # after each piece
    ending: Ending = Ending.CLOSE


@dataclass(frozen=True, slots=True)
class Swap:
    """The reply to another request in flight: the two get each other's."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """No access token that was issued so far is good any more."""


class ConnectionFault(Enum):
    """A fault of every connection."""

    HALF_CLOSE = auto()
    """A client that ends its side finds the other side kept open."""
    CLOSE_IN_HANDSHAKE = auto()
    """The server ends it instead of its handshake."""
    LATE_CERTIFICATE = auto()
    """The server asks for the client certificate after the handshake, once a request has arrived."""


Effect = ReplyChange | Pause | ResponderPause | Delivery | Swap | Revocation | ConnectionFault
