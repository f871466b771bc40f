"""Places of many rows at once: the lines or sheet rows of `schemas.places`, as columns."""

import polars as pl

from schemas.places import Places

STRETCHES_MAX = 100_000
"""A file with more rows of changing height has no places: they would be more text than its report."""


def lines_of(heights: pl.Series, *, first: int) -> Places | None:
    """The places of rows that take some lines each.

    Args:
        heights: how many lines each row takes; at least one row.
        first: the line of the first row.
    """
    runs = pl.DataFrame({"runs": heights.rle()}).unnest("runs").select(pl.all().cast(pl.Int64))
    if runs.height > STRETCHES_MAX:
        return None
    stretches = runs.select(
        row=pl.col("len").cum_sum() - pl.col("len") + 1,
        place=first + (pl.col("len") * pl.col("value")).cum_sum() - pl.col("len") * pl.col("value"),
        step="value",
    )
    return Places(unit="line", stretches=stretches.rows())


def place_texts(rows: pl.Series, places: Places | None) -> pl.Series:
    """The place of each row in words, such as `line 18`; null where the format has none.

    Args:
        rows: numbers of rows, in any order.
        places: of the file.
    """
    if places is None:
        return pl.Series("place", [None], dtype=pl.String).new_from_index(0, rows.len())
    stretches = pl.DataFrame(
        places.stretches, schema=dict.fromkeys(("row", "first", "step"), pl.Int64), orient="row"
    )
    found = stretches[stretches["row"].search_sorted(rows.cast(pl.Int64), side="right") - 1]
    place = found["first"] + (rows.cast(pl.Int64) - found["row"]) * found["step"]
    return pl.select(pl.format(f"{places.unit} {{}}", place)).to_series().alias("place")
