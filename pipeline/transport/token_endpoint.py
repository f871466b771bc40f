"""The token endpoint of an identity provider: client credentials in, an access token out."""

import ssl
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlencode, urlsplit

import httpx

from pipeline.errors import ConfigurationError, CredentialsError, ProtocolError
from pipeline.transport.exchange import HEADERS, once, plainly_https
from pipeline.transport.proxy import Proxy
from pipeline.transport.retry import NetworkFailure, pause_s
from pipeline.transport.tokens import TokenUnavailable
from pipeline.wording import Sentence
from schemas.strict import parse
from schemas.token import TokenRequest, TokenResponse

TOKEN_DEADLINE_S = 10.0


class TokenEndpoint:
    """Calls the token endpoint of an identity provider: the `fetch` of `Tokens`.

    Source: API reference, "Authentication": a GET with a form in its body. Some servers in between drop
    the body of a GET; for them the method can be POST.
    """

    def __init__(
        self,
        url: str,
        *,
        context: ssl.SSLContext,
        method: Literal["GET", "POST"] = "GET",
        proxy: Proxy | None = None,
    ) -> None:
        """Check the address.

        Args:
            url: https, without a query: the secret travels in the body alone.
            context: From `tls.client_context`, without a client certificate.
            method: As the reference documents it, or POST.
            proxy: On the way, if there is one.

        Raises:
            ConfigurationError: the address is not https, or has a user, a query or a fragment.
        """
        self._url = plainly_https(url, "token_url")
        self._context = context
        self._method = method
        self._proxy = proxy

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
        headers = {**HEADERS, "Content-Type": "application/x-www-form-urlencoded"}
        http_request = httpx.Request(
            self._method, self._url, headers=headers, content=urlencode(form).encode()
        )
        try:
            response = await once(
                http_request, context=self._context, deadline_s=TOKEN_DEADLINE_S, proxy=self._proxy
            )
        except NetworkFailure as failure:
            raise TokenUnavailable(
                Sentence("transport.token_no_answer", where=self._where, kind=failure.kind)
            ) from None
        return self._read(response)

    @property
    def _where(self) -> Sentence:
        return Sentence("transport.token_endpoint", host=urlsplit(self._url).hostname)

    def _read(self, response: httpx.Response) -> TokenResponse:
        match response.status_code:
            case 200:
                pass
            case 400 | 401 | 403 as status:
                raise CredentialsError(
                    Sentence(
                        "transport.http_refuses_client", where=self._where, status=status, method=self._method
                    )
                )
            case status if status in {408, 429} or status >= 500:
                later = Sentence("transport.token_later", where=self._where, status=status)
                raise TokenUnavailable(later, pause_s=pause_s(response.headers, now=datetime.now(UTC)))
            case status:
                raise ConfigurationError(
                    Sentence("transport.http_hands_out", where=self._where, status=status)
                )
        try:
            answer = parse(TokenResponse, response.content)
        except ValueError:
            raise ProtocolError(Sentence("transport.no_token_json", where=self._where)) from None
        if answer.token_type is not None and answer.token_type.casefold() != "bearer":
            raise ProtocolError(Sentence("transport.no_bearer_token", where=self._where))
        value = answer.access_token.get_secret_value()
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise ProtocolError(Sentence("transport.token_not_for_header", where=self._where))
        return answer
