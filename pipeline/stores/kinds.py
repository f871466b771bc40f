"""Which shared stores there are: the scheme of an address says which one is meant.

No other module imports one. Importing this one imports no driver.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from pydantic import SecretStr

from pipeline.stores import postgres
from pipeline.stores.shared import AskingProcess, SharedStore, StoreCare, StoreClocks, StoreKind

STORES: Mapping[str, StoreKind] = {
    "postgresql": postgres,
    "postgres": postgres,
}


def _kind_of(url: str) -> StoreKind:
    """Where no scheme is known, it is PostgreSQL that says how an address is written."""
    return STORES.get(url.partition(":")[0], postgres)


def store_url(url: str) -> str:
    """The address of a shared store, as it was written; raises as `StoreKind.require_address`."""
    _kind_of(url).require_address(url)
    return url


def opened_store(
    url: str, secret: SecretStr, process: AskingProcess, clocks: StoreClocks
) -> AbstractContextManager[SharedStore]:
    """Open a shared store; as `StoreKind.opened_store`."""
    return _kind_of(url).opened_store(url, secret, process, clocks)


def cared_for(url: str, clocks: StoreClocks, *, role: str | None = None) -> AbstractContextManager[StoreCare]:
    """A shared store in the hands of its owner; as `StoreKind.cared_for`."""
    return _kind_of(url).cared_for(url, clocks, role=role)
