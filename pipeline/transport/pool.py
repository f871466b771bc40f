"""A transport for httpx over aiohttp's connections, whose pool stays fast with many of them.

Only this module uses aiohttp; senders use httpx (docs/adr/0016). aiohttp's automatic features are off:
redirects, cookies, proxies, netrc, decompression, extra headers, timeouts, and also retries, because only the
caller knows what a second request costs.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import cast

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http_parser import RawResponseMessage
from aiohttp.tracing import Trace

from pipeline.files.open_files import open_files_allowed
from pipeline.transport.proxy import Proxy
from pipeline.transport.retry import FRESH_CONNECTION, REFUSALS, REQUEST_ID, NetworkFailure

_KEEP_ALIVE_S = 15.0
_SENDING = "http11.send_request_headers.started"
"""Event of httpx's `trace` extension: a request has its connection and is about to be sent."""
_SILENCE_S = 0.25  # how long a fresh connection must stay silent before a request is sent on it
_OTHER_FILES = 40  # how many files a run has open besides its connections
_HINTS_MAX = 100  # how many 1xx replies may precede a reply; each takes memory
_CONNECTIONS_TRIED_MAX = 2  # how many connections are tried for one request

_AS_HTTPX_SAYS = (
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ClientOSError, httpx.ReadError),
    (aiohttp.ClientError, httpx.RemoteProtocolError),
    (OSError, httpx.ReadError),
)
"""aiohttp's exception classes with their equivalents in httpx, specific ones before general ones."""


def connections_allowed(count: int) -> int:
    """Return `count`, or less if this process may not open that many connections to each of two servers."""
    allowed = open_files_allowed(2 * count + _OTHER_FILES)
    return max(min((allowed - _OTHER_FILES) // 2, count), 1)


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Connections to one server, each kept for another request only after a complete response.

    A connection that receives bytes without an open request is closed, because they would be taken for the
    next reply (aiohttp issue 13656). So is one with a refusal that lacks the request's id: the refusal may
    consist of such bytes. Three extensions of requests are supported: `trace`, with one event (the request is
    about to be sent), `FRESH_CONNECTION` and `REQUEST_ID`.
    """

    def __init__(self, context: ssl.SSLContext, connections_max: int, proxy: Proxy | None = None) -> None:
        """Start without connections; open at most `connections_max`. Needs a running event loop."""
        self._session = aiohttp.ClientSession(
            connector=_Connector(context=context, limit=connections_max, proxy=proxy),
            timeout=aiohttp.ClientTimeout(),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            trust_env=False,
            auto_decompress=False,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request whose body is in memory, and return its response, whose body is still to be read."""
        departure = _Departure(request)
        _leaving.set(departure)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
        try:
            response = await self._session.request(
                request.method,
                str(request.url),
                headers=headers,
                data=request.read() or None,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise _as_httpx(error) from (error.__cause__ or error)
        is_spoilt = departure.protocol is not None and departure.protocol.is_spoilt
        if is_spoilt and departure.needs_fresh and response.status in REFUSALS:
            response.close()
            raise NetworkFailure("broken")  # none of its replies can be trusted
        return httpx.Response(response.status, headers=response.raw_headers, stream=_Body(response))

    async def aclose(self) -> None:
        """Close every connection without waiting for the server."""
        await self._session.close()


class _Body(httpx.AsyncByteStream):
    """The body of a response as it arrives: its own iterator, because a generator costs more."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _as_httpx(error) from (error.__cause__ or error)
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Close the connection, unless the body was read completely: then it is kept for another request."""
        self._response.close()


@dataclass(slots=True)
class _Departure:
    request: httpx.Request
    has_left: bool = False
    protocol: "_Protocol | None" = None

    @property
    def needs_fresh(self) -> bool:
        return bool(self.request.extensions.get(FRESH_CONNECTION))


_leaving: ContextVar[_Departure | None] = ContextVar("_leaving", default=None)  # the current task's


class _Protocol(ResponseHandler):
    """Reads replies for aiohttp; closes a connection that receives bytes without an open request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._is_answered, self._hint_count = True, 0
        self._request_id: str | None = None
        self.is_spoilt = False  # true if a reply came without a request, after another one or before all

    def expect_reply(self, request: httpx.Request) -> None:
        """Record that a request is about to be sent, so that bytes from now on are its reply."""
        self._is_answered = False
        self._request_id = request.extensions.get(REQUEST_ID)

    def feed_data(self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0) -> None:
        """Receive the head of a reply; a 1xx is followed by another head."""
        message, _ = data
        self.is_spoilt |= self._is_answered
        self._is_answered = message.code >= 200
        self._hint_count = 0 if self._is_answered else self._hint_count + 1
        if self._hint_count > _HINTS_MAX:
            self.abort()
            return
        if message.code in REFUSALS and self._request_id not in message.headers.values():
            self.force_close()
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        """Receive bytes. TLS session tickets are not among them: the layer below handles those."""
        is_complete = self._payload is None or self._payload.is_eof()
        if data and self._is_answered and is_complete:
            self.force_close()
            self.close()
        else:
            super().data_received(data)


class _Connector(aiohttp.TCPConnector):
    """aiohttp's pool, which returns a connection only when a request may be sent, and once per request."""

    def __init__(self, *, context: ssl.SSLContext, limit: int, proxy: Proxy | None) -> None:
        super().__init__(ssl=context, limit=limit, keepalive_timeout=_KEEP_ALIVE_S)
        self._context, self._way = context, proxy
        self._factory = cast("partial[ResponseHandler]", partial(_Protocol, self._loop))

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's signature
    ) -> Connection:
        """Return a connection, new or kept, once the request's trace permits sending.

        ClientConnectionError: a second one is requested, as aiohttp does for a GET without a reply.
        NetworkFailure: held back; or every connection was closed, or received bytes, before sending.
        """
        departure = _leaving.get()
        if departure is None or departure.has_left:
            raise aiohttp.ClientConnectionError("sent already")
        for _ in range(_CONNECTIONS_TRIED_MAX):
            connection = await super().connect(req, traces, timeout)
            if departure.needs_fresh:
                await asyncio.sleep(_SILENCE_S)
            if await _may_leave(departure.request, connection):
                assert isinstance(connection.protocol, _Protocol)
                departure.has_left, departure.protocol = True, connection.protocol
                connection.protocol.expect_reply(departure.request)
                return connection
            connection.close()
        raise NetworkFailure("connect")

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's signature
    ) -> ResponseHandler:
        """Connect, through any proxy; aiohttp's own code would show our certificate to the proxy."""
        if self._way is None:
            return await super()._create_connection(req, traces, timeout)
        assert req.url.raw_host is not None
        assert req.url.port is not None
        try:
            _, protocol = await self._way.connect(
                req.url.raw_host, req.url.port, self._context, self._factory
            )
        except OSError as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return protocol

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        """Return a kept connection, unless the request needs a fresh one."""
        departure = _leaving.get()
        return None if departure is not None and departure.needs_fresh else await super()._get(key, traces)


async def _may_leave(request: httpx.Request, connection: Connection) -> bool:
    """Wait until a request may be sent (NetworkFailure: held back); True if its connection is usable."""
    if (trace := request.extensions.get("trace")) is not None:
        try:
            await trace(_SENDING, {})
        except NetworkFailure:
            connection.release()  # held back, but still usable
            raise
        except BaseException:
            # Cancelled here: no other code can close the connection.
            connection.close()
            raise
    return connection.protocol is not None and connection.protocol.is_connected()


def _as_httpx(error: aiohttp.ClientError | OSError) -> httpx.TransportError:
    """Translate an exception of aiohttp; its cause may be OpenSSL's, which has the message."""
    return next(theirs for ours, theirs in _AS_HTTPX_SAYS if isinstance(error, ours))(str(error))
