"""The OAuth 2.0 client credentials grant.

Source: API reference, "Authentication"; the answer is not shown there and follows RFC 6749,
section 5.1.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, SecretStr, StringConstraints

from schemas.strict import Document


class TokenRequest(Document):
    """The form fields of a token request, in the snake_case of OAuth."""

    model_config = ConfigDict(alias_generator=None, extra="forbid")

    grant_type: Literal["client_credentials"]
    client_id: Annotated[str, StringConstraints(min_length=1)]
    client_secret: SecretStr
    scope: Annotated[str, StringConstraints(min_length=1)]


class TokenResponse(Document):
    """The answer of the token endpoint; the token itself is opaque."""

    model_config = ConfigDict(alias_generator=None)

    access_token: Annotated[SecretStr, Field(min_length=1)]
    token_type: str | None = None
    expires_in: Annotated[int, Field(ge=0)] | None = None
    """Seconds of life from the moment of the answer; None where the server does not state it."""
