"""The server's TLS: exactly the versions and suites of the API reference, section "Transport security".

Python before 3.15 cannot choose the suites of TLS 1.3, and no Python can accept an untrusted client
certificate: both are set in the TLS library that Python has loaded. After a failed handshake, event loops
close the connection before the alert is sent, and hide the client's offer. So TLS runs in memory here.
"""

import _ssl
import asyncio
import ctypes
import ssl
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pipeline.errors import TlsError
from pipeline.sandbox.client_hello import Greeting
from pipeline.sandbox.faults.effects import ConnectionFault
from pipeline.sandbox.journal import Visit
from pipeline.sandbox.settings import Tls
from pipeline.wording import Sentence

TLS13_SUITE = "TLS_AES_256_GCM_SHA384"
TLS12_SUITES = (
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
)
"""OpenSSL's names for the reference's three suites of TLS 1.2."""

_OTHER_TLS13_SUITE = "TLS_AES_128_GCM_SHA256"
_OTHER_TLS12_SUITES = ("ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-GCM-SHA256")

_READ_BYTES = 256 * 1024
_CERTIFICATE_WAIT_S = 1.0  # how long to wait for a client certificate that is requested late
_CertificateCheck = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

_ACCEPT_ANY = _CertificateCheck(lambda _certificates, _nothing: 1)
"""Accepts any client certificate; global, because OpenSSL may call it at any time."""


def server_context(
    servers: tuple[Path, ...],
    client_authority: Path,
    *,
    is_client_certificate_required: bool,
    tls: Tls = Tls.REFERENCE,
) -> ssl.SSLContext:
    """Create the server's TLS context; each file has a certificate and its key, of one kind (TlsError).

    Unless a client certificate is required, connections succeed even if it is missing or bad: the API that
    needs one then answers 401, and the others ignore it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    match tls:
        case Tls.REFERENCE:
            _limit_suites(context, TLS13_SUITE, TLS12_SUITES)
        case Tls.OTHER_SUITE:
            _limit_suites(context, _OTHER_TLS13_SUITE, _OTHER_TLS12_SUITES)
        case Tls.OLD:
            _speak_tls_1_1_only(context)
    for server in servers:
        context.load_cert_chain(server)
    context.load_verify_locations(client_authority)
    if is_client_certificate_required:
        context.verify_mode = ssl.CERT_REQUIRED
    else:
        context.verify_mode = ssl.CERT_OPTIONAL
        _check_no_certificate(context)
    return context


def _limit_suites(context: ssl.SSLContext, tls13_suite: str, tls12_suites: tuple[str, ...]) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(":".join(tls12_suites))
    _set_tls13_suite(context, tls13_suite)
    offered = {cipher["name"] for cipher in context.get_ciphers()}
    if offered != {tls13_suite, *tls12_suites}:
        raise TlsError(Sentence("sandbox.python_tls_unsuitable"))


def _speak_tls_1_1_only(context: ssl.SSLContext) -> None:
    with warnings.catch_warnings():
        # Python rightly warns about old versions, but clients are supposed to refuse this server.
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1_1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    # OpenSSL 3 allows SHA-1 signatures only at security level 0.
    context.set_ciphers("ALL:@SECLEVEL=0")


def _set_tls13_suite(context: ssl.SSLContext, suite: str) -> None:
    set_ciphersuites = getattr(context, "set_ciphersuites", None)
    if set_ciphersuites is not None:  # Python 3.15
        set_ciphersuites(suite)
        return
    set_native = _library().SSL_CTX_set_ciphersuites
    set_native.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    set_native.restype = ctypes.c_int
    set_native(_native(context), suite.encode())


def _check_no_certificate(context: ssl.SSLContext) -> None:
    """Request a client certificate and accept any; Python has no setting for this."""
    set_native = _library().SSL_CTX_set_cert_verify_callback
    set_native.argtypes = (ctypes.c_void_p, _CertificateCheck, ctypes.c_void_p)
    set_native.restype = None
    set_native(_native(context), _ACCEPT_ANY, None)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(getattr(_ssl, "__file__", None))


def _native(context: ssl.SSLContext) -> ctypes.c_void_p:
    """Return the SSL_CTX* of a context, which is the first field after the object's header."""
    return ctypes.c_void_p.from_address(id(context) + object.__basicsize__)


class SecuredConnection(asyncio.Protocol, asyncio.Transport):
    """TLS on one TCP connection: a protocol to the connection below, and the transport of one above."""

    _raw: asyncio.Transport
    _deadline: asyncio.TimerHandle

    def __init__(
        self,
        context: ssl.SSLContext,
        make_protocol: Callable[[], asyncio.Protocol],
        visit: Visit,
        handshake_max_s: float,
        meets: Callable[[ConnectionFault], bool],
    ) -> None:
        """Wait for a connection; the protocol starts after the handshake, which has a deadline."""
        super().__init__()
        self._make_protocol = make_protocol
        self._visit = visit
        self._handshake_max_s = handshake_max_s
        self._meets = meets
        self._greeting = Greeting()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._context = context
        self._asks_late = meets(ConnectionFault.LATE_CERTIFICATE)
        self._held = b""
        context.post_handshake_auth = self._asks_late
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._above: asyncio.Protocol | None = None
        self._is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake's deadline."""
        self._raw = cast(asyncio.Transport, transport)  # uvloop's transport has the methods but not the type
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._handshake_max_s, self._fail, "TIMEOUT")

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

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 (the signature of asyncio)
        """Return a fact about the connection."""
        own = {"ssl_object": self._tls, "sslcontext": self._context}
        return own.get(name) or self._raw.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send data."""
        if self._is_closed or not data:
            return
        left = memoryview(data)
        while left:
            left = left[self._tls.write(left) :]
        self._flush()

    def close(self) -> None:
        """Send close_notify, and close the connection once all data are sent."""
        if self._is_closed:
            return
        with suppress(ssl.SSLError):  # the client need not have sent close_notify
            self._tls.unwrap()
        self._end()

    def abort(self) -> None:
        """Close the connection at once."""
        self._raw.abort()

    def is_closing(self) -> bool:
        """True if no more data will be sent."""
        return self._is_closed or self._raw.is_closing()

    def pause_reading(self) -> None:
        """Stop reading."""
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        self._raw.resume_reading()

    def _shake_hands(self) -> None:
        if self._meets(ConnectionFault.CLOSE_IN_HANDSHAKE):
            self._fail("CLOSED")
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._visit.is_plain_http = self._greeting.is_plain_http
            self._fail(error.reason or "UNKNOWN")
            return
        self._flush()
        self._deadline.cancel()
        suite = self._tls.cipher()
        self._visit.version, self._visit.suite = self._tls.version() or "", suite[0] if suite else ""
        self._above = self._make_protocol()
        self._above.connection_made(self)

    def _read(self, above: asyncio.Protocol) -> None:
        try:
            while not self._is_closed:
                data = self._tls.read(_READ_BYTES)
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
            if not self._asks_late or self._tls.getpeercert(True) is not None:
                self._hand_over()
        except ssl.SSLError:
            self._end()

    def _ask_for_certificate(self) -> None:
        """Request the client's certificate late, if the client offers that (RFC 8446, section 4.6.2)."""
        try:
            self._tls.verify_client_post_handshake()
            self._tls.do_handshake()
        except ssl.SSLError:
            self._asks_late = False
        asyncio.get_running_loop().call_later(_CERTIFICATE_WAIT_S, self._hand_over)

    def _hand_over(self) -> None:
        """Deliver the data held back until the client had sent its certificate or refused to."""
        held, self._held, self._asks_late = self._held, b"", self._asks_late and not self._held
        if held and self._above is not None and not self._is_closed:
            self._above.data_received(held)

    def _fail(self, reason: str) -> None:
        self._visit.failure = reason
        self._end()

    def _end(self) -> None:
        """Close the connection after sending what TLS has written, such as the alert of a failure."""
        self._flush()
        self._is_closed = True
        self._raw.close()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._raw.is_closing():
            self._raw.write(self._outgoing.read())
