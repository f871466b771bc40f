"""The client for one API on one server. `exchange.py` and `pool.py` carry its requests."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

import httpx

from pipeline.transport.exchange import HEADERS, OpenTransport, exchange, plainly_https, transport_of
from pipeline.transport.rate_limiter import Pace
from pipeline.transport.retry import NetworkFailure
from pipeline.transport.tokens import Token, Tokens


@dataclass(slots=True)
class _Connections:
    """A transport, with the number of requests that are using it."""

    transport: httpx.AsyncBaseTransport
    in_flight_count: int = 0
    retired: bool = False

    async def close_if_done(self) -> None:
        if self.retired and self.in_flight_count == 0:
            await self.transport.aclose()


class Client:
    """Sends requests for one API to one server; reuses connections only after complete responses."""

    def __init__(  # noqa: PLR0913  (an address, and the limits on the way to it)
        self,
        base_url: str,
        *,
        context: ssl.SSLContext,
        in_flight_max: int,
        tokens: Tokens | None = None,
        door: Pace | None = None,
        open_transport: OpenTransport = transport_of,
    ) -> None:
        """Check the address (ConfigurationError: see `plainly_https`); no connection is opened yet.

        Args:
            base_url: https, perhaps with a path; requests' paths are appended to it.
            context: From `tls.client_context`.
            in_flight_max: Maximum number of simultaneous connections and requests.
            tokens: Source of the Authorization header; None for mutual TLS.
            door: The caller's rate limit, applied again at the moment of sending. New connections take time
                and open ones do not, so requests that started a tenth of a second apart could otherwise be
                sent together.
            open_transport: Opens the transport.
        """
        self._base_url = plainly_https(base_url, "base_url")
        self._urls: dict[bytes, httpx.URL] = {}
        self._headers = httpx.Headers({"Host": httpx.URL(base_url).netloc.decode(), **HEADERS}).raw
        self._tokens = tokens
        self._door = door
        self._open = partial(open_transport, context, in_flight_max)
        self._line: _Connections | None = None

    async def __aenter__(self) -> Self:
        self._line = _Connections(self._open())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._line is not None:
            await self._line.transport.aclose()
            self._line = None

    async def token(self) -> Token | None:
        """Return the token for the next request, or None; same errors as `Tokens.current`.

        Callers get it before they plan a request, so that waiting for it counts neither towards the request's
        deadline nor towards its attempts.
        """
        return None if self._tokens is None else await self._tokens.current()

    async def renew(self, rejected: Token) -> Token:
        """Return the token to use after a 401 for `rejected`, fetched once; errors as in `Tokens.refresh`."""
        assert self._tokens is not None
        return await self._tokens.refresh(rejected)

    async def send(
        self,
        request: httpx.Request,
        *,
        deadline_s: float,
        token: Token | None = None,
        may_leave: Callable[[], bool] | None = None,
    ) -> httpx.Response:
        """Send one request, once, and read the whole response, whatever its status.

        The request has a path instead of an address, and its own headers. The deadline covers everything from
        connecting to the last byte. The token is from `token` or `renew`; by default, the current one.
        `may_leave` is called when the request has its connection and is about to be sent. Same errors as
        `exchange` and `token`.
        """
        token = token or await self.token()
        line = self._line
        assert line is not None, "the client is not open"
        line.in_flight_count += 1
        try:
            return await exchange(
                line.transport, self._addressed(request, token, may_leave), deadline_s=deadline_s
            )
        finally:
            line.in_flight_count -= 1
            if line.retired:
                await line.close_if_done()

    async def drop_connections(self) -> None:
        """Stop using all open connections, because an answer has another request's correlation id.

        A connection, or a gateway behind it, is out of step. Exchanges in progress finish normally.
        """
        if (old := self._line) is not None:
            self._line = _Connections(self._open())
            old.retired = True
            await old.close_if_done()

    def _addressed(
        self, request: httpx.Request, token: Token | None, may_leave: Callable[[], bool] | None
    ) -> httpx.Request:
        path = request.url.raw_path
        if (url := self._urls.get(path)) is None:
            url = self._urls[path] = httpx.URL(self._base_url + path.decode("ascii"))
        headers = [*self._headers, *request.headers.raw]
        if token is not None:
            headers.append((b"Authorization", b"Bearer " + token.value.encode("ascii")))
        extensions = {**request.extensions, "trace": partial(_held_back, self._door, may_leave)}
        return httpx.Request(
            request.method, url, headers=headers, stream=request.stream, extensions=extensions
        )


async def _held_back(
    door: Pace | None, may_leave: Callable[[], bool] | None, event: str, _details: Mapping[str, object]
) -> None:
    """Hold a request back until it may be sent, as httpx's extension `trace` (NetworkFailure: it may not)."""
    if event != "http11.send_request_headers.started":
        return
    if door is not None and not await door.slot_unless_ended():
        raise NetworkFailure("held")
    if may_leave is not None and not may_leave():
        raise NetworkFailure("held")
