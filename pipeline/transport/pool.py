"""Connections to one server that are kept, and one exchange on one of them. The only client of aiohttp.

Its session is called directly: a layer over it costs half as much again (docs/adr/0012). What it would do
by itself is off: no redirect is followed, no cookie kept, no proxy or netrc read, nothing decompressed,
and no time limit kept beside ours. A POST is never sent twice, because only the caller knows what a second
one costs.
"""

import asyncio
import ssl
from collections.abc import AsyncIterable, Iterable, Mapping
from importlib.metadata import version
from urllib.parse import urlsplit

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from pipeline.errors import PrecheckError
from pipeline.transport.pace import Pace
from pipeline.transport.retry import FailureKind, NetworkFailure
from pipeline.transport.tls import explain
from schemas.wire import Response

BODY_BYTES_MAX = 64 * 1024
_KEEP_ALIVE_S = 15.0
HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": f"payee-precheck/{version('payee-precheck')}",
}


class Pool:
    """The open connections, and how an exchange on one of them ends.

    A connection is kept for the next request after a whole response, and dropped after anything else.
    """

    def __init__(self, context: ssl.SSLContext, connections_max: int, door: Pace | None = None) -> None:
        """Start without a connection. Called where an event loop runs.

        Args:
            context: From `tls.client_context`.
            connections_max: At once.
            door: The pace at which requests leave; None for any.
        """
        self._session = aiohttp.ClientSession(
            connector=_Connector(context, connections_max, door),
            headers=HEADERS,
            timeout=aiohttp.ClientTimeout(),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
        )
        self._in_flight_count = 0
        self._retired = False

    async def exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, deadline_s: float
    ) -> Response:
        """Send one request and read the whole response, whatever its status.

        Args:
            method: GET or POST; a GET whose kept connection ends without an answer is sent a second time.
            url: An https address.
            headers: They win over those of every request.
            body: None for none.
            deadline_s: For everything from connecting to the last byte.

        Raises:
            NetworkFailure: there is no response, and its kind says how far it came.
            TlsError: the server is not trusted, or speaks no TLS that the rules allow.
            CredentialsError: the server refused the client certificate.
        """
        failure: NetworkFailure | PrecheckError
        self._in_flight_count += 1
        try:
            async with (
                asyncio.timeout(deadline_s),
                self._session.request(
                    method, url, headers=headers, data=body, allow_redirects=False
                ) as response,
            ):
                return await whole(response.status, response.raw_headers, response.content.iter_any())
        except TimeoutError:
            failure = NetworkFailure("deadline")
        except NetworkFailure as error:
            failure = error
        except (aiohttp.ClientError, OSError) as error:
            failure = failure_of(error, url, connecting=aiohttp.ClientConnectorError)
        finally:
            self._in_flight_count -= 1
            if self._retired and self._in_flight_count == 0:
                await self.close()
        # Raised out here, it drags no request with headers and body along as its context.
        raise failure

    async def retire(self) -> None:
        """Close as soon as the last exchange has ended."""
        self._retired = True
        if self._in_flight_count == 0:
            await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


class _Connector(aiohttp.TCPConnector):
    """aiohttp's pool, which hands out a connection only when a request may leave on it at once."""

    def __init__(self, context: ssl.SSLContext, connections_max: int, door: Pace | None) -> None:
        super().__init__(ssl=context, limit=connections_max, keepalive_timeout=_KEEP_ALIVE_S)
        self._door = door

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's signature
    ) -> Connection:
        """A connection, new or kept, once the door lets one more request through."""
        connection = await super().connect(req, traces, timeout)
        if self._door is not None:
            try:
                await self._door.slot()
            except BaseException:
                # Cancelled here, nobody else knows of the connection.
                connection.close()
                raise
        return connection


async def whole(
    status: int, raw_headers: Iterable[tuple[bytes, bytes]], chunks: AsyncIterable[bytes]
) -> Response:
    """Read a response to its end, unless it is one that nobody asked for in that form.

    Raises:
        NetworkFailure: it is encoded, or too large.
    """
    headers = _lower_case(raw_headers)
    if headers.get("content-encoding", "identity").strip().casefold() not in {"", "identity"}:
        raise NetworkFailure("encoded")
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise NetworkFailure("oversized")
    return Response(status, headers, body)


def _lower_case(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; a repeated one becomes a list (RFC 9110, section 5.2)."""
    named: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        named[name] = f"{named[name]}, {value}" if name in named else value
    return named


def failure_of(error: Exception, url: str, *, connecting: type[Exception]) -> NetworkFailure | PrecheckError:
    """Find what went wrong below an HTTP library, whose own classes tell too little apart.

    Args:
        error: what the library raised.
        url: of the request.
        connecting: what the library raises where there is no connection.
    """
    kind: FailureKind = "broken"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, connecting):
            kind = "connect"
        elif isinstance(cause, ssl.SSLError):
            server = urlsplit(url)
            return explain(cause, f"{server.hostname}:{server.port or 443}") or NetworkFailure("tls")
        cause = cause.__cause__ or cause.__context__
    return NetworkFailure(kind)
