"""Which servers the client trusts, which certificate it presents, and what a failed handshake means.

Everything is decided by arguments: no environment variable adds an authority (SSL_CERT_FILE) or
writes the session's secrets to a file (SSLKEYLOGFILE). Source: API reference, "Transport security"
and "VoP Standard: mutual TLS".
"""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import certifi
from pydantic import SecretStr

from pipeline.errors import CredentialsError, IncompleteError, PrecheckError, TlsError
from pipeline.transport.certificates import CertificateFacts, inspect_certificate
from pipeline.transport.cipher_suites import SUITES, limit_suites

__all__ = ["CertificateFacts", "client_context", "explain", "inspect_certificate", "preflight"]

HANDSHAKE_DEADLINE_S = 10.0
REFUSAL_WAIT_S = 0.3
"""How long a TLS 1.3 server is given to refuse the client certificate after the handshake."""


def client_context(
    *,
    ca_file: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    key_password: SecretStr | str | None = None,
) -> ssl.SSLContext:
    """A context that keeps the rules of the API reference, and proves that it does.

    Certificates are verified, and host names with them; there is no way to switch that off.

    Args:
        ca_file: The only authorities to trust, PEM; without it, those of the certifi package.
        certificate: Our own certificate and its chain, PEM, for mutual TLS.
        key: Its private key, PEM; without it, the key is in the certificate's file.
        key_password: What opens the key, where it is encrypted.

    Raises:
        TlsError: a file cannot be used, or this Python cannot keep to the suites.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    limit_suites(context)
    _trust(context, ca_file)
    if certificate is not None:
        _present(context, certificate, key or certificate, key_password)
    return context


def _trust(context: ssl.SSLContext, ca_file: Path | None) -> None:
    try:
        context.load_verify_locations(cafile=ca_file or certifi.where())
    except ssl.SSLError:
        raise TlsError(f"ca_file {ca_file}: no certificate in it; it must be a PEM file") from None
    except OSError as error:
        raise _unreadable("ca_file", ca_file, error) from None


def _present(
    context: ssl.SSLContext, certificate: Path, key: Path, key_password: SecretStr | str | None
) -> None:
    _check_private(key)
    encrypted = _check_pem(certificate, key)
    if encrypted and not key_password:
        raise TlsError(f"client_key {key}: it is encrypted; give its passphrase in client_key_password_env")
    try:
        context.load_cert_chain(certificate, key, password=_passphrase(key_password, key))
    except ssl.SSLError as error:
        raise _rejected_pair(error, certificate, key, encrypted=encrypted) from None
    except OSError as error:
        raise _unreadable("client_certificate", certificate, error) from None


def _passphrase(key_password: SecretStr | str | None, key: Path) -> Callable[[], str]:
    """OpenSSL asks for a passphrase on the terminal and waits indefinitely, unless a function answers."""

    def answer() -> str:
        if not key_password:
            raise TlsError(f"client_key {key}: it needs a passphrase; give it in client_key_password_env")
        return key_password.get_secret_value() if isinstance(key_password, SecretStr) else key_password

    return answer


def _check_private(key: Path) -> None:
    try:
        mode = key.stat().st_mode & 0o777
    except OSError as error:
        raise _unreadable("client_key", key, error) from None
    if mode & 0o077:
        raise TlsError(f"client_key {key}: other users can read it (mode {mode:04o}); run chmod 600 on it")


def _check_pem(certificate: Path, key: Path) -> bool:
    """Whether the key is encrypted: OpenSSL reports "PEM lib" for every kind of wrong file."""
    _read_pem("client_certificate", certificate, b"BEGIN CERTIFICATE-----")
    pem = _read_pem("client_key", key, b"PRIVATE KEY-----")
    return b"BEGIN ENCRYPTED PRIVATE KEY" in pem or b"Proc-Type: 4,ENCRYPTED" in pem


def _read_pem(what: str, path: Path, mark: bytes) -> bytes:
    try:
        pem = path.read_bytes()
    except OSError as error:
        raise _unreadable(what, path, error) from None
    if mark not in pem:
        raise TlsError(f"{what} {path}: no {what.removeprefix('client_')} in it; it must be a PEM file")
    return pem


def _rejected_pair(error: ssl.SSLError, certificate: Path, key: Path, *, encrypted: bool) -> TlsError:
    reason = error.reason or ""
    if "MISMATCH" in reason or reason == "NO_CERTIFICATE_ASSIGNED":
        return TlsError(f"client_key {key}: it belongs to another certificate than {certificate}; pair them")
    if encrypted:
        return TlsError(f"client_key {key}: the passphrase does not open it; check client_key_password_env")
    return TlsError(
        f"client_certificate {certificate} and client_key {key}: "
        f"OpenSSL cannot use them ({reason or 'PEM lib'}); export them again as PEM"
    )


def _unreadable(what: str, path: Path | None, error: OSError) -> TlsError:
    return TlsError(f"{what} {path}: cannot be read ({error.strerror}); check the path in the profile")


_VERIFY_ADVICE = {
    # OpenSSL's X509_V_ERR_ numbers.
    9: "check this machine's clock",
    10: "check this machine's clock; if it is right, the server's operator must renew the certificate",
    18: "set ca_file to the authority that issued it, if you trust it",
    19: "set ca_file to the authority that issued it, if you trust it",
    20: "set ca_file to the authority that issued it, if you trust it",
    62: "check the host in base_url",
    64: "check the host in base_url",
}

_REFUSED_CERTIFICATE = {
    "ACCESS_DENIED": "it does not accept this client certificate",
    "BAD_CERTIFICATE": "it cannot use the client certificate",
    "CERTIFICATE_EXPIRED": "the client certificate has expired",
    "CERTIFICATE_REQUIRED": "it requires a client certificate",
    "CERTIFICATE_REVOKED": "the client certificate is revoked",
    "CERTIFICATE_UNKNOWN": "it does not accept this client certificate",
    "UNKNOWN_CA": "it does not trust the issuer of the client certificate",
    "UNSUPPORTED_CERTIFICATE": "the client certificate is not made for client authentication",
}

_NO_COMMON_GROUND = {
    "HANDSHAKE_FAILURE": "it shares no cipher suite with us, or requires a client certificate",
    "INSUFFICIENT_SECURITY": "it shares no cipher suite with us",
    "NO_SHARED_CIPHER": "it shares no cipher suite with us",
    "PROTOCOL_VERSION": "it does not speak TLS 1.2 or later",
    "UNSUPPORTED_PROTOCOL": "it does not speak TLS 1.2 or later",
    "WRONG_SSL_VERSION": "it does not speak TLS 1.2 or later",
    "WRONG_VERSION_NUMBER": "it does not speak TLS at all",
    "HTTP_REQUEST": "it does not speak TLS at all",
}


def explain(error: ssl.SSLError, server: str) -> PrecheckError | None:
    """What a TLS failure means, where trying again cannot help.

    Args:
        error: What OpenSSL raised.
        server: Host and port, for the message.

    Returns:
        CredentialsError where the server refuses our certificate, TlsError where one of us will not
        speak to the other, None where the network may be the cause.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = _VERIFY_ADVICE.get(error.verify_code, "ask the server's operator")
        return TlsError(f"{server}: its certificate is not trusted ({error.verify_message}); {advice}")
    # An alert that the server sent is spelled TLSV13_ALERT_CERTIFICATE_REQUIRED, and so on.
    reason = (error.reason or "").rpartition("ALERT_")[2]
    if (refusal := _REFUSED_CERTIFICATE.get(reason)) is not None:
        return CredentialsError(f"{server}: {refusal}; check client_certificate in the profile")
    if (refusal := _NO_COMMON_GROUND.get(reason)) is not None:
        return TlsError(f"{server}: no TLS connection, as {refusal}; check base_url, or ask its operator")
    return None


async def preflight(host: str, port: int, context: ssl.SSLContext) -> str:
    """Prove, before any row is sent, that a connection can be made and is not closed at once.

    In TLS 1.3 the client has finished its handshake before the server looks at its certificate.
    A refusal comes with the first read, as an alert or as a plain end of the connection, and would
    look like a broken network on every row. So this reads for a moment.

    Returns:
        The version and the suite, such as "TLSv1.3 TLS_AES_256_GCM_SHA384".

    Raises:
        TlsError: no connection that keeps the rules can be made.
        CredentialsError: the server refuses our certificate, or closed right after it got it.
        IncompleteError: there is no connection at all.
    """
    server = f"{host}:{port}"
    try:
        async with asyncio.timeout(HANDSHAKE_DEADLINE_S):
            return await _greet(host, port, context)
    except ssl.SSLError as error:
        failure = explain(error, server) or TlsError(
            f"{server}: the TLS handshake failed ({error.reason}); ask the server's operator"
        )
    except TimeoutError:
        failure = IncompleteError(
            f"{server}: no TLS connection within {HANDSHAKE_DEADLINE_S:g} s; check the network"
        )
    except ConnectionResetError:
        failure = TlsError(
            f"{server}: it closed the connection during the TLS handshake, as servers do that share no "
            "version or cipher suite with us; check base_url, or ask its operator"
        )
    except OSError as error:
        failure = IncompleteError(
            f"{server}: no connection ({error.strerror or type(error).__name__}); "
            "check base_url and the network, then run again"
        )
    raise failure


async def _greet(host: str, port: int, context: ssl.SSLContext) -> str:
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        suite, version, _bits = tls.cipher() or ("none", "none", 0)
        if suite not in SUITES:
            raise TlsError(f"{host}:{port}: it chose the suite {suite}; the API reference does not list it")
        if await _closed_at_once(reader):
            raise CredentialsError(
                f"{host}:{port}: it closed the connection right after the handshake, as servers do that "
                "refuse the client certificate; check client_certificate in the profile"
            )
        return f"{version} {suite}"
    finally:
        # A server may keep its side open after our close_notify: waiting for its end could take for ever.
        writer.transport.abort()


async def _closed_at_once(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(REFUSAL_WAIT_S):
            return await reader.read(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True
