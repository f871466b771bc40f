"""httpx's transport over the connections of aiohttp, whose pool stays quick however many there are.

The only client of aiohttp; who sends requests knows httpx alone (docs/adr/0016). What aiohttp would do by
itself is off: no redirect is followed, no cookie kept, no proxy or netrc read, nothing decompressed, no
header added, no time limit kept, and nothing sent twice, because only the caller knows what a second request
costs.
"""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import aiohttp
import httpx
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from pipeline.transport.retry import NetworkFailure

_KEEP_ALIVE_S = 15.0
_SENDING = "http11.send_request_headers.started"
"""The event of httpx's `trace` extension for a request that has its connection and is about to leave."""

_AS_HTTPX_SAYS = (
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ClientOSError, httpx.ReadError),
    (aiohttp.ClientError, httpx.RemoteProtocolError),
    (OSError, httpx.ReadError),
)
"""aiohttp's classes and httpx's for the same thing, the special before the general."""


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Connections to one server, kept for the next request after a whole response and dropped otherwise.

    Of a request's extensions it honours `trace`, with one event: the request is about to leave.
    """

    def __init__(self, context: ssl.SSLContext, connections_max: int) -> None:
        """Start without a connection, for at most so many at once. Called where an event loop runs."""
        self._session = aiohttp.ClientSession(
            connector=_Connector(ssl=context, limit=connections_max, keepalive_timeout=_KEEP_ALIVE_S),
            timeout=aiohttp.ClientTimeout(),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            trust_env=False,
            auto_decompress=False,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, whose body is in memory, and return its response with the body still to come."""
        _leaving.set(request)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
        with _errors_of_httpx():
            response = await self._session.request(
                request.method,
                str(request.url),
                headers=headers,
                data=request.read() or None,
                allow_redirects=False,
            )
        return httpx.Response(response.status, headers=response.raw_headers, stream=_Body(response))

    async def aclose(self) -> None:
        """Close every connection, without waiting for the other side to do so."""
        await self._session.close()


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        """Close the connection, unless the body was read to its end: then the next request has it."""
        self._response.close()


_leaving: ContextVar[httpx.Request | None] = ContextVar("_leaving", default=None)
"""The request of this task that has not left yet."""


class _Connector(aiohttp.TCPConnector):
    """aiohttp's pool, which hands out a connection only when a request may leave on it, and only once."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's signature
    ) -> Connection:
        """A connection, new or kept, once the request's trace lets it go.

        Raises:
            ClientConnectionError: it is asked for again, as aiohttp does for a GET that brought nothing.
        """
        request = _leaving.get()
        if request is None:
            raise aiohttp.ClientConnectionError("sent already")
        connection = await super().connect(req, traces, timeout)
        _leaving.set(None)
        if (trace := request.extensions.get("trace")) is not None:
            try:
                await trace(_SENDING, {})
            except NetworkFailure:
                connection.release()  # held back, and as good as before
                raise
            except BaseException:
                # Cancelled here: no other code knows of the connection.
                connection.close()
                raise
        return connection


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    """What aiohttp raises, as httpx's exception."""
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        for ours, theirs in _AS_HTTPX_SAYS:
            if isinstance(error, ours):
                # Some of aiohttp's own are OpenSSL's by class, and lack OpenSSL's message.
                raise theirs(str(error)) from (error.__cause__ or error)
        raise
