"""TLS on a connection; unlike event loops, it sends the alert of a failed handshake.

After a failed handshake, event loops close the connection before the alert is sent, and they hide the
client's offer. Here TLS runs in memory, between the loop's connection and the protocol above it.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, cast

from pipeline.sandbox.client_hello import Greeting
from pipeline.sandbox.faults.effects import ConnectionFault
from pipeline.sandbox.journal import Visit

_READ_BYTES = 256 * 1024
_CERTIFICATE_WAIT_S = 1.0
"""How long to wait for a client certificate that is requested late."""


class SecuredConnection(asyncio.Protocol):
    """One TCP connection with TLS, below a protocol that is unaware of it."""

    def __init__(
        self,
        context: ssl.SSLContext,
        make_protocol: Callable[[], asyncio.Protocol],
        visit: Visit,
        handshake_max_s: float,
        meets: Callable[[ConnectionFault], bool] = lambda _: False,
    ) -> None:
        """Wait for a connection; the protocol starts after the handshake, which has a deadline."""
        self._make_protocol = make_protocol
        self._visit = visit
        self._handshake_max_s = handshake_max_s
        self._meets = meets
        self._greeting = Greeting()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.context = context
        self._asks_late = meets(ConnectionFault.LATE_CERTIFICATE)
        self._held = b""
        context.post_handshake_auth = self._asks_late
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.raw: asyncio.Transport | None = None
        self._above: asyncio.Protocol | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake's deadline."""
        self.raw = cast(asyncio.Transport, transport)  # uvloop's transport has the methods but not the type
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._handshake_max_s, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Receive bytes, of the handshake or for the protocol above."""
        if self._is_closed:
            return
        if not self._greeting.is_over:
            self._visit.hello = self._greeting.feed(data) or self._visit.hello
        self._incoming.write(data)
        if self._above is None:
            self._shake_hands()
        if self._above is not None:
            self._read(self._above)

    def eof_received(self) -> None:
        """The client has closed its side: close the connection."""
        if self._above is not None:
            self._above.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the protocol above."""
        self._is_closed = True
        if self._deadline is not None:
            self._deadline.cancel()
        if self._above is not None:
            self._above.connection_lost(exc)
        self._visit.lasted_until = time.monotonic()

    def pause_writing(self) -> None:
        """Pause writing by the protocol above."""
        if self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        """Resume writing by the protocol above."""
        if self._above is not None:
            self._above.resume_writing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send data."""
        if self._is_closed or not data:
            return
        left = memoryview(data)
        while left:
            left = left[self.tls.write(left) :]
        self._flush()

    def close(self) -> None:
        """Send close_notify, and close the connection once all data are sent."""
        if self._is_closed or self.raw is None:
            return
        self._is_closed = True
        with suppress(ssl.SSLError):  # the client need not have sent close_notify
            self.tls.unwrap()
        self._flush()
        self.raw.close()

    @property
    def is_closed(self) -> bool:
        """True if no more data will be sent."""
        return self._is_closed or self.raw is None or self.raw.is_closing()

    def _shake_hands(self) -> None:
        if self._meets(ConnectionFault.CLOSE_IN_HANDSHAKE):
            self._visit.failure = "CLOSED"
            self._end()
            return
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._visit.failure = error.reason or "UNKNOWN"
            self._visit.is_plain_http = self._greeting.is_plain_http
            self._end()
            return
        self._flush()
        if self._deadline is not None:
            self._deadline.cancel()
        suite = self.tls.cipher()
        self._visit.version, self._visit.suite = self.tls.version() or "", suite[0] if suite else ""
        self._above = self._make_protocol()
        self._above.connection_made(SecuredTransport(self))

    def _read(self, above: asyncio.Protocol) -> None:
        try:
            while not self._is_closed:
                data = self.tls.read(_READ_BYTES)
                if data and (self._asks_late or self._held):
                    if not self._held:
                        self._ask_for_certificate()
                    self._held += data
                    continue
                if not data:  # the client has sent close_notify
                    if self._meets(ConnectionFault.HALF_CLOSE):
                        return
                    above.eof_received()
                    self.close()
                    return
                above.data_received(data)
        except ssl.SSLWantReadError:
            self._flush()
            if not self._asks_late or self.tls.getpeercert(True) is not None:
                self._hand_over()
        except ssl.SSLError:
            self._end()

    def _ask_for_certificate(self) -> None:
        """Request the client's certificate late, if the client offers that (RFC 8446, section 4.6.2)."""
        try:
            self.tls.verify_client_post_handshake()
            self.tls.do_handshake()
        except ssl.SSLError:
            self._asks_late = False
        asyncio.get_running_loop().call_later(_CERTIFICATE_WAIT_S, self._hand_over)

    def _hand_over(self) -> None:
        """Deliver the data held back until the client had sent its certificate or refused to."""
        held, self._held, self._asks_late = self._held, b"", self._asks_late and not self._held
        if held and self._above is not None and not self._is_closed:
            self._above.data_received(held)

    def _end(self) -> None:
        """Close the connection without close_notify, after sending OpenSSL's alert."""
        self._flush()
        self._is_closed = True
        if self.raw is not None:
            self.raw.close()

    def _give_up(self) -> None:
        self._visit.failure = "TIMEOUT"
        self._end()

    def _flush(self) -> None:
        if self.raw is not None and self._outgoing.pending and not self.raw.is_closing():
            self.raw.write(self._outgoing.read())


class SecuredTransport(asyncio.Transport):
    """The connection as the protocol above sees it."""

    def __init__(self, connection: SecuredConnection) -> None:
        assert connection.raw is not None
        self._connection = connection
        self._raw = connection.raw

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 (the signature of asyncio)
        """Return a fact about the connection."""
        if name == "ssl_object":
            return self._connection.tls
        if name == "sslcontext":
            return self._connection.context
        return self._raw.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data."""
        self._connection.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send several pieces of data together."""
        self._connection.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """False: TLS closes both directions at once."""
        return False

    def is_closing(self) -> bool:
        """True if no more data will be sent."""
        return self._connection.is_closed

    def close(self) -> None:
        """Close the connection once all data are sent."""
        self._connection.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._raw.abort()

    def pause_reading(self) -> None:
        """Stop reading."""
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        self._raw.resume_reading()

    def is_reading(self) -> bool:
        """True if it is reading."""
        return self._raw.is_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the buffer sizes that pause and resume the protocol above."""
        self._raw.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """The number of bytes not sent yet."""
        return self._raw.get_write_buffer_size()
