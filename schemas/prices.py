"""Prices: exact amounts of money."""

from decimal import Decimal

from schemas.strict import OwnDocument


class Price(OwnDocument):
    """An amount in a currency."""

    amount: Decimal
    currency: str  # ISO 4217
