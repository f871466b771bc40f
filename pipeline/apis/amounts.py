"""Amounts and currencies as people write them, read without a guess."""

from typing import NamedTuple

import polars as pl

from pipeline.apis.identifiers import compact
from pipeline.apis.mending import mended
from pipeline.frames import MONEY

AMOUNT = r"^-?[0-9]{1,18}(\.[0-9]{1,3}0*)?$"
"""More than three decimals say nothing unless they are zeros, which databases like to add."""
AMBIGUOUS = r"^-?0*[1-9][0-9]{0,2}[.,][0-9]{3}$"
"""One separator before exactly three digits: a thousand and more, or one and a little."""

_PLAIN = r"^[0-9]{1,18}(\.[0-9]{1,2})?$"
"""What amounts most often are already: one, and no other."""
# A group of thousands never starts with a zero: 0.500 is a half, not five hundred.
_GROUPED_ENGLISH = r"^-?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]{1,3})?$"
_GROUPED_EUROPEAN = r"^-?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]{1,3})?$"
_GROUPED_BY_GAPS = "^-?[1-9][0-9]{0,2}([\\s'\u2019][0-9]{3})+([.,][0-9]{1,3})?$"
_GAP = "[\\s'\u2019]"
_SIGN = "([£€$])"
_SIGN_FIRST = r"^(-?)\s*[£€$]\s*"
_SIGN_LAST = r"\s*[£€$]$"
CURRENCY = "^[A-Z]{3}$"
USUAL_CURRENCIES = ["EUR", "GBP"]
"""What the APIs are for: to find one of these takes half the time of a pattern."""
_POUNDS = ["GBP", "EGP", "FKP", "GIP", "LBP", "SDG", "SHP", "SSP", "SYP"]
"""Dollars and pesos, which share a sign, have too many codes to name."""


class Amounts(NamedTuple):
    """A column of amounts, read; each is of its name."""

    text: pl.Series
    """With a decimal point and no grouping; what could be read in two ways is kept as it was."""
    money: pl.Series
    """`frames.MONEY`: the exact amount, or null where the text is not one amount and no other."""
    sign: pl.Series
    """The sign of a currency that stands beside it: £, € or $; null where none does."""


def read_amounts(written: pl.Series) -> Amounts:
    """Read amounts without a guess.

    Nothing inside a number is dropped unless it stands between thousands, so that neither `1£50`
    nor `12 34` becomes an amount that nobody wrote.
    """
    is_odd = ~written.str.contains(_PLAIN)
    text = mended(written, where=is_odd, by=_decimal_text)
    money = mended(text, where=is_odd, by=_one_amount).cast(MONEY)
    sign = mended(
        written.clear(written.len()), where=is_odd, by=lambda _: written.filter(is_odd).str.extract(_SIGN)
    )
    return Amounts(text, money, sign)


def read_currencies(written: pl.Series) -> pl.Series:
    """Codes of three capital letters; null where a cell holds something else, which may be anything."""
    return mended(written, where=~written.is_in(USUAL_CURRENCIES), by=_currencies)


def sign_faults(signs: pl.Series, currencies: pl.Series) -> pl.Series:
    """The signs that are of another currency than the code beside them; null where nothing contradicts.

    Args:
        signs: as `Amounts` has them.
        currencies: compact codes, or whatever stands there.
    """
    is_signed = signs.is_not_null()
    return mended(signs, where=is_signed, by=lambda some: _unfit(some, currencies.filter(is_signed)))


def _unfit(signs: pl.Series, currencies: pl.Series) -> pl.Series:
    fits = (
        pl.when(signs == "€")
        .then(currencies == "EUR")
        .when(signs == "£")
        .then(currencies.is_in(_POUNDS))
        .otherwise(~currencies.is_in(USUAL_CURRENCIES))
    )
    is_code = currencies.str.contains(CURRENCY)
    return pl.select(pl.when(is_code & ~fits).then(signs)).to_series()


def _currencies(written: pl.Series) -> pl.Series:
    codes = compact(written)
    return codes.set(~codes.str.contains(CURRENCY), None)


def _decimal_text(amounts: pl.Series) -> pl.Series:
    written = pl.col("amount").str.strip_prefix("'").str.strip_chars()
    bare = (
        pl.when(written.str.contains(_SIGN_FIRST))
        .then(written.str.replace(_SIGN_FIRST, "$1"))
        .otherwise(written.str.replace(_SIGN_LAST, ""))
    )
    text = (
        pl.when(bare.str.contains(AMBIGUOUS))
        .then(bare)
        .when(bare.str.contains(_GROUPED_ENGLISH))
        .then(bare.str.replace_all(",", "", literal=True))
        .when(bare.str.contains(_GROUPED_EUROPEAN))
        .then(bare.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
        .when(bare.str.contains(_GROUPED_BY_GAPS))
        .then(bare.str.replace_all(_GAP, "").str.replace(",", ".", literal=True))
        .otherwise(bare.str.replace(",", ".", literal=True))
    )
    return amounts.alias("amount").to_frame().select(text).to_series()


def _one_amount(decimals: pl.Series) -> pl.Series:
    return decimals.set(~decimals.str.contains(AMOUNT) | decimals.str.contains(AMBIGUOUS), None)
