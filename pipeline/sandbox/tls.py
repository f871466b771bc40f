"""The server's TLS settings: exactly the versions and suites of the API reference.

Source: API reference, "Transport security". Python before 3.15 cannot choose the suites of TLS 1.3, and no
Python can accept an untrusted client certificate. Both are set in the TLS library that Python itself has
loaded, and the suites are read back.
"""

import _ssl
import ctypes
import ssl
import warnings
from pathlib import Path

from pipeline.errors import TlsError
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
    """Create the server's TLS context; each file contains a certificate and its key, of one kind.

    Unless a client certificate is required, connections succeed even if it is missing or bad: the API that
    needs one then answers 401, and the others ignore it.

    Raises:
        TlsError: this Python cannot be limited to the suites of the reference.
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
        raise TlsError(Sentence("sandbox.sandbox_this_python"))


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
