"""Who is asked, and with which token: one API of one server, a token endpoint, a watcher of jobs.

How a request travels is in `pool.py`. An address is read by httpx, and only one that is plainly https
is used.
"""

import ssl
from functools import partial
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlencode

import httpx

from pipeline.errors import ConfigurationError, CredentialsError, ProtocolError
from pipeline.transport.pace import Pace
from pipeline.transport.pool import Pool
from pipeline.transport.retry import FailureKind, NetworkFailure
from pipeline.transport.tokens import Token, Tokens, TokenUnavailable
from schemas.strict import parse
from schemas.token import TokenRequest, TokenResponse
from schemas.wire import Request, Response

__all__ = ["Client", "FailureKind", "NetworkFailure", "TokenEndpoint"]

TOKEN_DEADLINE_S = 10.0


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
        self._base_url = _https(base_url, "base_url")
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


class TokenEndpoint:
    """Calls the token endpoint of an identity provider: the `fetch` of `Tokens`.

    Source: API reference, "Authentication": a GET with a form in its body. Some servers in between drop
    the body of a GET; for them the method can be POST. A GET whose connection ends without an answer is
    sent a second time by aiohttp.
    """

    def __init__(self, url: str, *, context: ssl.SSLContext, method: Literal["GET", "POST"] = "GET") -> None:
        """Check the address.

        Args:
            url: https, without a query: the secret travels in the body alone.
            context: From `tls.client_context`, without a client certificate.
            method: As the reference documents it, or POST.

        Raises:
            ConfigurationError: the address is not https, or has a user, a query or a fragment.
        """
        self._url = _https(url, "token_url")
        self._context = context
        self._method = method

    async def __call__(self, request: TokenRequest) -> TokenResponse:
        """Ask once for a token.

        Raises:
            TokenUnavailable: no answer, or one that says "later".
            CredentialsError: the identity provider refused the client.
            ProtocolError: the answer is no token.
            ConfigurationError: there is no token endpoint at this address; or, as TlsError, no trusted way
                to it.
        """
        form = {**request.model_dump(), "client_secret": request.client_secret.get_secret_value()}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode(form).encode()
        # A connection of its own: the next call is most of a token's life away.
        pool = Pool(self._context, 1)
        try:
            response = await pool.exchange(
                self._method, self._url, headers, body, deadline_s=TOKEN_DEADLINE_S
            )
        except NetworkFailure as failure:
            raise TokenUnavailable(f"{self._where}: no answer ({failure.kind})") from None
        finally:
            await pool.close()
        return self._read(response)

    @property
    def _where(self) -> str:
        return f"token endpoint {httpx.URL(self._url).host}"

    def _read(self, response: Response) -> TokenResponse:
        match response.status:
            case 200:
                pass
            case 400 | 401 | 403:
                raise CredentialsError(
                    f"{self._where}: HTTP {response.status}, it refuses the client; check client_id, the "
                    f"secret and the scope, and whether token_method {self._method} is the right one"
                )
            case status if status in {408, 429} or status >= 500:
                raise TokenUnavailable(f"{self._where}: HTTP {status}")
            case status:
                raise ConfigurationError(
                    f"{self._where}: HTTP {status}, it hands out no tokens here; "
                    "check token_url and token_method in the profile"
                )
        try:
            answer = parse(TokenResponse, response.body)
        except ValueError:
            raise self._no_token("its answer is not the JSON of RFC 6749") from None
        if answer.token_type is not None and answer.token_type.casefold() != "bearer":
            raise self._no_token("it gives a token of another type than Bearer")
        value = answer.access_token.get_secret_value()
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise self._no_token("it gives a token that does not fit into a header")
        return answer

    def _no_token(self, what: str) -> ProtocolError:
        return ProtocolError(f"{self._where}: {what}; check token_url, or ask the provider")


async def get(url: str, word: str, *, context: ssl.SSLContext, deadline_s: float) -> int:
    """Call `URL/word` once, and give the status of the answer, which has nothing else to say.

    Raises:
        ConfigurationError: the address is not https, or has a user, a query or a fragment.
        NetworkFailure: there is no answer.
        TlsError: the server is not trusted.
    """
    address = f"{_https(url, 'ping')}/{word}"
    pool = Pool(context, 1)
    try:
        return (await pool.exchange("GET", address, {}, None, deadline_s=deadline_s)).status
    finally:
        await pool.close()


def _https(url: str, what: str) -> str:
    """The address without a slash at its end, if it is one that a secret may be sent to."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        raise ConfigurationError(f"{what}: not an address; give one such as https://host/path") from None
    if parts.scheme != "https" or not parts.host:
        raise ConfigurationError(f"{what}: it must start with https:// and name a host; nothing else is used")
    if parts.userinfo or parts.query or parts.fragment or "?" in url or "#" in url:
        raise ConfigurationError(f"{what}: a user, a query or a fragment has no place in it; remove them")
    return url.rstrip("/")
