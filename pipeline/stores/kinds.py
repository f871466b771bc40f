"""The kinds of shared stores, chosen by the scheme of an address; importing it loads no driver."""

from collections.abc import Mapping

from pipeline.stores import postgres
from pipeline.stores.protocols import StoreKind

STORES: Mapping[str, StoreKind] = {
    "postgresql": postgres,
    "postgres": postgres,
}


def kind_of(url: str) -> StoreKind:
    """Return the kind for an address; for unknown schemes PostgreSQL, whose refusal explains addresses."""
    return STORES.get(url.partition(":")[0], postgres)


def store_url(url: str) -> str:
    """Return a valid address unchanged; same errors as `StoreKind.require_address`."""
    kind_of(url).require_address(url)
    return url
