"""Restrict TLS to the cipher suites of the API reference, section "Transport security".

Python's `ssl` can only set TLS 1.3 suites since 3.15 (gh-137197). Before that, OpenSSL's function is called
with the context's pointer. If that is impossible, as with a statically linked OpenSSL, only TLS 1.2 is used:
the reference requires "TLS 1.2 or later", and offering a wrong suite would be worse.
"""

import _ssl
import ctypes
import ssl
import sys
from collections.abc import Callable

from pipeline.errors import TlsError
from pipeline.wording import Sentence

TLS12_SUITES = (
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
)
"""OpenSSL's names for TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 and so on."""
TLS13_SUITES = ("TLS_AES_256_GCM_SHA384",)
SUITES = frozenset(TLS12_SUITES + TLS13_SUITES)


def offered(context: ssl.SSLContext) -> frozenset[str]:
    """Return the suites that a context offers in its enabled versions."""
    speaks_tls13 = context.maximum_version != ssl.TLSVersion.TLSv1_2
    return frozenset(
        suite["name"] for suite in context.get_ciphers() if speaks_tls13 or suite["protocol"] != "TLSv1.3"
    )


def limit_tls13(context: ssl.SSLContext) -> bool:
    """Limit a context to the one TLS 1.3 suite; False if this Python cannot do it."""
    if hasattr(context, "set_ciphersuites"):
        context.set_ciphersuites(":".join(TLS13_SUITES))
    elif not _call_openssl(context):
        return False
    left = {suite["name"] for suite in context.get_ciphers() if suite["protocol"] == "TLSv1.3"}
    return left == set(TLS13_SUITES)


def limit_suites(
    context: ssl.SSLContext, *, limit_tls13: Callable[[ssl.SSLContext], bool] = limit_tls13
) -> None:
    """Limit a new context to the suites of the reference, or to its TLS 1.2, and verify that (TlsError)."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.set_ciphers(":".join(TLS12_SUITES))
    except ssl.SSLError:
        raise _cannot_offer() from None
    expected = SUITES
    if not limit_tls13(context):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        expected = frozenset(TLS12_SUITES)
    if offered(context) != expected:
        raise _cannot_offer()


def _call_openssl(context: ssl.SSLContext) -> bool:
    """Call SSL_CTX_set_ciphersuites with the pointer that CPython stores right after the object's header."""
    # Builds that trace references (sys.getobjects) have a longer header, and a static _ssl has no file;
    # another look-up could find another OpenSSL's function and pass it our pointer.
    path = getattr(_ssl, "__file__", None)
    if path is None or sys.implementation.name != "cpython" or hasattr(sys, "getobjects"):
        return False
    try:
        set_ciphersuites = ctypes.CDLL(path).SSL_CTX_set_ciphersuites
    except (OSError, AttributeError):
        return False
    set_ciphersuites.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    set_ciphersuites.restype = ctypes.c_int
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    return bool(set_ciphersuites(pointer, ":".join(TLS13_SUITES).encode()) == 1)


def _cannot_offer() -> TlsError:
    return TlsError(Sentence("transport.tls_cannot_offer", openssl_version=ssl.OPENSSL_VERSION))
