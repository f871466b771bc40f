"""What a format of messages reads a file into: payments that stand in a text that is no table.

Such a format has no headers: where a field stands is fixed by the format, and a changed copy is the bytes of
the file with a few edits (`formats/edits`).
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import polars as pl

from pipeline.frames import WARNINGS, Schema
from pipeline.rules.account_country import AccountSigns
from pipeline.rules.findings import said
from pipeline.rules.unasked import CODE_UNKNOWN
from pipeline.wording import Sentence
from schemas.outcomes import WarningCode
from schemas.payments import FIELDS
from schemas.summary import ROWS_NAMED_MAX, SetAside, StatedControl

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
"""What the file has that is no credit to a payee: reported, and never checked."""


CONTROLS: Schema = {
    "where": pl.String(),  # what says it, and of what: UTL1, number of credits
    "said": pl.String(),
    "found": pl.String(),  # the same of the payments that are there; null where it cannot be known
    "agrees": pl.Boolean(),  # null where `found` is
    "difference": pl.String(),  # how they differ, as a sentence about the file; null where they do not
}
"""Every total that a file says of itself."""


class StatedTotal(NamedTuple):
    """One row of `CONTROLS`."""

    where: str
    said: str
    found: str | None


def controls_frame(totals: Iterable[StatedTotal]) -> pl.DataFrame:
    """Control totals as `CONTROLS`."""
    frame = pl.DataFrame(list(totals), schema=["where", "said", "found"], orient="row")
    frame = frame.cast(pl.String).with_columns(agrees=pl.col("said") == pl.col("found"))
    unknown = pl.format(
        "says {} ({}) and cannot be added up; correct its amounts where it is made", "said", "where"
    )
    differs = pl.format(
        "says {} ({}) and has {}; it may be cut or changed",
        "said",
        "where",
        "found",
    )
    sentence = pl.when(pl.col("agrees").is_null()).then(unknown).when(~pl.col("agrees")).then(differs)
    return frame.with_columns(difference=sentence).match_to_schema(CONTROLS)


class FileIdentity(NamedTuple):
    """The hash and size of a file."""

    sha256: str
    """Of its bytes, as hexadecimal digits."""
    byte_count: int


class Message(NamedTuple):
    """A payment file, read: its payments, and where in its bytes they stand."""

    payments: pl.DataFrame
    """`PAYMENT_FIELDS`: one row per payment, in file order; null where absent."""
    defects: pl.Series
    """Why a payment cannot be checked, as a key of `unasked.SENTENCES`; null where nothing is in the way.
    Same height."""
    places: pl.DataFrame
    """`PLACES`: where each payment stands, and what else the format needs for its changes."""
    controls: pl.DataFrame
    """`CONTROLS`."""
    facts: Mapping[str, str]
    """What is known of the file as a whole: `version`, `namespace`, `encoding`..."""
    set_aside: pl.DataFrame = pl.DataFrame(schema=SET_ASIDE)
    """`SET_ASIDE`: what is no payment that can be checked."""
    warnings: pl.DataFrame = pl.DataFrame(schema=WARNINGS)
    """`frames.WARNINGS` that only the format can know."""
    ids: pl.DataFrame = pl.DataFrame()
    """What a report on the file must name each payment by, as the file does; null where absent. No columns
    where the format has no such ids."""
    levels: pl.DataFrame = pl.DataFrame()
    """Of a pain.001, the message, in the first row, and its batches: what they say of themselves, and where.
    """
    notes: tuple[str, ...] = ()
    """What a person may want to know of how the file was read, as sentences without an end."""

    signs: AccountSigns | None = None
    """What shows the country of each account that is no IBAN; None where the format is one of UK accounts."""
    identity: FileIdentity | None = None
    """Of the bytes that were parsed; None where who gave them knows it."""

    @property
    def differences(self) -> pl.Series:
        """A sentence for each control total that is not kept, or that cannot be added up."""
        return self.controls["difference"].drop_nulls()

    @property
    def difference(self) -> str | None:
        """The first of them: such a file must not be changed, as new totals would hide that it was cut."""
        return next(iter(self.differences), None)


def split_obstacle(message: Message) -> str | None:
    """Why payments cannot be taken out of a file, as a sentence about it; None where they can."""
    for line, _, what in message.set_aside.head(1).iter_rows():
        return f"has a {what} on line {line}; a file that mixes them with payments is split where it is made"
    unknown = message.places["line"].filter(message.defects.eq_missing(CODE_UNKNOWN))
    for line in unknown.head(1):
        return f"has a line of no kind that is known, line {line}; correct it where it is made"
    return None


def truncated_names(names: pl.Series, *, length_max: int) -> pl.DataFrame:
    """A warning of each name, in order, that fills its field of so many characters."""
    rows = pl.DataFrame({"name": names}).with_row_index("row", offset=1)
    return (
        rows.filter(pl.col("name").str.len_chars() >= length_max)
        .select(
            pl.col("row").cast(pl.UInt32),
            field=pl.lit("name"),
            code=pl.lit(WarningCode.NAME_TRUNCATED.value),
            **said(Sentence("rule.name_truncated", length_max=length_max)),
        )
        .match_to_schema(WARNINGS)
    )


def with_absent_fields(fields: pl.DataFrame) -> pl.DataFrame:
    """The canonical fields of payments, those that the format does not have as nulls."""
    absent = [pl.lit(None, dtype=pl.String).alias(field) for field in FIELDS if field not in fields.columns]
    return fields.with_columns(absent).select(FIELDS)


CONTROLS_MAX = 1_000


def stated_controls(message: Message) -> list[StatedControl]:
    """The control totals of a file, those that differ first; `CONTROLS_MAX` at most."""
    listed = message.controls.sort(pl.col("difference").is_null(), maintain_order=True).head(CONTROLS_MAX)
    return [StatedControl(**row) for row in listed.iter_rows(named=True)]


def set_aside(message: Message) -> list[SetAside]:
    """What a file has beside payments, by kind and code."""
    kinds = message.set_aside.group_by("kind", "code", maintain_order=True).agg("line")
    return [
        SetAside(kind=kind, code=code, row_count=len(lines), lines=lines[:ROWS_NAMED_MAX])
        for kind, code, lines in kinds.iter_rows()
    ]
