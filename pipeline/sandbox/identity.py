"""The identity provider: OAuth 2.0 client credentials and opaque bearer tokens.

Source: API reference, "Authentication". Each role has its own client, and a token is valid for one role only.
"""

import hmac
import secrets
import time
from collections.abc import Mapping
from urllib.parse import parse_qsl

from pydantic import ValidationError

from pipeline.sandbox.problems import ProblemError, Refusal, client_invalid, format_error, shown_member
from pipeline.sandbox.settings import CLIENT_IDS, SCOPES
from schemas.outcomes import Environment
from schemas.token import TokenRequest

_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class IdentityProvider:
    """Issues tokens, and identifies clients by them."""

    def __init__(self, client_secrets: Mapping[Environment, str], token_life_s: int) -> None:
        self._secrets = client_secrets
        self._token_life_s = token_life_s
        self._tokens: dict[str, tuple[Environment, float]] = {}  # token -> role, and when it expires

    def issue(self, form: bytes) -> tuple[Environment, bytes]:
        """Answer a form-encoded token request; return the token's role, and JSON (RFC 6749, section 5.1).

        ProblemError: 400 for a malformed form, 401 for a client, secret or scope that is not valid.
        """
        request = _token_request(form)
        role = next((role for role, known in CLIENT_IDS.items() if known == request.client_id), None)
        # Compare secrets even for an unknown client, so that timing does not reveal which part was wrong.
        expected = secrets.token_urlsafe(32) if role is None else self._secrets[role]
        is_secret_right = hmac.compare_digest(
            request.client_secret.get_secret_value().encode(), expected.encode()
        )
        if role is None or not is_secret_right:
            raise client_invalid("the client id or the client secret is not valid", Refusal.CLIENT)
        if request.scope != SCOPES[role]:
            raise client_invalid("the client has no permission for this scope", Refusal.CLIENT)
        self._forget_expired()
        token = secrets.token_urlsafe(32)
        self._tokens[token] = role, time.monotonic() + self._token_life_s
        body = f'{{"token_type":"Bearer","expires_in":{self._token_life_s},"access_token":"{token}"}}'
        return role, body.encode()

    def client_of(self, authorization: str | None, role: Environment) -> str:
        """Return the client id for an Authorization header, or raise a 401 that says what is wrong."""
        if authorization is None:
            raise client_invalid("the Authorization header is missing", Refusal.TOKEN_MISSING, _CHALLENGE)
        scheme, _, value = authorization.partition(" ")
        token = self._tokens.get(value)
        if scheme.lower() != "bearer" or token is None:
            raise client_invalid(
                "the Authorization header holds no access token of this issuer",
                Refusal.TOKEN_UNKNOWN,
                _CHALLENGE,
            )
        of_role, expires = token
        if time.monotonic() >= expires:
            raise client_invalid("the access token has expired", Refusal.TOKEN_EXPIRED, _CHALLENGE)
        if of_role is not role:
            raise client_invalid(
                "the access token is for another server", Refusal.TOKEN_OF_ANOTHER_SERVER, _CHALLENGE
            )
        return CLIENT_IDS[role]

    def revoke_all(self) -> None:
        """Invalidate every token issued so far."""
        self._tokens.clear()

    def _forget_expired(self) -> None:
        # Remember it for another lifetime, so that it is reported as expired, not as unknown.
        oldest = time.monotonic() - self._token_life_s
        for value in [value for value, (_, expires) in self._tokens.items() if expires < oldest]:
            del self._tokens[value]


def _token_request(form: bytes) -> TokenRequest:
    try:
        fields = parse_qsl(form.decode("ascii"), keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise format_error("the body is not a form", Refusal.FORM) from None
    if len(dict(fields)) != len(fields):
        raise format_error("the form repeats a field", Refusal.FORM)
    # Our model has a default for this fixed value, but a request must contain it.
    if "grant_type" not in dict(fields):
        raise _form_error({"grant_type"})
    try:
        return TokenRequest.model_validate(dict(fields))
    except ValidationError as error:
        raise _form_error({str(part["loc"][0]) for part in error.errors(include_input=False)}) from None


def _form_error(fields: set[str]) -> ProblemError:
    named = ", ".join(sorted(map(shown_member, fields)))
    return format_error(f"form fields missing, unknown or not valid: {named}", Refusal.FORM)
