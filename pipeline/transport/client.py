"""The client of one API of one server. How its requests travel is in `pool.py`."""

import ssl
from functools import partial
from types import TracebackType
from typing import Self

from pipeline.transport.once import plainly_https
from pipeline.transport.pace import Pace
from pipeline.transport.pool import Pool
from pipeline.transport.retry import FailureKind, NetworkFailure
from pipeline.transport.tokens import Token, Tokens
from schemas.wire import Request, Response

__all__ = ["Client", "FailureKind", "NetworkFailure"]


class Client:
    """Sends the requests of one API to one server. An async context manager.

    A connection is kept for the next request after a whole response, and dropped after anything else.
    """

    def __init__(
        self,
        base_url: str,
        *,
        context: ssl.SSLContext,
        in_flight_max: int,
        tokens: Tokens | None = None,
        rate_per_s: float | None = None,
    ) -> None:
        """Check the address; nothing is opened yet.

        Args:
            base_url: https, with or without a path of its own, which the paths of requests follow.
            context: From `tls.client_context`.
            in_flight_max: Connections at once, and so requests at once.
            tokens: What fills the Authorization header; None under mutual TLS.
            rate_per_s: The rate that the caller's own `Pace` keeps, to be kept once more at the door.
                Connecting takes a while and a kept connection takes none, so that requests which
                started a tenth of a second apart would otherwise leave together.

        Raises:
            ConfigurationError: the address is not https, or has a user, a query or a fragment; or the
                rate is out of range.
        """
        self._base_url = plainly_https(base_url, "base_url")
        self._tokens = tokens
        door = None if rate_per_s is None else Pace(rate_per_s)
        self._open_pool = partial(Pool, context, in_flight_max, door)
        self._pool: Pool | None = None

    async def __aenter__(self) -> Self:
        self._pool = self._open_pool()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def token(self) -> Token | None:
        """The token that the next request should carry; None where this client needs none.

        Asked for before a request is planned, so that a wait for the identity provider is charged to
        neither the request's deadline nor its attempts. Raises as `Tokens.current`.
        """
        return None if self._tokens is None else await self._tokens.current()

    async def renew(self, rejected: Token) -> Token:
        """The token to use after a 401 for `rejected`; one fetch, however many callers come with it.

        Raises:
            CredentialsError: what was refused is itself a fresh replacement: no token will do.
            PrecheckError: as `Tokens.current`.
        """
        assert self._tokens is not None
        return await self._tokens.refresh(rejected)

    async def send(self, request: Request, *, deadline_s: float, token: Token | None = None) -> Response:
        """Send one request, once, and read the whole response, whatever its status.

        Args:
            request: What to send; its headers win over the client's own.
            deadline_s: For everything from connecting to the last byte.
            token: From `token` or `renew`; without it, the current one.

        Raises:
            NetworkFailure: there is no response, and its kind says how far it came.
            TlsError: the server is not trusted, or speaks no TLS that the rules allow.
            CredentialsError: the server refused the client certificate.
            PrecheckError: no token could be had; as `Tokens.current`.
        """
        pool = self._pool
        assert pool is not None, "the client is not open"
        headers = request.headers
        if (token := token or await self.token()) is not None:
            headers = {**headers, "Authorization": f"Bearer {token.value}"}
        url = self._base_url + request.path
        return await pool.exchange("POST", url, headers, request.body, deadline_s=deadline_s)

    async def drop_connections(self) -> None:
        """Use no open connection again, after an answer that must not be trusted.

        An answer with the correlation id of another request means that a connection, or what is behind
        it, has lost its place. Exchanges under way end on their own.
        """
        if (old := self._pool) is not None:
            self._pool = self._open_pool()
            await old.retire()
