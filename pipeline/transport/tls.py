"""Decide which suites to offer, which servers to trust, which certificate to present; explain failures.

Only arguments count: no environment variable adds an authority (SSL_CERT_FILE) or logs session secrets
(SSLKEYLOGFILE). Source: API reference, "Transport security" and "VoP Standard: mutual TLS". Python can only
set TLS 1.3 suites since 3.15 (gh-137197). Before that, OpenSSL's function is called with the context's
pointer; if that is impossible, only TLS 1.2 is used, because offering a wrong suite would be worse.
"""

import _ssl
import asyncio
import base64
import ctypes
import os
import re
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple, Self

import certifi
from aiohappyeyeballs import start_connection
from pydantic import SecretStr

from pipeline.errors import CredentialsError, IncompleteError, PrecheckError, TlsError
from pipeline.files.disk_errors import TOO_FEW_FILES
from pipeline.files.private import is_private
from pipeline.transport.certificates import chain_in
from pipeline.wording import Sentence

TLS12_SUITES = (
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
)
"""OpenSSL's names for TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 and so on."""
TLS13_SUITES = ("TLS_AES_256_GCM_SHA384",)
SUITES = frozenset(TLS12_SUITES + TLS13_SUITES)

HANDSHAKE_DEADLINE_S = 10.0
REFUSAL_WAIT_S = 0.3  # how long a TLS 1.3 server may take to refuse our certificate after the handshake
_KEY_BYTES_MAX = 32 * 1024  # longer than any key, and short enough for a pipe
RACE_S = 0.25  # how long one address of a host is tried alone before the next is tried as well (RFC 8305)
_OLD_PEM = re.compile(rb"DEK-Info: *(?!AES|DES-EDE3|CAMELLIA|ARIA)[A-Z]")
_OLD_PKCS8 = re.compile(
    rb"\x2a\x86\x48\x86\xf7\x0d(\x01\x05[\x01-\x0b]|\x01\x0c\x01[\x01\x02\x05\x06]|\x03[\x02\x04])"
    rb"|\x2b\x0e\x03\x02\x07"
)
"""Object identifiers of DES, RC2 and RC4 (RFC 8018, RFC 7292), which OpenSSL 3 has moved to its legacy
provider.
"""

Connect = Callable[
    [str, int, ssl.SSLContext, Callable[[], asyncio.Protocol]],
    Awaitable[tuple[asyncio.Transport, asyncio.Protocol]],
]
"""(host, port, context, new protocol) -> a TLS connection and its protocol; direct or through a proxy."""


class Keys(NamedTuple):
    """How advice names the settings of a server and of its authority: configuration keys, or options."""

    address: str = "base_url"
    authority: str = "ca_file"


OF_API = Keys()


class EnvironmentKey(str):
    """A private key from an environment variable; as a string, it is the variable's name."""

    __slots__ = ("pem",)
    pem: SecretStr

    def __new__(cls, variable: str, pem: SecretStr) -> Self:
        """Store the name and the key."""
        key = super().__new__(cls, variable)
        key.pem = pem
        return key


def client_context(
    *,
    ca_file: Path | None = None,
    ca_key: str = OF_API.authority,
    certificate: Path | None = None,
    key: Path | EnvironmentKey | None = None,
    key_password: SecretStr | str | None = None,
) -> ssl.SSLContext:
    """Create a TLS context that follows the rules of the API reference, and verify that it does (TlsError).

    Certificates and host names are always verified.

    Args:
        ca_file: The only authorities to trust, PEM, roots or not; by default, those of certifi.
        ca_key: The name of that setting, for messages.
        certificate: Our certificate with its chain, PEM in any order; presented if the server asks for it.
        key: Its private key, PEM, a file or not; by default, the key is in the certificate's file.
        key_password: The passphrase of an encrypted key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    limit_suites(context)
    _trust(context, ca_file, ca_key)
    if certificate is not None:
        _present(context, certificate, key or certificate, key_password)
    return context


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
    return TlsError(Sentence("transport.cipher_suites_unavailable", openssl_version=ssl.OPENSSL_VERSION))


def _trust(context: ssl.SSLContext, ca_file: Path | None, ca_key: str) -> None:
    if ca_file is not None:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=ca_file or certifi.where())
    except ssl.SSLError:
        raise TlsError(Sentence("transport.ca_file_not_pem", what=ca_key, ca_file=ca_file)) from None
    except OSError as error:
        raise _unreadable(ca_key, ca_file, error) from None


def _present(
    context: ssl.SSLContext,
    certificate: Path,
    key: Path | EnvironmentKey,
    key_password: SecretStr | str | None,
) -> None:
    if isinstance(key, Path):
        _check_private(key)
    encrypted = _check_pem(certificate, key)
    if encrypted and not key_password:
        raise TlsError(Sentence("transport.client_key_encrypted", what=key))
    context.post_handshake_auth = True
    try:
        with _in_order(certificate) as chain, _as_file(key) as path:
            context.load_cert_chain(chain, path, password=_passphrase(key_password, key))
    except ssl.SSLError as error:
        raise _rejected_pair(error, certificate, key, encrypted=encrypted) from None
    except OSError as error:
        raise _unreadable("client_certificate", certificate, error) from None


@contextmanager
def _in_order(certificate: Path) -> Iterator[Path]:
    """Yield the file of a certificate and its chain or, if out of order, a temporary copy in order."""
    pem = certificate.read_bytes()
    if pem.count(b"BEGIN CERTIFICATE-----") < 2:
        yield certificate
        return
    from cryptography.hazmat.primitives.serialization import Encoding

    with NamedTemporaryFile(suffix=".pem") as copy:
        try:
            copy.write(b"".join(one.public_bytes(Encoding.PEM) for one in chain_in(pem)))
        except ValueError:  # OpenSSL reports the fault
            copy.write(pem)
        copy.flush()
        yield Path(copy.name)


def _has_old_cipher(key: Path | EnvironmentKey) -> bool:
    """True if the key is encrypted with a cipher that OpenSSL has dropped; any passphrase will do."""
    pem = _bytes_of(key)
    _, _, body = pem.partition(b"BEGIN ENCRYPTED PRIVATE KEY-----")
    der = base64.b64decode(body.partition(b"-----END")[0])
    return bool(_OLD_PEM.search(pem) or _OLD_PKCS8.search(der[:100]))


@contextmanager
def _as_file(key: Path | EnvironmentKey) -> Iterator[Path]:
    """Yield a path for OpenSSL to read the key: a pipe, because it cannot read keys from memory."""
    if isinstance(key, Path):
        yield key
        return
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "wb") as end:
            end.write(_bytes_of(key)[:_KEY_BYTES_MAX])
        yield Path(f"/dev/fd/{reading}")
    finally:
        os.close(reading)


def _bytes_of(key: Path | EnvironmentKey) -> bytes:
    return key.read_bytes() if isinstance(key, Path) else key.pem.get_secret_value().encode()


def _passphrase(key_password: SecretStr | str | None, key: Path | EnvironmentKey) -> Callable[[], str]:
    """Return the passphrase callback; without one, OpenSSL would wait at the terminal indefinitely."""

    def answer() -> str:
        if not key_password:
            raise TlsError(Sentence("transport.client_key_needs_password", what=key))
        return key_password.get_secret_value() if isinstance(key_password, SecretStr) else key_password

    return answer


def _check_private(key: Path) -> None:
    try:
        found = key.stat()
    except OSError as error:
        raise _unreadable("client_key", key, error) from None
    if not is_private(found):
        mode = found.st_mode & 0o777
        raise TlsError(Sentence("transport.client_key_open_to_others", what=key, mode=mode))


def _check_pem(certificate: Path, key: Path | EnvironmentKey) -> bool:
    """Check both files, as OpenSSL reports "PEM lib" for any wrong file; True if the key is encrypted."""
    _read_pem("client_certificate", certificate, b"BEGIN CERTIFICATE-----")
    pem = _read_pem("client_key", key, b"PRIVATE KEY-----")
    return b"BEGIN ENCRYPTED PRIVATE KEY" in pem or b"Proc-Type: 4,ENCRYPTED" in pem


def _read_pem(what: str, path: Path | EnvironmentKey, mark: bytes) -> bytes:
    try:
        pem = _bytes_of(path)
    except OSError as error:
        raise _unreadable(what, path, error) from None
    if mark not in pem:
        raise TlsError(Sentence(f"transport.{what}_absent", path=path))
    return pem


def _rejected_pair(
    error: ssl.SSLError, certificate: Path, key: Path | EnvironmentKey, *, encrypted: bool
) -> TlsError:
    reason = error.reason or ""
    if "MISMATCH" in reason or reason == "NO_CERTIFICATE_ASSIGNED":
        return TlsError(Sentence("transport.client_key_mismatch", what=key, certificate=certificate))
    if encrypted:
        is_old = _has_old_cipher(key)
        fault = "transport.client_key_old_cipher" if is_old else "transport.client_key_password_wrong"
        return TlsError(Sentence(fault, what=key))
    return TlsError(
        Sentence("transport.pair_unusable", certificate=certificate, key_file=key, reason=reason or "PEM_LIB")
    )


def _unreadable(what: str, path: Path | EnvironmentKey | None, error: OSError) -> TlsError:
    return TlsError(Sentence("transport.tls_file_unreadable", what=what, path=path, why=error))


_UNTRUSTED = {
    # OpenSSL's X509_V_ERR_ numbers: the fault, and the remedy.
    9: (Sentence("transport.untrusted_not_yet_valid"), "transport.check_clock"),
    10: (Sentence("transport.untrusted_expired"), "transport.check_clock_or_renew"),
    18: (Sentence("transport.untrusted_self_signed"), "transport.name_issuing_authority"),
    19: (Sentence("transport.untrusted_self_signed_in_chain"), "transport.name_issuing_authority"),
    20: (Sentence("transport.untrusted_issuer_unknown"), "transport.name_issuing_authority"),
    26: (Sentence("transport.untrusted_not_for_servers"), "transport.ask_operator"),
    62: (Sentence("transport.untrusted_other_host"), "transport.check_host"),
    64: (Sentence("transport.untrusted_other_host"), "transport.check_host"),
    **dict.fromkeys((66, 67, 68), (Sentence("transport.untrusted_too_weak"), "transport.ask_operator")),
    79: (Sentence("transport.untrusted_issuer_no_authority"), "transport.ask_operator"),
}

_REFUSED_CERTIFICATE = {
    "ACCESS_DENIED": Sentence("transport.client_certificate_declined"),
    "BAD_CERTIFICATE": Sentence("transport.client_certificate_unusable"),
    "CERTIFICATE_EXPIRED": Sentence("transport.client_certificate_expired"),
    "CERTIFICATE_REQUIRED": Sentence("transport.requires_client_certificate"),
    "CERTIFICATE_REVOKED": Sentence("transport.client_certificate_revoked"),
    "CERTIFICATE_UNKNOWN": Sentence("transport.client_certificate_declined"),
    "UNKNOWN_CA": Sentence("transport.client_issuer_untrusted"),
    "UNSUPPORTED_CERTIFICATE": Sentence("transport.client_certificate_wrong_use"),
}

_NO_COMMON_GROUND = {
    "HANDSHAKE_FAILURE": Sentence("transport.no_suite_or_no_certificate"),
    "INSUFFICIENT_SECURITY": Sentence("transport.shares_no_cipher_suite"),
    "NO_SHARED_CIPHER": Sentence("transport.shares_no_cipher_suite"),
    "PROTOCOL_VERSION": Sentence("transport.tls_version_too_old"),
    "UNSUPPORTED_PROTOCOL": Sentence("transport.tls_version_too_old"),
    "WRONG_SSL_VERSION": Sentence("transport.tls_version_too_old"),
    "WRONG_VERSION_NUMBER": Sentence("transport.does_not_speak_tls"),
    "HTTP_REQUEST": Sentence("transport.does_not_speak_tls"),
}


def explain(error: ssl.SSLError, server: str, keys: Keys = OF_API) -> PrecheckError | None:
    """Explain a TLS failure that a retry cannot solve; the message has the server's host and port.

    Returns CredentialsError if the server refuses our certificate, TlsError if either side refuses the other,
    None if the network may be the cause.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = (f"X509_V_ERR {error.verify_code}", "transport.ask_operator")
        why, advice = _UNTRUSTED.get(error.verify_code, unknown)
        return TlsError(
            Sentence(
                "transport.server_certificate_untrusted",
                server=server,
                why=why,
                advice=Sentence(advice, **keys._asdict()),
            )
        )
    # OpenSSL names a server's alert TLSV13_ALERT_CERTIFICATE_REQUIRED, and so on.
    reason = (error.reason or "").rpartition("ALERT_")[2]
    if (refusal := _REFUSED_CERTIFICATE.get(reason)) is not None:
        return CredentialsError(
            Sentence("transport.client_certificate_refused", server=server, refusal=refusal)
        )
    if (refusal := _NO_COMMON_GROUND.get(reason)) is not None:
        return TlsError(
            Sentence("transport.no_tls_connection", server=server, refusal=refusal, address=keys.address)
        )
    return None


class ClosedAtOnceError(CredentialsError):
    """The server closed a connection right after the handshake, with no alert to explain it."""


async def preflight(
    host: str,
    port: int,
    context: ssl.SSLContext,
    *,
    waits_s: Sequence[float] = (),
    connect: Connect | None = None,
) -> str:
    """Check, before any row is sent, that the server accepts a connection and does not close it at once.

    Returns version and suite, such as "TLSv1.3 TLS_AES_256_GCM_SHA384". After failures that a restarting
    server may cause, the connection is retried after each of the waits.

    In TLS 1.3 the client finishes its handshake before the server checks its certificate. A refusal comes
    with the first read, as an alert or as a plain end of the connection, and would look like a broken network
    for every row. So this function reads for a moment.

    TlsError: no connection under the rules is possible. CredentialsError: the server refuses our certificate,
    or closed the connection right after receiving it. IncompleteError: the connection or the handshake
    failed.
    """
    for wait_s in waits_s:
        try:
            return await _connected(host, port, context, connect or _directly)
        except (IncompleteError, ClosedAtOnceError):
            await asyncio.sleep(wait_s)
    return await _connected(host, port, context, connect or _directly)


async def _connected(host: str, port: int, context: ssl.SSLContext, connect: Connect) -> str:
    """Make one attempt of `preflight`."""
    server = f"{host}:{port}"
    failure: PrecheckError
    try:
        async with asyncio.timeout(HANDSHAKE_DEADLINE_S):
            return await _greet(host, port, context, connect)
    except ssl.SSLError as error:
        failure = explain(error, server) or IncompleteError(
            Sentence("transport.tls_handshake_failed", server=server, reason=error.reason)
        )
    except TimeoutError:
        failure = IncompleteError(
            Sentence(
                "transport.tls_handshake_timed_out", server=server, handshake_deadline_s=HANDSHAKE_DEADLINE_S
            )
        )
    except ConnectionResetError:
        failure = IncompleteError(Sentence("transport.closed_during_handshake", server=server))
    except OSError as error:
        if error.errno in TOO_FEW_FILES:
            raise IncompleteError(Sentence("transport.open_files_limit_reached")) from None
        # The error of an unavailable proxy has its own reason.
        reason: Sentence | None = getattr(error, "reason", None)
        failure = IncompleteError(reason or Sentence("transport.no_connection", server=server, reason=error))
    raise failure


async def raced(host: str, port: int) -> socket.socket:
    """Connect to the host's address that answers first."""
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return await start_connection(addresses, happy_eyeballs_delay=RACE_S, interleave=1)


async def _directly(
    host: str, port: int, context: ssl.SSLContext, new_protocol: Callable[[], asyncio.Protocol]
) -> tuple[asyncio.Transport, asyncio.Protocol]:
    loop, connected = asyncio.get_running_loop(), await raced(host, port)
    return await loop.create_connection(new_protocol, sock=connected, ssl=context, server_hostname=host)


async def _greet(host: str, port: int, context: ssl.SSLContext, connect: Connect) -> str:
    reader = asyncio.StreamReader()
    transport, _ = await connect(host, port, context, partial(asyncio.StreamReaderProtocol, reader))
    try:
        tls: ssl.SSLObject = transport.get_extra_info("ssl_object")
        suite, version, _bits = tls.cipher() or ("none", "none", 0)
        if suite not in SUITES:
            raise TlsError(Sentence("transport.cipher_suite_not_listed", host=host, port=port, suite=suite))
        if await _closed_at_once(reader):
            raise ClosedAtOnceError(Sentence("transport.closed_after_handshake", host=host, port=port))
        return f"{version} {suite}"
    finally:
        # A server may keep its side open after our close_notify: waiting for its end could take for ever.
        transport.abort()


async def _closed_at_once(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(REFUSAL_WAIT_S):
            return await reader.read(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True
