"""A certificate authority, and servers over real TLS on loopback: good ones and bad ones."""

import asyncio
import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pipeline.transport.tls import limit_suites

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path


class Authority:
    """Issues certificates for 127.0.0.1 and localhost, or for whatever a test asks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Test authority {folder.name}")])
        certificate = (
            self._builder(self._name, self._key.public_key(), NOW + 30 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        name: str,
        *,
        hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
        not_after: dt.datetime = NOW + 90 * DAY,
        usages: tuple[x509.ObjectIdentifier, ...] = (
            ExtendedKeyUsageOID.SERVER_AUTH,
            ExtendedKeyUsageOID.CLIENT_AUTH,
        ),
        number: str | None = None,
        rsa_key: bool = False,
        password: bytes | None = None,
    ) -> Pair:
        key = rsa.generate_private_key(65537, 2048) if rsa_key else ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if number is not None:
            attributes.append(x509.NameAttribute(x509.ObjectIdentifier("2.5.4.97"), number))
        builder = self._builder(x509.Name(attributes), key.public_key(), not_after).add_extension(
            x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
        )
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        signed = builder.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        encryption = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password)
        )
        pair.key.touch(mode=0o600)
        pair.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        )
        return pair

    def _builder(self, subject, public_key, not_after):
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(NOW, not_after) - 2 * DAY)
            .not_valid_after(not_after)
        )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def server_context(pair: Pair, *, restricted: bool = True) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if restricted:
        limit_suites(context)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Session = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """An HTTP server on a free loopback port, which is what is yielded."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talking(session: Session, context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """A server that says whatever bytes a test wants."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await session(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone: often what the test is about
        finally:
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@contextmanager
def blocking(context: ssl.SSLContext) -> Iterator[int]:
    """A TLS server as most are, on a blocking socket: it sends an alert when it refuses.

    asyncio's servers close without a word (CPython gh-98078), which is the other half of the tests.
    """
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with suppress(OSError), connection, context.wrap_socket(connection, server_side=True) as tls:
                while tls.recv(4096):
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@contextmanager
def staying(context: ssl.SSLContext) -> Iterator[int]:
    """A server that answers requests, and keeps a connection open when the client ends its side."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept: list[ssl.SSLSocket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
                connection.settimeout(5)
                kept.append(context.wrap_socket(connection, server_side=True))
                while b"\r\n\r\n" in kept[-1].recv(4096):
                    kept[-1].sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            except ssl.SSLError:
                continue
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for connection in kept:
            connection.close()


class Loopback:
    """What a test needs to make a server misbehave."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "trusted")
        self.stranger = Authority(folder / "stranger")
        self.pair = self.authority.issue("server")
        self.context = server_context(self.pair)

    server_context = staticmethod(server_context)
    blocking = staticmethod(blocking)
    staying = staticmethod(staying)

    def serving(self, handler: Handler, context: ssl.SSLContext | None = None):
        return serving(handler, context or self.context)

    def talking(self, session: Session, context: ssl.SSLContext | None = None):
        return talking(session, context or self.context)

    def talking_plainly(self, session: Session):
        return talking(session, None)


@pytest.fixture(scope="session")
def loopback(tmp_path_factory):
    return Loopback(tmp_path_factory.mktemp("loopback"))
