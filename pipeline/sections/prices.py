"""Prices in a profile: an amount and its currency, such as `0.15 GBP`."""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator

from pipeline.errors import WrongValueError
from pipeline.rules.currencies import currencies
from pipeline.wording import Sentence
from schemas.prices import Price

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
