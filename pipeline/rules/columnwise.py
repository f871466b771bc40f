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


def told(
    column: pl.Series,
    *,
    where: pl.Series,
    by: Callable[[pl.Series], pl.Series],
    kind: type[pl.DataType] = pl.String,
) -> pl.Series:
    """What there is to say of some of the values of a column; null of all others.

    Args:
        column: whose values are looked at.
        where: which of them; null stands for none.
        by: what is said of these, in their order.
        kind: the type of what is said.
    """
    rows = where.arg_true()
    nothing = pl.Series(column.name, [None], dtype=kind).new_from_index(0, column.len())
    return nothing.scatter(rows, by(column.gather(rows))) if rows.len() else nothing


def beyond_ascii(texts: pl.Series) -> pl.Series:
    """Which texts have a character that is none of ASCII's."""
    return texts.str.len_bytes() != texts.str.len_chars()
