"""The batches of a payment file: groups of payments that are booked together, and their totals."""

from typing import Any, NamedTuple

import polars as pl

from pipeline.formats.message import Message
from pipeline.rules.totals import plain
from schemas.outcomes import UNDECIDED, Outcome
from schemas.summary import BatchTotal, Money

BATCHES_MAX = 1_000
_UK_ACCOUNT = r"(^| )([0-9]{6})[- ]?[0-9]{4}([0-9]{4})($| )"
_IBAN = r"(^| )([A-Z]{2})[0-9]{2}[A-Z0-9]{7,26}([A-Z0-9]{4})($| )"


class Batches(NamedTuple):
    """The batches of a file."""

    listed: list[BatchTotal]  # the first ones, in file order
    batch_count: int  # number of all batches


def batch_places(message: Message | None) -> pl.DataFrame:
    """Return the `key`, `batch` and `line` of each payment; a key of a pain.001 is the number of a batch.

    A table and a message without batches have no such rows.
    """
    if message is None or (message.levels.is_empty() and not message.locations["batch"].count()):
        return pl.DataFrame()
    key = "batch" if message.levels.is_empty() else "level"
    return message.locations.select("batch", "line", key=key)


def batch_totals(places: pl.DataFrame, rows: pl.DataFrame, *, listed_max: int = BATCHES_MAX) -> Batches:
    """Return the totals of each batch; `places` are from `batch_places`.

    `rows` has one row per payment, in order: `check_outcome`, and `amount` and `currency` as in
    `totals.money_of`.
    """
    if places.is_empty():
        return Batches([], 0)
    is_pain001 = places["key"].dtype.is_integer()
    booked = rows.select("check_outcome", "amount", "currency").hstack([places["key"]])
    firsts = places.unique("key", keep="first", maintain_order=True)
    listed = firsts.head(listed_max)
    names = masked_batches(listed["batch"], are_ids=is_pain001)
    booked = booked.filter(pl.col("key").is_in(listed["key"].implode(), nulls_equal=True))
    is_open = ~pl.col("check_outcome").is_in([Outcome.MATCH, *UNDECIDED])
    counts = booked.group_by("key", maintain_order=True).agg(pl.len(), is_open.sum())
    money, zipped = _money(booked), zip(counts.iter_rows(), names, listed["line"], strict=True)
    found = [
        BatchTotal(
            batch=name,
            location=f"PmtInf[{key}]" if is_pain001 else f"line {line}",
            row_count=row_count,
            to_look_at_count=open_count,
            totals=money.get(key, []),
        )
        for (key, row_count, open_count), name, line in zipped
    ]
    return Batches(found, firsts.height)


def _money(booked: pl.DataFrame) -> dict[Any, list[Money]]:
    """Return the amounts of each batch by currency, added up as `totals` does for a file."""
    sums = (
        booked.filter(pl.col("amount") >= 0)
        .group_by("key", "currency")
        .agg(pl.len(), pl.col("amount").sum())
        .sort("currency", nulls_last=True)
    )
    money: dict[Any, list[Money]] = {}
    for key, currency, row_count, amount in sums.iter_rows():
        total = Money(currency=currency, row_count=row_count, amount=plain(amount))
        money.setdefault(key, []).append(total)
    return money


def masked_batches(batches: pl.Series, *, are_ids: bool) -> pl.Series:
    """Mask the names of batches for people: only the end of an account is shown.

    IDs, such as the PmtInfId of a pain.001, come from the payer; other names are made from an account.

    >>> masked_batches(pl.Series(["2026-11-26 400001 12345678"]), are_ids=False).item()
    '2026-11-26 400001 **5678'
    >>> masked_batches(pl.Series(["20261126000001"]), are_ids=True).item()
    '20261126000001'
    """
    if are_ids:
        return batches
    return batches.str.replace_all(_UK_ACCOUNT, "$1$2 **$3$4").str.replace_all(_IBAN, "$1$2**$3$4")
