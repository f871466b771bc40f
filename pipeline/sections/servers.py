"""Settings of every API section: server, limits and our credentials."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import SplitResult, unquote

from pydantic import Field, SecretStr, model_validator

from pipeline.errors import WrongValueError
from pipeline.sections.values import (
    FilePath,
    HttpsUrl,
    PriceText,
    ProxyUrl,
    Section,
    VariableName,
    Words,
    price_of,
    proxy_of_environment,
    secret,
    secret_if_named,
)
from pipeline.wording import Sentence
from schemas.outcomes import ApiName, Asked, Environment
from schemas.prices import Price

TEST_SERVER_DAILY_CAP = 50
"""The soft limit of the CoP test server (API reference, "Limits")."""


class Server(Section):
    """One API's server, and limits that this client keeps even if the server allows more."""

    name: ClassVar[ApiName]
    """The API of this section."""

    server: Asked
    base_url: HttpsUrl
    ca_file: FilePath | None = None
    proxy: Literal["environment"] | None = None
    """`environment` if HTTPS_PROXY, ALL_PROXY and NO_PROXY apply."""
    proxy_url: ProxyUrl | None = None
    proxy_credentials_env: VariableName | None = None
    proxy_credentials_file: FilePath | None = None
    proxy_ca_file: FilePath | None = None
    rate_per_s: Annotated[float, Field(ge=0.1, le=5000, strict=True)] = 20
    in_flight_max: Annotated[int, Field(ge=1, le=4000, strict=True)] = 64
    daily_cap: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = None
    cap_window: Literal["utc_day", "rolling_24h"] = "utc_day"
    attempts_max: Annotated[int, Field(ge=1, le=10, strict=True)] = 3
    probe_wait_s: Annotated[float, Field(gt=0, le=3600, strict=True)] = 30.0
    """Seconds before a new try at a server, or a bank behind it, that only fails."""
    response_margin_s: Annotated[float, Field(gt=0, le=60, strict=True)] = 3.0
    """Seconds added to the responder's wait (CoP 7, VoP 5) for the deadline of one attempt."""
    price_per_call: PriceText | None = None
    """The provider's price per call; it does not affect limits or questions."""

    @model_validator(mode="after")
    def _names_one_proxy(self) -> Self:
        for one, other in (("proxy", "proxy_url"), ("proxy_credentials_env", "proxy_credentials_file")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise WrongValueError(Sentence("config.one_not_both", keys=[one, other]))
        about = [key for key in type(self).model_fields if key.startswith("proxy_") and getattr(self, key)]
        if about and self.proxy is None and self.proxy_url is None:
            raise WrongValueError(Sentence("config.proxy_missing", key=about[0]))
        return self

    def proxy_address(self, url: str) -> str | None:
        """Return the proxy for an address of this server; same errors as `proxy_of_environment`."""
        if self.proxy is None:
            return self.proxy_url
        return proxy_of_environment(url)

    def proxy_credentials(self, address: SplitResult) -> SecretStr | None:
        """Return `USER:PASSWORD` from its source, or from the proxy's address; same errors as `secret`."""
        named = secret_if_named(self.proxy_credentials_env, self.proxy_credentials_file)
        if named is not None or address.username is None:
            return named
        return SecretStr(f"{unquote(address.username)}:{unquote(address.password or '')}")

    @property
    def cap(self) -> int | None:
        """The daily cap in force; the test server has one by default."""
        if self.daily_cap is None and self.server is Environment.TEST:
            return TEST_SERVER_DAILY_CAP
        return self.daily_cap

    @property
    def price(self) -> Price | None:
        """The price of a call, or None if not configured."""
        return None if self.price_per_call is None else price_of(self.price_per_call)

    @property
    @abstractmethod
    def client(self) -> str:
        """Our client ID at the server."""

    @property
    def banks(self) -> Mapping[str, str]:
        """The user's own directory, if requests name the bank: start of an IBAN -> BIC11."""
        return {}

    @property
    def sends_remittance(self) -> bool:
        """True if requests carry the payment's reference."""
        return False


class Oauth(Server):
    """A server that requires a bearer token from the client credentials grant."""

    token_url: HttpsUrl
    token_method: Literal["GET", "POST"] = "GET"  # noqa: S105 (a method, not a secret)
    client_id: Words
    client_secret_env: VariableName | None = None
    client_secret_file: FilePath | None = None
    scope: Words

    @model_validator(mode="after")
    def _names_one_secret(self) -> Self:
        if (self.client_secret_env is None) == (self.client_secret_file is None):
            keys = ["client_secret_env", "client_secret_file"]
            raise WrongValueError(Sentence("config.exactly_one", keys=keys))
        return self

    def client_secret(self) -> SecretStr:
        """Read the client secret from its source; same errors as `secret`."""
        return secret(self.client_secret_env, self.client_secret_file)

    @property
    def client(self) -> str:
        """Our client ID at the server."""
        return self.client_id


class MutualTls(Server):
    """A server that identifies us by our certificate."""

    client_certificate: FilePath
    client_key: FilePath | None = None
    client_key_env: VariableName | None = None
    client_key_password_env: VariableName | None = None
    client_key_password_file: FilePath | None = None

    @model_validator(mode="after")
    def _names_one_key(self) -> Self:
        if (self.client_key is None) == (self.client_key_env is None):
            raise WrongValueError(Sentence("config.exactly_one", keys=["client_key", "client_key_env"]))
        return self

    def private_key(self) -> Path | tuple[str, SecretStr]:
        """Read the key from its file or variable; same errors as `secret`."""
        if self.client_key is not None:
            return self.client_key
        assert self.client_key_env is not None
        return self.client_key_env, secret(self.client_key_env, None)

    def client_key_password(self) -> SecretStr | None:
        """Read the password of the client key, or None if the key has none; same errors as `secret`."""
        return secret_if_named(self.client_key_password_env, self.client_key_password_file)
