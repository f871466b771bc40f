"""The access token: fetched once for all waiting tasks, and renewed in time, without bursts of requests.

Source: API reference, "OAuth 2.0 client credentials". It does not state the life of a token; if the server
does not either, the assumption below applies.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pipeline.errors import CredentialsError, IncompleteError, PrecheckError
from pipeline.wording import Sentence
from schemas.token import TokenRequest, TokenResponse

LIFE_ASSUMED_S = 300
REFRESH_SHARE = 0.8
"""The share of its life that a token is used before it is replaced; a random tenth is added, so that not all
clients do it at the same moment."""
REFRESH_INTERVAL_MIN_S = 5
FETCH_TRIES_MAX = 3
FAILURE_KEPT_MIN_S = 1
FAILURE_KEPT_MAX_S = 30  # if the endpoint wants a longer pause, this run stops, and a later one asks again

Fetch = Callable[[TokenRequest], Awaitable[TokenResponse]]


class TokenUnavailable(Exception):  # noqa: N818  like NetworkFailure: an event to ride out, not an error
    """The endpoint returned no token, but may do so later; the sentence says where, and why."""

    def __init__(self, reason: Sentence, *, pause_s: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Token:
    """An access token, with a generation number that tells it from earlier and later ones."""

    value: str = field(repr=False)
    generation: int


class Tokens:
    """The current access token of one client.

    While a token is valid, a failed fetch does no harm: failures reach callers only if no token is valid.
    """

    def __init__(
        self,
        fetch: Fetch,
        request: TokenRequest,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        retry_wait_s: float = 0.5,
    ) -> None:
        """Start without a token; `fetch` is one call of the token endpoint.

        It raises TokenUnavailable if a retry may help, and a PrecheckError if not. The clock returns
        monotonic seconds, `chance` numbers in [0, 1). `retry_wait_s` is the first wait of a fetch; it doubles
        each time.
        """
        self._fetch = fetch
        self._request = request
        self._clock = clock
        self._chance = chance
        self._retry_wait_s = retry_wait_s
        self._lock = asyncio.Lock()
        self._token: Token | None = None
        self._refresh_at = self._expires_at = self._renewed_at = self._retry_at = float("-inf")
        self._failure: PrecheckError | None = None  # the latest, if no token was left then
        self._failures_count = 0

    async def current(self) -> Token:
        """Return a token that should be valid, fetching or refreshing it if needed.

        IncompleteError: the endpoint cannot be reached, and no token is left. Others as
        `TokenEndpoint.__call__`.
        """
        now = self._clock()
        if self._token is not None:
            refreshed_by_another = now < self._expires_at and self._lock.locked()
            if now < self._refresh_at or refreshed_by_another:
                return self._token
        async with self._lock:
            if self._token is not None and self._clock() < self._refresh_at:
                return self._token
            return await self._obtain()

    async def refresh(self, rejected: Token) -> Token:
        """Return a token to replace one that the server refused with a 401.

        Fetches only if that token is still the current one, so that any number of callers cause one fetch.
        CredentialsError: it was itself a replacement, seconds old. PrecheckError: as for `current`.
        """
        async with self._lock:
            if self._token == rejected:
                if self._clock() < self._renewed_at + REFRESH_INTERVAL_MIN_S:
                    raise CredentialsError(Sentence("transport.renewed_token_refused"))
                # The server refuses it, however long it would have lived.
                self._refresh_at = self._expires_at = float("-inf")
                token = await self._obtain()
                self._renewed_at = self._clock()
                return token
        return await self.current()

    async def _obtain(self) -> Token:
        """Fetch a token, or fall back on one that is still valid. Called with the lock held."""
        now = self._clock()
        living = self._token if now < self._expires_at else None
        # A failure during a token's life does not end the tries after its death.
        due = now >= self._retry_at or (living is None and self._failure is None)
        if due:
            try:
                answer = await self._fetch_with_tries(FETCH_TRIES_MAX if living is None else 1)
            except TokenUnavailable as error:
                self._wait_before_next(error.pause_s)
                failure: PrecheckError = IncompleteError(error.reason)
            except PrecheckError as error:
                self._wait_before_next()
                failure = error
            else:
                return self._keep(answer, asked_at=now)
            self._failure = None if living else failure
        if living is not None:
            return living
        assert self._failure is not None
        raise type(self._failure)(self._failure.reason, advice=self._failure.advice)

    async def _fetch_with_tries(self, tries_max: int) -> TokenResponse:
        import stamina  # slow to import, and a refused run requests no token

        stamina.instrumentation.set_on_retry_hooks([])  # only the result of a token request is logged
        # A context, not a decorator: stamina logs the arguments of decorated functions.
        async for attempt in stamina.retry_context(
            on=_next_try_after,
            attempts=tries_max,
            timeout=None,
            wait_initial=self._retry_wait_s,
            wait_jitter=self._retry_wait_s,
        ):
            with attempt:
                return await self._fetch(self._request)
        raise AssertionError("stamina ends with a value or an exception")

    def _keep(self, answer: TokenResponse, *, asked_at: float) -> Token:
        life_s = LIFE_ASSUMED_S if answer.expires_in is None else answer.expires_in
        share = REFRESH_SHARE + self._chance() / 10
        # A life of zero must not make every check fetch its own token.
        earliest = self._clock() + REFRESH_INTERVAL_MIN_S
        self._refresh_at = max(asked_at + share * life_s, earliest)
        self._expires_at = max(asked_at + life_s, earliest)
        self._failure, self._failures_count = None, 0
        generation = 1 if self._token is None else self._token.generation + 1
        self._token = Token(answer.access_token.get_secret_value(), generation)
        return self._token

    def _wait_before_next(self, pause_s: float = 0.0) -> None:
        kept_s = min(FAILURE_KEPT_MIN_S * 2**self._failures_count, FAILURE_KEPT_MAX_S)
        self._failures_count += 1
        self._retry_at = self._clock() + max(kept_s, pause_s)


def _next_try_after(error: Exception) -> float | bool:
    """Return the wait before the next attempt; None: no more attempts; True: as after any failure."""
    if not isinstance(error, TokenUnavailable) or error.pause_s > FAILURE_KEPT_MAX_S:
        return False
    return error.pause_s or True
