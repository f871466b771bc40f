"""The token endpoint of an identity provider: client credentials in, an access token out."""

import asyncio
import ssl
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlencode, urlsplit

import httpx
import structlog

from pipeline.errors import ConfigurationError, CredentialsError, IncompleteError, ProtocolError
from pipeline.transport.exchange import HEADERS, once, plainly_https
from pipeline.transport.masking import masked, with_detail
from pipeline.transport.proxy import Proxy
from pipeline.transport.retry import NetworkFailure, pause_s
from pipeline.transport.tls import Keys
from pipeline.transport.tokens import TokenUnavailable
from pipeline.wording import Sentence
from schemas.strict import parse, parsed_or_empty
from schemas.token import TokenRefusal, TokenRequest, TokenResponse

TOKEN_DEADLINE_S = 10.0
_AGAIN_S = 0.5  # wait before repeating a refusal by what may be one of several servers, or a gateway
_REFUSALS = frozenset({400, 401, 403})
_LATER = frozenset({"temporarily_unavailable", "server_error", "slow_down"})  # temporary, whatever the status

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class TokenEndpoint:
    """Calls the token endpoint of an identity provider: the `fetch` of `Tokens`.

    The API reference sends a GET with a form in its body. Some gateways drop that, so POST is possible too.
    """

    def __init__(
        self,
        url: str,
        *,
        context: ssl.SSLContext,
        method: Literal["GET", "POST"] = "GET",
        proxy: Proxy | None = None,
    ) -> None:
        """Check the address: https, no query, as secrets are sent only in the body (ConfigurationError)."""
        self._url = plainly_https(url, "token_url")
        self._context = context
        self._method = method
        self._proxy = proxy

    async def __call__(self, request: TokenRequest) -> TokenResponse:
        """Request a token; repeat the request once after a 401, or a refusal in a form not the provider's.

        TokenUnavailable: there is no answer, or it says "later". CredentialsError: the client was refused.
        ProtocolError: the answer is not a token. ConfigurationError: there is no token endpoint at this
        address or, as TlsError, no trusted connection to it.
        """
        response = await self._ask(request)
        if response.status_code == 401 or (
            response.status_code in _REFUSALS and not parsed_or_empty(TokenRefusal, response.content).error
        ):
            await asyncio.sleep(_AGAIN_S)
            response = await self._ask(request)
        return self._read(response, request)

    async def _ask(self, request: TokenRequest) -> httpx.Response:
        form = {**request.model_dump(), "client_secret": request.client_secret.get_secret_value()}
        headers = {**HEADERS, "Content-Type": "application/x-www-form-urlencoded"}
        http_request = httpx.Request(
            self._method, self._url, headers=headers, content=urlencode(form).encode()
        )
        try:
            return await once(
                http_request,
                context=self._context,
                deadline_s=TOKEN_DEADLINE_S,
                keys=Keys("token_url"),
                proxy=self._proxy,
            )
        except NetworkFailure as failure:
            raise TokenUnavailable(
                Sentence("transport.token_no_answer", where=self._where, kind=failure.reason)
            ) from None

    @property
    def _where(self) -> Sentence:
        return Sentence("transport.token_endpoint", host=urlsplit(self._url).hostname)

    def _read(self, response: httpx.Response, request: TokenRequest) -> TokenResponse:
        if (status := response.status_code) != 200:
            refusal = parsed_or_empty(TokenRefusal, response.content)
            parts = (refusal.error or refusal.code, refusal.error_description or refusal.detail)
            detail = masked(
                ": ".join(filter(None, parts)).partition("Trace ID:")[0].strip(),
                [request.client_secret.get_secret_value()],
            )
            log.warning("no token", status=status, detail=detail)
            if status in {408, 429} or status >= 500 or (status in _REFUSALS and refusal.error in _LATER):
                later = with_detail(
                    IncompleteError(Sentence("transport.no_token_now", where=self._where, status=status)),
                    detail,
                )
                raise TokenUnavailable(later.reason, pause_s=pause_s(response.headers, now=datetime.now(UTC)))
            refused = Sentence(
                "transport.token_client_refused", where=self._where, status=status, method=self._method
            )
            elsewhere = Sentence("transport.no_tokens_at_address", where=self._where, status=status)
            is_refused = status in _REFUSALS
            error = CredentialsError(refused) if is_refused else ConfigurationError(elsewhere)
            raise with_detail(error, detail)
        try:
            answer = parse(TokenResponse, response.content)
        except ValueError:
            raise ProtocolError(Sentence("transport.token_answer_not_json", where=self._where)) from None
        if answer.token_type is not None and answer.token_type.casefold() != "bearer":
            raise ProtocolError(Sentence("transport.no_bearer_token", where=self._where))
        value = answer.access_token.get_secret_value()
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise ProtocolError(Sentence("transport.token_not_for_header", where=self._where))
        return answer
