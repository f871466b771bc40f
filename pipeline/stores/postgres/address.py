"""The address of a ledger in PostgreSQL: its parts, and its rules."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from pipeline.errors import WrongValueError
from pipeline.wording import Sentence

PORT = 5432
_FORM = "postgresql://USER@HOST:PORT/DATABASE"
_OPTIONS = frozenset({"host", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout"})
"""Allowed parameters after the question mark."""
_SAFE_MODE = "verify-full"


class LedgerAddress(NamedTuple):
    """The address of a ledger, with the user but without secrets."""

    url: str  # as in the configuration
    host: str  # a name, an IP address, or the folder of a Unix socket
    port: int
    user: str | None  # None: chosen by libpq, from PGUSER or the name of the system's user
    database: str
    options: Mapping[str, str]  # other parameters of libpq, including sslmode

    @property
    def place(self) -> str:
        """Host and port, as named in sentences."""
        return f"{self.host}:{self.port}"

    def parameters(self) -> dict[str, str | int]:
        """Connection parameters for libpq, which takes a password from PGPASSFILE or PGPASSWORD."""
        user = {} if self.user is None else {"user": self.user}
        return {"host": self.host, "port": self.port, "dbname": self.database, **user, **self.options}


def parsed(url: str) -> LedgerAddress:
    """Parse an address (WrongValueError: invalid, or unsafe; the sentence quotes no part of it)."""
    try:
        parts = urlsplit(url)
        port = PORT if parts.port is None else parts.port
    except ValueError:
        # The library's message would quote the address, including any misplaced password.
        raise WrongValueError(Sentence("config.not_an_address", form=_FORM)) from None
    if parts.scheme not in {"postgresql", "postgres"} or re.search(r"[^!-~]", url) or parts.fragment:
        raise WrongValueError(Sentence("config.not_an_address", form=_FORM))
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.password is not None or "password" in options:
        raise WrongValueError(Sentence("config.ledger_address_has_password"))
    if unknown := sorted(options.keys() - _OPTIONS):
        raise WrongValueError(
            Sentence("config.ledger_option_not_allowed", option=unknown[0], options=sorted(_OPTIONS))
        )
    host = parts.hostname or options.pop("host", "")
    options.pop("host", None)
    database = unquote(parts.path.removeprefix("/"))
    if not host or not database or "/" in database or "," in host:
        raise WrongValueError(Sentence("config.ledger_must_name_one_host", form=_FORM))
    user = None if parts.username is None else unquote(parts.username)
    return LedgerAddress(url, host, port, user, database, _proved(host, options))


def _proved(host: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options, with server verification added unless the connection stays on this machine."""
    if _is_here(host):
        return options
    if options.get("sslmode", _SAFE_MODE) != _SAFE_MODE:
        raise WrongValueError(Sentence("config.ledger_sslmode_too_weak", mode=_SAFE_MODE))
    # Without this setting, libpq would look for a file of authorities in the user's home.
    return {"sslrootcert": "system", **options, "sslmode": _SAFE_MODE}


def _is_here(host: str) -> bool:
    """True if the host is this machine: a Unix socket, or the loopback address."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
