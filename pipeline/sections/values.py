"""Types of values in the configuration file, the base class of its sections, and secrets.

The file only names secrets; they are stored elsewhere.
"""

import glob
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SecretStr,
    StringConstraints,
    ValidationInfo,
)

from pipeline.errors import ConfigurationError, WrongValueError
from pipeline.files.private import is_private
from pipeline.rules.currencies import currencies
from pipeline.stores.kinds import store_url
from pipeline.wording import Sentence
from schemas.prices import Price

_NOT_IN_AN_ADDRESS = re.compile(r"[^!-~]|[@?#\\]")


def _below_folder(path: Path, info: ValidationInfo) -> Path:
    """Resolve a relative path from the folder of the configuration file."""
    return Path((info.context or {}).get("folder", ".")) / path.expanduser()


def _newest_below_folder(value: str, info: ValidationInfo) -> str:
    """Put a pattern of folders below the folder of the configuration file."""
    opening, _, pattern = value.strip().partition("newest of ")
    if opening or not pattern.strip():
        raise WrongValueError(Sentence("config.newest_of"))
    folder = (info.context or {}).get("folder", Path())
    # The name of this folder is not a pattern.
    return str(Path(glob.escape(str(folder))) / Path(pattern.strip()).expanduser())


_LAST_DOT = re.compile(r"\.+(?=(:[0-9]*)?$)")


def _https(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        # The library's message would quote the address and any password misplaced in it.
        raise WrongValueError(Sentence("config.no_address", form="https://HOST:PORT")) from None
    if parts.scheme != "https":
        raise WrongValueError(Sentence("config.https"))
    if not is_reachable or _NOT_IN_AN_ADDRESS.search(url):
        raise WrongValueError(Sentence("config.plain_address"))
    # Certificates have no final dot in host names, and the cap would count it as another server.
    return parts._replace(netloc=_LAST_DOT.sub("", parts.netloc)).geturl().rstrip("/")


def _proxy(url: str) -> str:
    """Check the address of a proxy; its credentials are stored elsewhere."""
    try:
        parts = urlsplit(url)
        is_reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise WrongValueError(Sentence("config.no_address", form="http://HOST:PORT")) from None
    is_plain = parts.path in {"", "/"} and not _NOT_IN_AN_ADDRESS.search(url)
    if parts.scheme not in {"http", "https"} or not (is_reachable and is_plain):
        raise WrongValueError(Sentence("config.proxy_address"))
    return url.rstrip("/")


FilePath = Annotated[Path, AfterValidator(_below_folder)]
NewestOf = Annotated[str, AfterValidator(_newest_below_folder)]
"""A pattern of folders that stands for their newest run."""
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
        value = os.environ.get(variable)
        if value:
            value = value.rstrip("\r\n")  # mounted secret files end like this
        if not value:
            key = "sections.variable_not_set" if value is None else "sections.variable_empty"
            raise ConfigurationError(Sentence(key, variable=variable))
        return SecretStr(value)
    assert path is not None
    try:
        found = path.stat()
        value = path.read_text("utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(Sentence("sections.secret_cannot_read", path=path, why=error)) from None
    except UnicodeDecodeError:
        raise ConfigurationError(Sentence("sections.secret_not_utf_8", path=path)) from None
    if not is_private(found):
        raise ConfigurationError(Sentence("sections.others_can_read", path=path))
    if not value:
        raise ConfigurationError(Sentence("sections.secret_empty_put", path=path))
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
    raise ConfigurationError(Sentence("sections.no_http_proxy"))


_PRICE = re.compile(r"(?P<amount>(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,6})?) (?P<currency>[A-Z]{3})")
"""Few enough digits that the product with any number of calls is exact."""


def price_of(value: object) -> Price:
    """Parse a price of the configuration file.

    Raises:
        WrongValueError: it is not a price; the sentence says what to write.

    >>> price_of("0.15 GBP")
    Price(amount=Decimal('0.15'), currency='GBP')
    """
    found = _PRICE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise WrongValueError(Sentence("config.price"))
    if found["currency"] not in currencies():
        raise WrongValueError(Sentence("config.price_currency", currency=found["currency"]))
    return Price(amount=Decimal(found["amount"]), currency=found["currency"])


def _priced(value: object) -> object:
    price_of(value)
    return value


PriceText = Annotated[str, BeforeValidator(_priced)]
"""A price as written in the file."""
