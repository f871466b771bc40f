"""One request on a connection of its own, by httpx: to an identity provider, to a watcher of jobs.

httpx sends what it is given, once, and does nothing by itself: its transport follows no redirect, keeps
no cookie, reads no proxy or netrc, and logs no address.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Literal

import httpx

from pipeline.errors import ConfigurationError, PrecheckError
from pipeline.transport.pool import HEADERS, failure_of, whole
from pipeline.transport.retry import NetworkFailure
from schemas.wire import Response


async def once(  # noqa: PLR0913  (a request, and how it is sent)
    method: Literal["GET", "POST"],
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    context: ssl.SSLContext,
    deadline_s: float,
) -> Response:
    """Send one request, and read the whole response, whatever its status.

    Args:
        method: GET with a body travels as it is.
        url: As `plainly_https` gives it, with a path behind it or not.
        headers: They win over those of every request.
        body: None for none.
        context: From `tls.client_context`.
        deadline_s: For everything from connecting to the last byte.

    Raises:
        NetworkFailure: there is no response, and its kind says how far it came.
        TlsError: the server is not trusted, or speaks no TLS that the rules allow.
    """
    failure: NetworkFailure | PrecheckError
    request = httpx.Request(method, url, headers={**HEADERS, **(headers or {})}, content=body)
    try:
        async with (
            asyncio.timeout(deadline_s),
            httpx.AsyncHTTPTransport(verify=context, trust_env=False) as transport,
        ):
            response = await transport.handle_async_request(request)
            try:
                return await whole(response.status_code, response.headers.raw, response.aiter_raw())
            finally:
                await response.aclose()
    except TimeoutError:
        failure = NetworkFailure("deadline")
    except NetworkFailure as error:
        failure = error
    except (httpx.TransportError, OSError) as error:
        failure = failure_of(error, url, connecting=httpx.ConnectError)
    # Raised out here, it drags no request with headers and body along as its context.
    raise failure


def plainly_https(url: str, what: str) -> str:
    """The address without a slash at its end, if it is one that a secret may be sent to.

    Raises:
        ConfigurationError: it is not https, or has a user, a query or a fragment; says so of `what`.
    """
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        raise ConfigurationError(f"{what}: not an address; give one such as https://host/path") from None
    if parts.scheme != "https" or not parts.host:
        raise ConfigurationError(f"{what}: it must start with https:// and name a host; nothing else is used")
    if parts.userinfo or parts.query or parts.fragment or "?" in url or "#" in url:
        raise ConfigurationError(f"{what}: a user, a query or a fragment has no place in it; remove them")
    return url.rstrip("/")
