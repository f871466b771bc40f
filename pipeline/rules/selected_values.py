"""Apply slow functions only to the few values of a column that need them."""

from collections.abc import Callable

import polars as pl


def replaced(column: pl.Series, *, where: pl.Series, by: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Return the column with some of its values replaced.

    Args:
        column: not changed itself.
        where: true for values to replace; null counts as false.
        by: returns the new values, in order.
    """
    if not where.any():  # quick, and most columns need no change
        return column
    rows = where.arg_true()
    return column.clone().scatter(rows, by(column.gather(rows)))


def noted(
    column: pl.Series,
    *,
    where: pl.Series,
    by: Callable[[pl.Series], pl.Series],
    kind: type[pl.DataType] = pl.String,
) -> pl.Series:
    """Return notes on some values of a column; null for all others.

    Args:
        column: the values.
        where: true for values with a note; null counts as false.
        by: returns the notes, in order.
        kind: type of the notes.
    """
    nothing = pl.Series(column.name, [None], dtype=kind).new_from_index(0, column.len())
    return replaced(nothing, where=where, by=lambda _: by(column.filter(where)))


def beyond_ascii(texts: pl.Series) -> pl.Series:
    """True for texts with a character beyond ASCII."""
    return texts.str.len_bytes() != texts.str.len_chars()
