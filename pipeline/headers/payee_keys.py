"""How the user's own system knows a payee: the key of a vendor list or of a payroll system."""

import polars as pl

from pipeline.frames import Original, Payments
from pipeline.headers.spelling import fold

_PAYEE_KEYS = frozenset(
    f"{who}{what}"
    for whose, whats in (
        ("vendor supplier payee creditor employee staff personnel payroll", ("id", "no", "number", "code")),
        ("lieferanten kreditoren personal mitarbeiter", ("nummer", "nr", "id")),
        ("kreditor matricule codefournisseur numerofournisseur numerosalarie", ("",)),
    )
    for who in whose.split()
    for what in whats
)
"""Headers, folded, of the key by which a vendor list or payroll system knows a payee."""


def payee_key(original: Original) -> pl.Series:
    """How the user's own system knows the payee of each row: a column such as Vendor ID; null without one."""
    found = next((name for name in original.columns if fold(name) in _PAYEE_KEYS), None)
    if found is None:
        return pl.Series("payee_key", [None] * original.height, pl.String)
    return original[found].cast(pl.String).alias("payee_key")


def is_list_of_payees(payments: Payments, original: Original) -> bool:
    """Whether a table is a list of payees, such as a vendor master, and no payments: keys, and no amount."""
    return payments["amount"].null_count() == payments.height and any(
        fold(name) in _PAYEE_KEYS for name in original.columns
    )
