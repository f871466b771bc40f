"""Stores in PostgreSQL, shared by any number of machines: ledger, questions and leases; a `StoreKind`.

psycopg (extra `postgres`) is imported when a store is opened: a configuration can name a ledger without it.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pydantic import SecretStr

from pipeline.errors import ConfigurationError
from pipeline.stores.postgres.address import parsed
from pipeline.stores.protocols import AskingProcess, StoreClocks
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pipeline.stores.postgres.administration import PostgresCare
    from pipeline.stores.postgres.store import PostgresStore


def require_address(url: str) -> None:  # noqa: D103
    parsed(url)


def opened_store(  # noqa: D103
    url: str, secret: SecretStr, process: AskingProcess, clocks: StoreClocks
) -> "PostgresStore":
    _require_driver()
    from pipeline.stores.postgres.store import PostgresStore

    return PostgresStore.open(parsed(url), secret, process, clocks)


def cared_for(url: str, clocks: StoreClocks, *, role: str | None = None) -> "PostgresCare":  # noqa: D103
    _require_driver()
    from pipeline.stores.postgres.administration import PostgresCare

    return PostgresCare(parsed(url), clocks, user=role)


def _require_driver() -> None:
    if find_spec("psycopg") is None:
        raise ConfigurationError(Sentence("stores.postgres_not_installed"))
