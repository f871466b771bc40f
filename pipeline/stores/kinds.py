"""The kinds of shared stores, chosen by the scheme of an address.

Only this module imports the kinds. Importing it loads no driver.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from pydantic import SecretStr

from pipeline.stores import postgres
from pipeline.stores.protocols import AskingProcess, SharedStore, StoreCare, StoreClocks, StoreKind

STORES: Mapping[str, StoreKind] = {
    "postgresql": postgres,
    "postgres": postgres,
}


def _kind_of(url: str) -> StoreKind:
    """Return the kind for an address; for unknown schemes PostgreSQL, whose refusal explains addresses."""
    return STORES.get(url.partition(":")[0], postgres)


def store_url(url: str) -> str:
    """Return a valid address unchanged; same errors as `StoreKind.require_address`."""
    _kind_of(url).require_address(url)
    return url


def opened_store(
    url: str, secret: SecretStr, process: AskingProcess, clocks: StoreClocks
) -> AbstractContextManager[SharedStore]:
    """Open a shared store; see `StoreKind.opened_store`."""
    return _kind_of(url).opened_store(url, secret, process, clocks)


def cared_for(url: str, clocks: StoreClocks, *, role: str | None = None) -> AbstractContextManager[StoreCare]:
    """Open a shared store for its owner; see `StoreKind.cared_for`."""
    return _kind_of(url).cared_for(url, clocks, role=role)
