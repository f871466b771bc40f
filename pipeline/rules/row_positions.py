"""Positions of many rows as columns: the vectorised counterpart of `schemas.row_positions`."""

import polars as pl

from schemas.row_positions import RowPositions

STRETCHES_MAX = 100_000  # changes of row height; with more, positions are left out of the report


def lines_of(heights: pl.Series, *, first: int) -> RowPositions | None:
    """Return the positions of rows (at least one), from their heights in lines and the first line."""
    runs = _runs(heights)
    if runs.height > STRETCHES_MAX:
        return None
    height = pl.col("len") * pl.col("value")
    stretches = runs.select("row", place=first + height.cum_sum() - height, step="value")
    return RowPositions(unit="line", stretches=stretches.rows())


def lines_at(lines: pl.Series) -> RowPositions | None:
    """Return the positions of rows on these lines, in order; at least one."""
    heights = lines.cast(pl.Int64).diff(null_behavior="drop").extend_constant(1, 1)
    return lines_of(heights, first=lines[0])


def batches_of(batches: pl.Series) -> RowPositions | None:
    """Return the positions of payments (at least one) by their batch numbers, in order."""
    runs = _runs(batches)
    if runs.height > STRETCHES_MAX:
        return None
    return RowPositions(unit="PmtInf", stretches=runs.select("row", "value", step=pl.lit(0)).rows())


def _runs(values: pl.Series) -> pl.DataFrame:
    """Return `len` and `value` of each run of equal values, and its first `row`."""
    runs = pl.DataFrame({"runs": values.rle()}).unnest("runs").select(pl.all().cast(pl.Int64))
    return runs.with_columns(row=pl.col("len").cum_sum() - pl.col("len") + 1)


def position_texts(rows: pl.Series, positions: RowPositions | None, pattern: str = "") -> pl.Series:
    """Return the position of each row, such as `line 18`, or by a pattern such as `Zeile {}`; else null."""
    if positions is None:
        return pl.repeat(None, rows.len(), dtype=pl.String, eager=True).alias("place")
    stretches = pl.DataFrame(
        positions.stretches, schema=dict.fromkeys(("row", "first", "step"), pl.Int64), orient="row"
    )
    found = stretches[stretches["row"].search_sorted(rows.cast(pl.Int64), side="right") - 1]
    place = found["first"] + (rows.cast(pl.Int64) - found["row"]) * found["step"]
    nth = rows.cast(pl.Int64) - found["row"] + 1
    if positions.unit == "PmtInf":
        texts = pl.format("PmtInf[{}]/CdtTrfTxInf[{}]", place, nth)
    elif positions.unit == "part":
        names = pl.Series(positions.names, dtype=pl.String).gather(place - 1)
        texts = pl.format("{} row {}", names, nth)
    else:
        texts = pl.format(pattern or f"{positions.unit} {{}}", place)
    return pl.select(texts).to_series().alias("place")
