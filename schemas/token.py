"""The OAuth 2.0 client credentials grant.

Source: API reference, "Authentication"; it does not show the answer, which follows RFC 6749, section 5.1.
"""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, SecretStr, StringConstraints

from schemas.strict import Document

LIFE_MAX_S = 86_400  # a longer life counts as one day
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")


class TokenRequest(Document):
    """The form fields of a token request, in the snake_case of OAuth."""

    model_config = ConfigDict(alias_generator=None, extra="forbid")

    grant_type: Literal["client_credentials"]
    client_id: Annotated[str, StringConstraints(min_length=1)]
    client_secret: SecretStr
    scope: Annotated[str, StringConstraints(min_length=1)]


def _bounded(life: object) -> object:
    """Limit the life of a token in seconds; servers may send text or fractions."""
    if isinstance(life, str) and _NUMBER.fullmatch(life):
        life = float(life)
    if isinstance(life, bool) or not isinstance(life, int | float) or not life >= 0:
        return life
    return int(min(life, LIFE_MAX_S))


class TokenRefusal(Document):
    """A refusal of a token, in the form of RFC 6749, section 5.2, or as problem details."""

    model_config = ConfigDict(alias_generator=None)

    error: str | None = None
    error_description: str | None = None
    code: str | None = None
    detail: str | None = None


class TokenResponse(Document):
    """The token endpoint's answer; the token itself is opaque."""

    model_config = ConfigDict(alias_generator=None)

    access_token: SecretStr = Field(min_length=1)
    token_type: str | None = None
    expires_in: Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_bounded)] = None
    """Seconds of life from the time of the answer; None if the server does not state it."""
