"""What a format whose payments are lines reads a file into: canonical fields, and where each payment stands.

Such a format has no header line: its places and its control totals are fixed by the format, and a changed
copy is the bytes of the file with a few edits (`formats/edits`).
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import polars as pl

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


CONTROLS: Schema = {
    "where": pl.String(),  # what says it, and of what: UTL1, number of credits
    "said": pl.String(),
    "found": pl.String(),  # the same of the payments that are there; null where it cannot be known
    "agrees": pl.Boolean(),  # null where `found` is
}
"""Every total that a file says of itself."""


class StatedTotal(NamedTuple):
    """One row of `CONTROLS`."""

    where: str
    said: str
    found: str | None


def controls_frame(totals: Iterable[StatedTotal]) -> pl.DataFrame:
    """Control totals as `CONTROLS`."""
    schema = {column: kind for column, kind in CONTROLS.items() if column != "agrees"}
    frame = pl.DataFrame(list(totals), schema=schema, orient="row")
    return frame.with_columns(agrees=pl.col("said") == pl.col("found"))


class LineMessage(NamedTuple):
    """A payment file, read."""

    payments: pl.DataFrame
    """`PAYMENT_FIELDS`: one row per payment, in file order; null where absent."""
    defects: pl.Series
    """What is wrong with each payment as a whole: a key of `DEFECTS`, or a code of `formats/table`."""
    places: pl.DataFrame
    """`PLACES`: where each payment stands; rows are counted from 1."""
    controls: pl.DataFrame
    """`CONTROLS`."""
    facts: Mapping[str, str]
    """What is told about the file as a whole: name -> value."""
    set_aside: pl.DataFrame
    """`SET_ASIDE`: what is no payment that can be checked."""
    warnings: pl.DataFrame
    """`frames.WARNINGS` that only the format can know."""

    @property
    def totals_differ(self) -> bool:
        """Whether the file contradicts itself, or cannot be added up."""
        return not self.controls["agrees"].fill_null(value=False).all()


def difference(message: LineMessage) -> str | None:
    """How a file contradicts itself, as a sentence about it: new totals would hide that it was cut."""
    for what, said, found, agrees in message.controls.iter_rows():
        if agrees is None:
            return f"says {said} ({what}) and cannot be added up; correct its amounts where it is made"
        if not agrees:
            return (
                f"says {said} ({what}) and has {found}; it may be cut, and a changed copy would hide that: "
                "export it again"
            )
    return None


def split_obstacle(message: LineMessage) -> str | None:
    """Why payments cannot be taken out of a file, as a sentence about it; None where they can."""
    for line, _, what in message.set_aside.head(1).iter_rows():
        return f"has a {what} on line {line}; a file that mixes them with payments is split where it is made"
    unknown = message.places["line"].filter(message.defects.eq_missing(CODE_UNKNOWN))
    for line in unknown.head(1):
        return f"has a line of no kind that is known, line {line}; correct it where it is made"
    return None


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
