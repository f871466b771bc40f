"""What a cell must look like, so that it is taken for what a layout says that it is."""

import re
from collections.abc import Mapping
from enum import StrEnum


class Shape(StrEnum):
    """A form of text that a cell can have."""

    SORT_CODE = "sort code"
    SORT_CODE_WITH_HYPHENS = "sort code with hyphens"
    ACCOUNT_NUMBER = "account number"
    UK_ACCOUNT = "sort code and account number"
    IBAN = "IBAN"
    BIC = "BIC"
    MONEY = "money"
    PENCE = "pence"
    CURRENCY = "currency"
    DATE = "yyyymmdd"
    DATE_OF_DAY_FIRST = "ddmmyyyy"
    DATE_WITH_SLASHES = "dd/mm/yyyy"
    DAY_OF_YEAR = "yyddd"
    NUMBER = "number"
    NAME = "name"
    CAPITALS = "capitals"
    YES_OR_NO = "Y or N"


_YEAR, _MONTH, _DAY = "(?:19|20)[0-9]{2}", "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"

_PATTERNS: Mapping[Shape, str] = {
    Shape.SORT_CODE: "[0-9]{6}|[0-9]{2}([- ])[0-9]{2}\\1[0-9]{2}",
    Shape.SORT_CODE_WITH_HYPHENS: "[0-9]{2}-[0-9]{2}-[0-9]{2}",
    Shape.ACCOUNT_NUMBER: "[0-9]{8}",
    Shape.UK_ACCOUNT: "[0-9]{6}[- ]?[0-9]{8}",
    Shape.IBAN: "[A-Z]{2}[0-9]{2}[A-Z0-9 ]{11,40}",
    Shape.BIC: "[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?",
    Shape.MONEY: "[0-9]{1,13}(\\.[0-9]{1,2})?",
    Shape.PENCE: "[0-9]{1,15}",
    Shape.CURRENCY: "[A-Z]{3}",
    Shape.DATE: f"{_YEAR}{_MONTH}{_DAY}",
    Shape.DATE_OF_DAY_FIRST: f"{_DAY}{_MONTH}{_YEAR}",
    Shape.DATE_WITH_SLASHES: f"{_DAY}/{_MONTH}/{_YEAR}|",  # may be left out
    Shape.DAY_OF_YEAR: "[0-9]{2}[0-3][0-9]{2}",
    Shape.NUMBER: "[0-9]{1,15}",
    Shape.NAME: ".*[^\\W\\d_].*",
    Shape.CAPITALS: "[^a-z]*[A-Z][^a-z]*",
    Shape.YES_OR_NO: "[YN]?",
}
_COMPILED: Mapping[Shape, re.Pattern[str]] = {shape: re.compile(text) for shape, text in _PATTERNS.items()}

OF_FIELD: Mapping[str, Shape] = {
    "sort_code": Shape.SORT_CODE,
    "account_number": Shape.ACCOUNT_NUMBER,
    "uk_account": Shape.UK_ACCOUNT,
    "iban": Shape.IBAN,
    "bic": Shape.BIC,
    "name": Shape.NAME,
    "currency": Shape.CURRENCY,
}
"""The shape that each field has in any layout; of an amount it is the layout that knows."""


def has_shape(cell: str, shape: Shape) -> bool:
    """Whether a cell has this shape, all of it.

    >>> has_shape("12-34-56", Shape.SORT_CODE), has_shape("12-34 56", Shape.SORT_CODE)
    (True, False)
    """
    return _COMPILED[shape].fullmatch(cell) is not None
