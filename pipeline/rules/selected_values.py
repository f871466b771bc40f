"""Apply slow functions only to the few values of a column that need them."""

from collections.abc import Callable

import polars as pl


def replaced(column: pl.Series, *, where: pl.Series, by: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Return the column with some of its values replaced; null in `where` counts as false."""
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
    """Return notes on some values of a column; null for all others; null in `where` counts as false."""
    nothing = pl.repeat(None, column.len(), dtype=kind, eager=True).alias(column.name)
    return replaced(nothing, where=where, by=lambda _: by(column.filter(where)))


def without(pattern: str, texts: pl.Series, *, where: pl.Series | None = None) -> pl.Series:
    """Return the texts without a pattern, if they contain it and, if given, where another condition holds."""
    where = texts.str.contains(pattern) if where is None else where
    return replaced(texts, where=where, by=lambda some: some.str.replace_all(pattern, ""))


def beyond_ascii(texts: pl.Series) -> pl.Series:
    """True for texts with a character beyond ASCII."""
    return texts.str.len_bytes() != texts.str.len_chars()
