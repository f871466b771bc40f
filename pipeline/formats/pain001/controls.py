"""Control totals: compare the count and sum of each level with its payments."""

from collections.abc import Iterator
from decimal import Decimal

import polars as pl

from pipeline.formats.message import THE_FILE, StatedTotal, controls_frame
from pipeline.wording import Sentence

MONEY = pl.Decimal(precision=38, scale=5)
"""Exact amounts within the schemas' limits. Sums mix currencies, like banks' sums."""
_AMOUNT = r"^[0-9]{1,18}(\.[0-9]{1,5})?$"


def totals(amounts: pl.DataFrame, level_count: int) -> pl.DataFrame:
    """Count and add up the payments of the message and of each batch.

    Args:
        amounts: `batch` and `amount` (text) of each payment.
        level_count: Number of rows to return: the message, then its batches.

    Returns:
        `count` and `sum`; the sum is null if an amount is not a number.
    """
    money = pl.when(pl.col("amount").str.contains(_AMOUNT)).then(pl.col("amount")).cast(MONEY)
    summed = (
        amounts.select("batch", money=money)
        .group_by("batch")
        .agg(count=pl.len(), sum=pl.col("money").sum(), known=pl.col("money").is_not_null().all())
    )
    whole = summed.select(
        pl.lit(0, pl.Int64).alias("batch"), pl.col("count", "sum").sum(), pl.col("known").all()
    )
    levels = pl.DataFrame({"batch": range(level_count)}, schema={"batch": pl.Int64})
    return (
        levels.join(pl.concat([whole, summed]), on="batch", how="left", maintain_order="left")
        .with_columns(
            pl.col("count").fill_null(0), pl.col("sum").fill_null(0), pl.col("known").fill_null(value=True)
        )
        .select("count", pl.when("known").then("sum").alias("sum"))
    )


def controls(levels: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Compare the stated totals of all levels with their actual `totals`."""
    return controls_frame(_controls(levels, found))


def amount_like(total: Decimal, stated: str) -> str:
    """Write a sum with as many decimals as the stated one, or more if needed.

    >>> amount_like(Decimal("3.50000"), "6.00"), amount_like(Decimal("3.50000"), "6")
    ('3.50', '3.5')
    """
    whole, _, decimals = f"{total:f}".partition(".")
    decimals = decimals.rstrip("0").ljust(len(stated.partition(".")[2]), "0")
    return f"{whole}.{decimals}" if decimals else whole


def _controls(levels: pl.DataFrame, found: pl.DataFrame) -> Iterator[StatedTotal]:
    pairs = zip(
        levels.select("count", "sum").iter_rows(), found.select("count", "sum").iter_rows(), strict=True
    )
    for level, ((said_count, said_sum), (count, total)) in enumerate(pairs):
        place = f"PmtInf[{level}]" if level else "GrpHdr"
        if said_count is not None:
            where, is_equal = f"{place}/NbOfTxs", _number(said_count) == count
            yield StatedTotal(where, said_count, str(count), is_equal=is_equal)
        if said_sum is not None:
            where, said = f"{place}/CtrlSum", _number(said_sum)
            text = None if total is None else amount_like(total, said_sum)
            wrong = None
            if said is None:
                wrong = Sentence("formats.control_is_no_number", file=THE_FILE, stated=said_sum, where=where)
            yield StatedTotal(where, said_sum, text, wrong, is_equal=said == total)


def _number(text: str) -> Decimal | None:
    """Parse the number in a level; None if it is not a number.

    >>> _number("+12.50"), _number("1e3"), _number("12,50")
    (Decimal('12.50'), None, None)
    """
    digits = text.removeprefix("+").replace(".", "", 1)
    return Decimal(text) if digits.isascii() and digits.isdecimal() else None
