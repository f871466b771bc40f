"""The totals of a Standard 18 file: UTL1, and one contra per paying account."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from pipeline.formats.bacs18.labels import TOTALS, FileLabel, Totals, stated_totals
from pipeline.formats.bacs18.records import CONTRA, CREDIT, DEBITS
from pipeline.formats.message import THE_FILE, StatedTotal, controls_frame
from pipeline.wording import Sentence

BOOKING = ("originator", "day")
"""How payments are booked: one contra for all payments of one account on one day."""


def totals_of(records: pl.DataFrame) -> Totals:
    """Add up these records; malformed amounts and instructions do not count."""
    sides = (pl.col("code").is_in(DEBITS), pl.col("code") == CREDIT)
    sums = [pl.col("pence").filter(is_mine).sum() for is_mine in sides]
    counts = [is_mine.sum() for is_mine in sides]
    totals = [*sums, *counts]
    return Totals(*(records.select(total).item() for total in totals))


def controls_of(records: pl.DataFrame, labels: Mapping[str, FileLabel], *, where: str) -> pl.DataFrame:
    """Return `CONTROLS`: every total in the file, and the actual total of its records."""
    return controls_frame([*_of_trailer(records, labels, where), *_of_contras(records)])


def _of_trailer(records: pl.DataFrame, labels: Mapping[str, FileLabel], where: str) -> Iterator[StatedTotal]:
    if "UTL1" not in labels:
        return
    stated, found = stated_totals(labels["UTL1"], where=where), totals_of(records)
    unknown = {
        "bacs18.debit_total": _has_malformed(records, DEBITS),
        "bacs18.credit_total": _has_malformed(records, (CREDIT,)),
    }
    for name, value_stated, value_found in zip(TOTALS, stated, found, strict=True):
        shown = _pounds if name in unknown else str
        is_unknown = unknown.get(name, False)
        yield StatedTotal(
            Sentence("bacs18.in_utl1", name=Sentence(name)),
            shown(value_stated),
            None if is_unknown else shown(value_found),
        )


def _of_contras(records: pl.DataFrame) -> Iterator[StatedTotal]:
    """Yield a total for each account and day; none if the file has no contras."""
    contras = records.filter(kind=CONTRA)
    if contras.is_empty():
        return
    is_contra = pl.col("kind") == CONTRA
    # A contra is a debit for credits, and a credit for debits.
    owed = pl.col("pence").filter(~is_contra & (pl.col("code") == CREDIT)).sum()
    due = pl.col("pence").filter(~is_contra & pl.col("code").is_in(DEBITS)).sum()
    debited = pl.col("pence").filter(is_contra & pl.col("code").is_in(DEBITS)).sum()
    credited = pl.col("pence").filter(is_contra & (pl.col("code") == CREDIT)).sum()
    has_money = pl.col("code").is_in([*DEBITS, CREDIT])
    by_booking = (
        records.filter(has_money)
        .group_by(BOOKING, maintain_order=True)
        .agg(
            line=pl.col("line").filter(is_contra).first(),
            line_first=pl.col("line").first(),
            stated=debited - credited,
            found=owed - due,
            is_malformed=pl.col("pence").is_null().any(),
        )
    )
    for _, _, line, line_first, stated, found, is_malformed in by_booking.iter_rows():
        if line is None:
            where = Sentence("bacs18.contra_of_account", line=line_first)
            lacking = Sentence("bacs18.no_contra", file=THE_FILE, line=line_first, found=_pounds(found))
            yield StatedTotal(where, None, _pounds(found), lacking)
        else:
            where = Sentence("bacs18.contra_in_line", line=line)
            yield StatedTotal(where, _pounds(stated), None if is_malformed else _pounds(found))


def _has_malformed(records: pl.DataFrame, codes: Sequence[str]) -> bool:
    return records.filter(pl.col("code").is_in(codes) & pl.col("pence").is_null()).height > 0


def _pounds(pence: int) -> str:
    """Return an amount in pounds, for messages.

    >>> _pounds(123456), _pounds(-5)
    ('1,234.56', '-0.05')
    """
    return f"{'-' if pence < 0 else ''}{abs(pence) // 100:,}.{abs(pence) % 100:02d}"
