"""The shared stores, chosen by the scheme of an address.

Only this module imports them. Importing it loads no driver.
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
    """For unknown schemes PostgreSQL, whose refusal explains how to write an address."""
    return STORES.get(url.partition(":")[0], postgres)


def store_url(url: str) -> str:
    """The address of a shared store, unchanged; raises as `StoreKind.require_address`."""
    _kind_of(url).require_address(url)
    return url


def opened_store(
    url: str, secret: SecretStr, process: AskingProcess, clocks: StoreClocks
) -> AbstractContextManager[SharedStore]:
    """Open a shared store; as `StoreKind.opened_store`."""
    return _kind_of(url).opened_store(url, secret, process, clocks)


def cared_for(url: str, clocks: StoreClocks, *, role: str | None = None) -> AbstractContextManager[StoreCare]:
    """A shared store for its owner; as `StoreKind.cared_for`."""
    return _kind_of(url).cared_for(url, clocks, role=role)
