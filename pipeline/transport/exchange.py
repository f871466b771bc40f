"""One request and one response, in httpx's types: every exchange of this program goes through here."""

import asyncio
import ssl
from collections.abc import Callable
from importlib.metadata import version

import httpx

from pipeline.errors import ConfigurationError, IncompleteError, PrecheckError
from pipeline.files.disk_errors import TOO_FEW_FILES
from pipeline.transport import UNREAD
from pipeline.transport.pool import AiohttpTransport
from pipeline.transport.proxy import Proxy
from pipeline.transport.retry import REFUSALS, NetworkFailure
from pipeline.transport.tls import OF_API, Keys, explain
from pipeline.wording import Sentence

BODY_BYTES_MAX = 64 * 1024
HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": f"payee-precheck/{version('payee-precheck')}",
}
"""Headers sent with every request."""

_UNENCODED = frozenset({"", "identity"})

OpenTransport = Callable[[ssl.SSLContext, int], httpx.AsyncBaseTransport]
"""(context from `tls.client_context`, maximum number of connections) -> a transport."""


def transport_of(
    context: ssl.SSLContext, connections_max: int, proxy: Proxy | None = None
) -> httpx.AsyncBaseTransport:
    """Return the transport for requests. Call it inside a running event loop.

    httpx's own transport gets slower with many simultaneous requests (docs/adr/0016). It would be
    `httpx.AsyncHTTPTransport(verify=context, trust_env=False, limits=httpx.Limits(connections_max))`.
    """
    return AiohttpTransport(context, connections_max, proxy)


async def exchange(
    transport: httpx.AsyncBaseTransport, request: httpx.Request, *, deadline_s: float, keys: Keys = OF_API
) -> httpx.Response:
    """Send one request, exactly as given, once, and read the whole response, whatever its status.

    The deadline covers everything from connecting to the last byte. Without an encoded, large or incomplete
    body if the status decides. NetworkFailure: no response; its kind says how far the request got. TlsError:
    the server is not trusted, or offers no permitted TLS. CredentialsError: it refused our certificate.
    """
    failure: NetworkFailure | PrecheckError
    head: httpx.Response | None = None
    try:
        async with asyncio.timeout(deadline_s):
            head = await transport.handle_async_request(request)
            assert isinstance(head.stream, httpx.AsyncByteStream)
            try:
                return await _whole(head, head.stream)
            finally:
                await head.stream.aclose()
    except TimeoutError:
        failure = NetworkFailure("deadline")
    except NetworkFailure as error:
        failure = error
    except httpx.TransportError as error:
        failure = _failure_of(error, request.url, keys)
    if head is not None and head.status_code not in {200, *REFUSALS}:
        return _Whole(head, b"")
    # Raised outside the handler, so that it does not hold the request with headers and body as its context.
    raise failure


async def once(
    request: httpx.Request,
    *,
    context: ssl.SSLContext,
    deadline_s: float,
    keys: Keys,
    proxy: Proxy | None = None,
) -> httpx.Response:
    """Like `exchange`, on a new connection: for an identity provider or a monitoring service."""
    async with transport_of(context, 1, proxy) as transport:
        return await exchange(transport, request, deadline_s=deadline_s, keys=keys)


async def _whole(response: httpx.Response, stream: httpx.AsyncByteStream) -> httpx.Response:
    """Return the response with its body, or with the reason why the body is not read."""
    headers = response.headers
    if "content-encoding" in headers and headers["content-encoding"].strip().casefold() not in _UNENCODED:
        return _Whole(response, b"", Sentence("transport.body_encoded"))
    body = b""
    async for chunk in stream:
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            return _Whole(response, b"", Sentence("transport.body_oversized"))
    return _Whole(response, body)


class _Whole(httpx.Response):
    """A response that already has its body: having httpx read it takes longer than building the request."""

    def __init__(self, response: httpx.Response, body: bytes, unread: Sentence | None = None) -> None:
        stream, extensions = httpx.ByteStream(body), {UNREAD: unread}
        super().__init__(response.status_code, headers=response.headers, stream=stream, extensions=extensions)
        self.headers.encoding = "iso-8859-1"  # as HTTP once said; httpx would try to decode all of them first
        self._body = body

    @property
    def content(self) -> bytes:
        return self._body


def _failure_of(error: httpx.TransportError, url: httpx.URL, keys: Keys) -> NetworkFailure | PrecheckError:
    cause: BaseException | None = error
    named: OSError | None = None
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in TOO_FEW_FILES:
            return IncompleteError(Sentence("transport.open_files_limit_reached"))
        if isinstance(cause, ssl.SSLError):
            return explain(cause, f"{url.host}:{url.port or 443}", keys) or NetworkFailure("tls")
        if isinstance(cause, OSError) and cause.strerror:
            named = cause
        cause = cause.__cause__ or cause.__context__
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.PoolTimeout():
            return NetworkFailure("connect", named)  # so nothing was sent
        case httpx.TimeoutException():
            return NetworkFailure("deadline")
        case _:
            return NetworkFailure("broken", named)


def plainly_https(url: str, what: str, *, has_query: bool = False) -> str:
    """Return an https address, no final slash (ConfigurationError: not https, a user, fragment or query)."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        raise ConfigurationError(Sentence("transport.not_an_address", what=what)) from None
    if parts.scheme != "https" or not parts.host:
        raise ConfigurationError(Sentence("transport.address_not_https", what=what))
    if parts.userinfo or "#" in url or ("?" in url and not has_query):
        raise ConfigurationError(Sentence("transport.address_with_user_or_query", what=what))
    return url.rstrip("/")
