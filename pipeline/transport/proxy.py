"""Connect to a server through a proxy: CONNECT, then the server's own TLS from end to end.

The proxy sees the name of the host, but neither our certificate nor a token. If its address is https, the
server's TLS is inside the proxy's.
"""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import SecretStr

from pipeline.errors import CredentialsError, TlsError
from pipeline.transport.tls import Keys, explain, raced
from pipeline.wording import Sentence

_HEAD_BYTES_MAX = 16 * 1024
OF_PROXY = Keys("proxy_url", "proxy_ca_file")
_LATER = frozenset({408, 425, 429})  # statuses below 500 that ask for a retry if a proxy sends them
_Protocol = TypeVar("_Protocol", bound=asyncio.Protocol)


class ProxyAwayError(ConnectionError):
    """The proxy cannot connect now, and nothing was sent; a later attempt may succeed."""

    def __init__(self, reason: Sentence) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, with our credentials for it."""

    host: str
    port: int
    context: ssl.SSLContext | None = None  # for its own TLS; None: plain HTTP
    credentials: SecretStr | None = None  # `USER:PASSWORD`
    keys: Keys = OF_PROXY

    @property
    def name(self) -> str:
        """The proxy's address, without credentials."""
        return f"{'http' if self.context is None else 'https'}://{_authority(self.host, self.port)}"

    async def connect(
        self, host: str, port: int, context: ssl.SSLContext, new_protocol: Callable[[], _Protocol]
    ) -> tuple[asyncio.Transport, _Protocol]:
        """Open a TLS connection to a server, for a new protocol (OSError: the server's TLS failed).

        ProxyAwayError: the proxy cannot be reached, or cannot reach the server. CredentialsError: it does not
        accept our credentials. TlsError: it forbids this server, is not trusted, or is not an HTTP proxy.
        """
        tunnel = await self._tunnel(_authority(host, port))
        protocol = new_protocol()
        try:
            loop = asyncio.get_running_loop()
            secured = await loop.start_tls(tunnel, protocol, context, server_hostname=host)
        except BaseException:
            tunnel.abort()
            raise
        if secured is None:
            raise ConnectionResetError  # before its TLS
        protocol.connection_made(secured)
        return secured, protocol

    async def _tunnel(self, server: str) -> asyncio.Transport:
        """Open a connection to the server, ready for its TLS handshake; same errors as `connect`."""
        loop = asyncio.get_running_loop()
        try:
            transport, reply = await loop.create_connection(
                _Reply,
                sock=await raced(self.host, self.port),
                ssl=self.context,
                server_hostname=None if self.context is None else self.host,
            )
        except ssl.SSLError as error:
            raise explain(error, self.name, self.keys) or self._away(error.reason) from None
        except OSError as error:
            raise self._away(error) from None
        try:
            transport.write(self._request(server))
            self._judge(await reply.head, server)
        except BaseException:
            transport.abort()
            raise
        return transport

    def _away(self, why: OSError | str | None) -> ProxyAwayError:
        reason = Sentence("transport.proxy_unreachable", proxy=self.name, why=why, address=self.keys.address)
        return ProxyAwayError(reason)

    def _request(self, server: str) -> bytes:
        lines = [f"CONNECT {server} HTTP/1.1", f"Host: {server}"]
        if self.credentials is not None:
            secret = b64encode(self.credentials.get_secret_value().encode()).decode("ascii")
            lines.append(f"Proxy-Authorization: Basic {secret}")
        return "\r\n".join([*lines, "", ""]).encode("ascii")

    def _judge(self, head: bytes, server: str) -> None:
        """Return if the proxy has opened the tunnel; same errors as `connect`."""
        version, _, rest = head.partition(b" ")
        if not head:
            raise ProxyAwayError(Sentence("transport.proxy_closed", proxy=self.name, server=server))
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise TlsError(
                Sentence("transport.proxy_speaks_no_http", proxy=self.name, address=self.keys.address)
            )
        match int(rest[:3]):
            case status if 200 <= status < 300:
                return
            case 401 | 407 as status:
                offers = b"\nproxy-authenticate: "
                is_other = offers in head.lower() and offers + b"basic" not in head.lower()
                key = "transport.proxy_without_basic" if is_other else "transport.proxy_rejects_credentials"
                raise CredentialsError(Sentence(key, proxy=self.name, status=status))
            case status if status >= 500 or status in _LATER:
                reason = Sentence("transport.proxy_no_route", proxy=self.name, status=status, server=server)
                raise ProxyAwayError(reason)
            case status:
                reason = Sentence("transport.proxy_forbids", proxy=self.name, status=status, server=server)
                raise TlsError(reason)


class _Reply(asyncio.Protocol):
    """Reads the head of a proxy's reply to CONNECT; empty if the connection ends first."""

    def __init__(self) -> None:
        self.head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._read = b""

    def data_received(self, data: bytes) -> None:
        """Receive bytes. The server waits for our handshake, so nothing follows the head."""
        self._read += data
        is_whole = b"\r\n\r\n" in self._read or len(self._read) > _HEAD_BYTES_MAX
        if not self.head.done() and (is_whole or not b"HTTP/".startswith(self._read[:5])):
            self.head.set_result(self._read)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        if not self.head.done():
            self.head.set_result(b"")


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
