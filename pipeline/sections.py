"""Building blocks for sections of the configuration: values, where secrets are, a server's limits."""

import glob
import os
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from pipeline.errors import ConfigurationError, WrongValueError
from pipeline.files.private import is_private
from pipeline.rules.currencies import currencies
from pipeline.stores.kinds import store_url
from pipeline.wording import Sentence
from schemas.outcomes import ApiName, Asked, Environment
from schemas.prices import Price

_NOT_IN_AN_ADDRESS = re.compile(r"[^!-~]|[@?#\\]")


def _folder(info: ValidationInfo) -> Path:
    """Return the folder of the configuration file, where relative paths begin."""
    return Path((info.context or {}).get("folder", "."))


def _newest_below_folder(value: str, info: ValidationInfo) -> str:
    opening, _, pattern = value.strip().partition("newest of ")
    if opening or not pattern.strip():
        raise WrongValueError(Sentence("config.must_be_newest_of_pattern"))
    # The name of this folder is not a pattern.
    return str(Path(glob.escape(str(_folder(info)))) / Path(pattern.strip()).expanduser())


_LAST_DOT = re.compile(r"\.+(?=(:[0-9]*)?$)")


def _https(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        # The library's message would quote the address and any password misplaced in it.
        raise WrongValueError(Sentence("config.not_an_address", form="https://HOST:PORT")) from None
    if parts.scheme != "https":
        raise WrongValueError(Sentence("config.must_start_with_https"))
    if not is_reachable or _NOT_IN_AN_ADDRESS.search(url):
        raise WrongValueError(
            Sentence("config.must_be_plain_address" if url.isascii() else "config.ascii_address")
        )
    # Certificates have no final dot in host names, and the cap would count it as another server.
    return parts._replace(netloc=_LAST_DOT.sub("", parts.netloc)).geturl().rstrip("/")


def _proxy(url: str) -> str:
    """Check the address of a proxy; its credentials are stored elsewhere."""
    try:
        parts = urlsplit(url)
        is_reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise WrongValueError(Sentence("config.not_an_address", form="http://HOST:PORT")) from None
    is_plain = parts.path in {"", "/"} and not _NOT_IN_AN_ADDRESS.search(url)
    if parts.scheme not in {"http", "https"} or not (is_reachable and is_plain):
        raise WrongValueError(Sentence("config.must_be_proxy_address"))
    return url.rstrip("/")


FilePath = Annotated[Path, AfterValidator(lambda path, info: _folder(info) / path.expanduser())]
NewestOf = Annotated[str, AfterValidator(_newest_below_folder)]  # a pattern of folders: their newest run
HttpsUrl = Annotated[str, AfterValidator(_https)]
ProxyUrl = Annotated[str, AfterValidator(_proxy)]
LedgerUrl = Annotated[str, AfterValidator(store_url)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Name of an environment variable; a secret entered by mistake seldom looks like one."""
Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Section(BaseModel):
    """A section of the file; immutable, refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


def secret(variable: str | None, path: Path | None) -> SecretStr:
    """Read a secret from one of the two (ConfigurationError: it is missing, or other users can read it)."""
    if variable is not None:
        found = os.environ.get(variable)
        if not (value := (found or "").rstrip("\r\n")):  # mounted secret files end like this
            key = "sections.variable_not_set" if found is None else "sections.variable_empty"
            raise ConfigurationError(Sentence(key, variable=variable))
        return SecretStr(value)
    assert path is not None
    try:
        status = path.stat()
        value = path.read_text("utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(Sentence("sections.secret_unreadable", path=path, why=error)) from None
    except UnicodeDecodeError:
        raise ConfigurationError(Sentence("sections.secret_not_utf_8", path=path)) from None
    if not is_private(status):
        raise ConfigurationError(Sentence("sections.secret_open_to_others", path=path))
    if not value:
        raise ConfigurationError(Sentence("sections.secret_empty", path=path))
    return SecretStr(value)


def secret_if_named(variable: str | None, path: Path | None) -> SecretStr | None:
    """Like `secret`, but None if neither is given."""
    return None if variable is None and path is None else secret(variable, path)


def proxy_of_environment(url: str) -> str | None:
    """Return the environment's proxy for an address, if any (ConfigurationError: it is not an HTTP proxy)."""
    from urllib.request import getproxies_environment, proxy_bypass  # slow, and seldom needed

    found = getproxies_environment()
    address = found.get("https") or found.get("all")
    if not address or proxy_bypass(urlsplit(url).netloc):
        return None
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return parts.geturl()
    except ValueError:
        pass
    # The address may hold a password, so it is not quoted.
    raise ConfigurationError(Sentence("sections.proxy_address_malformed"))


_PRICE = re.compile(r"(?P<amount>(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,6})?) (?P<currency>[A-Z]{3})")
"""Few enough digits that the product with any number of calls is exact."""


def price_of(value: object) -> Price:
    """Parse a price of the configuration file (WrongValueError: it is not one; says what to write).

    >>> price_of("0.15 GBP")
    Price(amount=Decimal('0.15'), currency='GBP')
    """
    found = _PRICE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise WrongValueError(Sentence("config.must_be_price"))
    if found["currency"] not in currencies():
        raise WrongValueError(Sentence("config.price_currency_unknown", currency=found["currency"]))
    return Price(amount=Decimal(found["amount"]), currency=found["currency"])


PriceText = Annotated[str, BeforeValidator(lambda value: price_of(value) and value)]  # as written in the file
TEST_SERVER_DAILY_CAP = 50  # the soft limit of the CoP test server (API reference, "Limits")


class Server(Section):
    """One API's server, and limits that this client keeps even if the server allows more."""

    name: ClassVar[ApiName]  # the API of this section
    exactly_one: ClassVar[Sequence[str]] = ()  # keys of which the section has exactly one

    server: Asked
    base_url: HttpsUrl
    ca_file: FilePath | None = None
    proxy: Literal["environment"] | None = None  # `environment` if HTTPS_PROXY, ALL_PROXY and NO_PROXY apply
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
    price_per_call: PriceText | None = None  # the provider's; it does not affect limits or questions

    @model_validator(mode="after")
    def _names_one_source(self) -> Self:
        for one, other in (("proxy", "proxy_url"), ("proxy_credentials_env", "proxy_credentials_file")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise WrongValueError(Sentence("config.give_one_not_both", keys=[one, other]))
        about = [key for key in type(self).model_fields if key.startswith("proxy_") and getattr(self, key)]
        if about and self.proxy is None and self.proxy_url is None:
            raise WrongValueError(Sentence("config.proxy_missing", key=about[0]))
        if self.exactly_one and sum(getattr(self, key) is not None for key in self.exactly_one) != 1:
            raise WrongValueError(Sentence("config.give_exactly_one", keys=list(self.exactly_one)))
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

    exactly_one = ("client_secret_env", "client_secret_file")
    token_url: HttpsUrl
    token_method: Literal["GET", "POST"] = "GET"  # noqa: S105 (a method, not a secret)
    client_id: Words
    client_secret_env: VariableName | None = None
    client_secret_file: FilePath | None = None
    scope: Words

    def client_secret(self) -> SecretStr:
        """Read the client secret from its source; same errors as `secret`."""
        return secret(self.client_secret_env, self.client_secret_file)

    @property
    def client(self) -> str:
        """Our client ID at the server."""
        return self.client_id


class MutualTls(Server):
    """A server that identifies us by our certificate."""

    exactly_one = ("client_key", "client_key_env")
    client_certificate: FilePath
    client_key: FilePath | None = None
    client_key_env: VariableName | None = None
    client_key_password_env: VariableName | None = None
    client_key_password_file: FilePath | None = None

    def private_key(self) -> Path | tuple[str, SecretStr]:
        """Read the key from its file or variable; same errors as `secret`."""
        if self.client_key is not None:
            return self.client_key
        assert self.client_key_env is not None
        return self.client_key_env, secret(self.client_key_env, None)

    def client_key_password(self) -> SecretStr | None:
        """Read the password of the client key, or None if the key has none; same errors as `secret`."""
        return secret_if_named(self.client_key_password_env, self.client_key_password_file)
