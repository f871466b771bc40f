"""What a message format reads a file into: payments by their canonical fields, and where each one stands.

A message format has no header line and no columns of its own to be kept: its places and its control totals
are fixed by the format, and a changed copy is the bytes of the file with a few edits (`formats/edits`).
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.frames import WARNINGS, Schema
from schemas.payments import FIELDS

Role = Literal["release", "hold"]
"""Which of the two files of a split is written."""

PAYMENT_FIELDS: Schema = dict.fromkeys(FIELDS, pl.String())

PLACES: Schema = {
    "row": pl.UInt32(),
    "start": pl.Int64(),  # of the payment's bytes in the file
    "end": pl.Int64(),  # one past them, its line end included
    "line": pl.UInt32(),  # the first line that it takes, counted from 1
    "path": pl.String(),  # within a document; null where lines are all there is
    "batch": pl.String(),  # what the payment is booked with; null where the format has no batches
    "code": pl.String(),  # the transaction code of the format; null where it has none
}

SET_ASIDE: Schema = {
    "line": pl.UInt32(),
    "code": pl.String(),  # the transaction code or tag
    "kind": pl.String(),  # in words, singular: direct debit
}
"""What the file has that is no credit to a payee: told, and never checked."""

NAME_TRUNCATED = "NAME_TRUNCATED"
"""The code of a warning: the name fills its field, so that its end may be missing."""

AMOUNT_MALFORMED = "AMOUNT_MALFORMED"
CODE_UNKNOWN = "CODE_UNKNOWN"
DAY_MALFORMED = "DAY_MALFORMED"
DEFECTS: Mapping[str, str] = {
    AMOUNT_MALFORMED: "the amount has characters that are no digits; correct it where the file is made",
    CODE_UNKNOWN: "the transaction code is none that this program knows; correct it where the file is made",
    DAY_MALFORMED: "the processing day is no day, as bYYDDD; correct it where the file is made",
}
"""What is wrong with a whole row -> the sentence of its rejection."""


class Control(NamedTuple):
    """One total that a file says of itself."""

    where: str
    """What says it, and of what: UTL1, number of credits."""
    said: str
    found: str
    """The same of the payments that are there; a word where it cannot be known."""

    @property
    def agrees(self) -> bool:
        """Whether the file is what it says."""
        return self.said == self.found


class Message(NamedTuple):
    """A payment file, read."""

    payments: pl.DataFrame
    """`PAYMENT_FIELDS`: one row per payment, in file order; null where absent."""
    defects: pl.Series
    """What is wrong with each payment as a whole: a key of `DEFECTS`, or a code of `formats/table`."""
    places: pl.DataFrame
    """`PLACES`: where each payment stands; rows are counted from 1."""
    controls: tuple[Control, ...]
    """Every total that the file says of itself."""
    facts: Mapping[str, str]
    """What is told about the file as a whole: name -> value."""
    set_aside: pl.DataFrame
    """`SET_ASIDE`: what is no payment that can be checked."""
    warnings: pl.DataFrame
    """`frames.WARNINGS` that only the format can know."""


def refuse_differing_totals(message: Message, *, where: str) -> None:
    """Refuse to change a file that is not what it says: new totals would hide that it was cut.

    Raises:
        InputError: a control total differs from the payments.
    """
    for control in message.controls:
        if not control.agrees:
            raise InputError(
                f"{where}: {control.where}: says {control.said} and has {control.found}; it may be cut, and "
                "a changed copy would hide that; export it again"
            )


def truncated_names(names: pl.Series, *, length_max: int) -> pl.DataFrame:
    """A warning of each name that fills its field.

    Args:
        names: Of all payments, in order.
        length_max: How many characters the field has.
    """
    sentence = (
        f"the name fills the {length_max} characters that the file has for it, and its end may be missing: "
        "a close match may mean no more than that"
    )
    rows = pl.DataFrame({"name": names}).with_row_index("row", offset=1)
    return (
        rows.filter(pl.col("name").str.len_chars() >= length_max)
        .select(
            pl.col("row").cast(pl.UInt32),
            field=pl.lit("name"),
            code=pl.lit(NAME_TRUNCATED),
            message=pl.lit(sentence),
        )
        .match_to_schema(WARNINGS)
    )


def with_absent_fields(fields: pl.DataFrame) -> pl.DataFrame:
    """The canonical fields of payments, those that the format does not have as nulls."""
    absent = [pl.lit(None, dtype=pl.String).alias(field) for field in FIELDS if field not in fields.columns]
    return fields.with_columns(absent).select(FIELDS)
