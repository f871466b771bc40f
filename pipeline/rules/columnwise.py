"""Changing the few values of a column that need it: a file has millions, most of them as they should be."""

from collections.abc import Callable

import polars as pl


def mended(column: pl.Series, *, where: pl.Series, by: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """The column with some of its values changed.

    Args:
        column: is left as it is.
        where: which values are changed; null stands for none.
        by: what they become, in their order.
    """
    rows = where.arg_true()
    return column.clone().scatter(rows, by(column.gather(rows))) if rows.len() else column


def beyond_ascii(texts: pl.Series) -> pl.Series:
    """Which texts have a character that is none of ASCII's."""
    return texts.str.len_bytes() != texts.str.len_chars()
