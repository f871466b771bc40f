"""Changed copies of Standard 18 files: names corrected, payments removed, totals recalculated."""

from collections.abc import Iterator, Mapping

import polars as pl

from pipeline.formats.bacs18 import totals
from pipeline.formats.bacs18.records import (
    CONTRA,
    NAME,
    NAME_LENGTH_MAX,
    NOTHING,
    PAYMENT,
    PENCE,
    PENCE_MAX,
    records_of,
)
from pipeline.formats.edits import Edit, removals
from pipeline.formats.message import Message, Role, split_obstacle
from pipeline.formats.text_lines import in_bacs_characters
from pipeline.wording import Sentence

_READ_BEFORE = "a file that was read before"


def fitted(name: str) -> str | None:
    """Return a name in Bacs characters, cut to the field's length; None if no character remains.

    >>> fitted("Quillon & Marrow Engineering Ltd")
    'QUILLON & MARROW E'
    """
    text = in_bacs_characters(name)
    return None if text is None else text[:NAME_LENGTH_MAX].rstrip()


def obstacle(message: Message) -> Sentence | None:
    """Return why a file must not be changed; None if it may."""
    return message.difference


def name_obstacle(message: Message, row: int, name: str) -> Sentence | None:  # noqa: ARG001 - other formats need the row
    """Return why a payee cannot get a name; None if it can."""
    return Sentence("bacs18.letters_not_of_bacs") if fitted(name) is None else None


def renamed(data: bytes, message: Message, names: Mapping[int, str]) -> list[Edit]:
    """Return edits that give payees new names; a name that fitting leaves unchanged needs no edit."""
    assert obstacle(message) is None
    starts = message.locations["start"]
    edits = []
    for row, name in names.items():
        text = fitted(name)
        assert text is not None
        start, end = NAME.within(starts[row - 1])
        field = text.ljust(NAME_LENGTH_MAX).encode("ascii")
        if data[start:end] != field:
            edits.append(Edit(start, end, field))
    return edits


def kept(data: bytes, message: Message, keep: pl.Series, role: Role) -> list[Edit]:  # noqa: ARG001 - both files keep the labels
    """Return the edits that keep only these payments, at least one, with matching contras and totals."""
    assert keep.len() == message.payments.height
    assert keep.any()
    assert obstacle(message) is None
    assert split_obstacle(message) is None
    records = records_of(data, where=_READ_BEFORE)
    is_payment = records["kind"] == PAYMENT
    stays = (~is_payment).scatter(is_payment.arg_true(), keep)
    after = _with_new_contras(records.filter(stays), records)
    labels = totals.labels_of(records, where=_READ_BEFORE)
    gone = records.join(after.select("line"), on="line", how="anti", maintain_order="left")
    return [*removals(gone), *_amounts(records, after), *_labels(labels, records, after)]


def _with_new_contras(records: pl.DataFrame, original: pl.DataFrame) -> pl.DataFrame:
    """Replace the contras with ones that balance the payments; unneeded contras are removed.

    If an account's sum exceeds one contra, several are used in their original places, the first ones full.
    """
    is_contra, is_payment = (pl.col("kind") == kind for kind in (CONTRA, PAYMENT))
    if original.filter(is_contra).is_empty():
        return records
    owed = pl.col("pence").filter(is_payment).sum().over(totals.BOOKING)
    is_right = owed == pl.col("pence").filter(is_contra).sum().over(totals.BOOKING)
    in_full = PENCE_MAX * (is_contra.cum_sum().over(totals.BOOKING) - 1)
    due = pl.when(is_right).then("pence").otherwise((owed - in_full).clip(0, PENCE_MAX))
    is_needed = is_payment.any().over(totals.BOOKING) & (is_right | (due > 0))
    is_money = is_contra | is_payment
    money = (
        records.filter(is_money)
        .filter(is_payment | is_needed)
        .with_columns(pence=pl.when(is_contra).then(due).otherwise("pence"))
    )
    assert money.filter(is_contra)["pence"].sum() == money.filter(is_payment)["pence"].sum()
    return pl.concat([records.filter(~is_money), money]).sort("line")


def _amounts(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[Edit]:
    """Yield edits for the contras whose amount changed."""
    contras = after.filter(kind=CONTRA).join(before.select("line", was="pence"), on="line")
    for start, pence in contras.filter(pl.col("pence") != pl.col("was")).select("start", "pence").iter_rows():
        yield Edit(*PENCE.within(start), PENCE.digits(pence))


def _labels(
    labels: Mapping[str, totals.FileLabel], before: pl.DataFrame, after: pl.DataFrame
) -> Iterator[Edit]:
    """Yield edits for the totals, and for the number of blocks if it was correct before."""
    if "UTL1" in labels:
        yield Edit(
            *totals.TOTALS_FIELD.within(labels["UTL1"].start), totals.totals_text(totals.totals_of(after))
        )
    if "EOF1" not in labels:
        return
    is_record = ~pl.col("kind").is_in([*labels, NOTHING])
    was, now = (totals.block_count(labels, records.filter(is_record).height) for records in (before, after))
    count_before = labels["EOF1"].field(totals.BLOCK_COUNT)
    if now is not None and count_before.isdecimal() and int(count_before) == was:
        yield Edit(*totals.BLOCK_COUNT.within(labels["EOF1"].start), totals.BLOCK_COUNT.digits(now))
