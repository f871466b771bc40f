"""Amounts as people write them, brought to decimal text without a guess."""

import polars as pl

from pipeline.frames import MONEY

AMOUNT = r"^-?[0-9]{1,18}(\.[0-9]{1,3})?$"
AMBIGUOUS = r"^-?[1-9][0-9]{0,2}[.,][0-9]{3}$"
"""One separator before exactly three digits: a thousand and more, or one and a little."""

_GROUPED_ENGLISH = r"^-?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]{1,3})?$"
_GROUPED_EUROPEAN = r"^-?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]{1,3})?$"
_DECORATION = "[\\s£€$'\u2019]"


def decimal_text(column: str) -> pl.Expr:
    """An amount with a decimal point and no grouping; one that could be read in two ways is kept."""
    bare = pl.col(column).str.replace_all(_DECORATION, "")
    return (
        pl.when(bare.str.contains(AMBIGUOUS))
        .then(bare)
        .when(bare.str.contains(_GROUPED_ENGLISH))
        .then(bare.str.replace_all(",", "", literal=True))
        .when(bare.str.contains(_GROUPED_EUROPEAN))
        .then(bare.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
        .otherwise(bare.str.replace(",", ".", literal=True))
    )


def money(decimal: pl.Expr) -> pl.Expr:
    """The exact amount behind decimal text, or null where it is not one amount and no other."""
    is_one = decimal.str.contains(AMOUNT) & ~decimal.str.contains(AMBIGUOUS)
    return pl.when(is_one).then(decimal).cast(MONEY)
