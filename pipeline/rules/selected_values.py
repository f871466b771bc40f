"""Apply slow functions only to the few values of a column that need them."""

from collections.abc import Callable

import polars as pl


def replaced(column: pl.Series, *, where: pl.Series, by: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """The column with some of its values changed.

    Args:
        column: is not changed itself.
        where: which values are changed; null stands for none.
        by: what they become, in their order.
    """
    if not where.any():  # quick to know, and most columns need no change
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
    """Notes on some values of a column; null for all others.

    Args:
        column: whose values are looked at.
        where: which of them; null stands for none.
        by: their notes, in their order.
        kind: the type of the notes.
    """
    nothing = pl.Series(column.name, [None], dtype=kind).new_from_index(0, column.len())
    return replaced(nothing, where=where, by=lambda _: by(column.filter(where)))


def beyond_ascii(texts: pl.Series) -> pl.Series:
    """True for texts with a character beyond ASCII."""
    return texts.str.len_bytes() != texts.str.len_chars()
