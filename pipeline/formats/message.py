"""The result of reading a payment message, a file that is not a table.

Such a format has no headers: where a field stands is fixed by the format, and a changed copy is the bytes of
the file with a few edits (`formats/edits`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import polars as pl

from pipeline.frames import WARNINGS, Schema
from pipeline.rules.account_country import AccountSigns
from pipeline.rules.findings import finding_columns
from pipeline.rules.unasked import CODE_UNKNOWN
from pipeline.wording import Sentence
from schemas.localized import LocalizedText
from schemas.outcomes import WarningCode
from schemas.payments import FIELDS
from schemas.summary import ROWS_NAMED_MAX, SetAside, StatedControl

Role = Literal["release", "hold"]
"""Which of the two files of a split is written."""

PAYMENT_FIELDS: Schema = dict.fromkeys(FIELDS, pl.String())

LOCATIONS: Schema = {
    "row": pl.UInt32(),
    "start": pl.Int64(),  # of the payment's bytes in the file
    "end": pl.Int64(),  # one past them, its line end included
    "line": pl.UInt32(),  # the first line that it takes, counted from 1
    "path": pl.String(),  # within a document; null where lines are all there is
    "batch": pl.String(),  # what the payment is booked with; null if the format has no batches
    "code": pl.String(),  # the transaction code of the format; null if it has none
}

SET_ASIDE: Schema = {
    "line": pl.UInt32(),
    "code": pl.String(),  # the transaction code or tag
    "kind": pl.String(),  # in words, singular: direct debit
}
"""Contents that are not credits to a payee: reported, never checked."""


CONTROLS: Schema = {
    "where": pl.String(),  # what says it, and of what: UTL1, number of credits
    "said": pl.String(),
    "found": pl.String(),  # the same of the payments that are there; null if it cannot be known
    "agrees": pl.Boolean(),  # null if `found` is
    "difference": pl.String(),  # how they differ, as `Sentence.as_text` gives it; null if they do not
    "place": pl.String(),  # `where`, as `Sentence.as_text` gives it; null if it is a path
}
"""Every total that a file says of itself."""

THE_FILE = Sentence("formats.the_file")
"""What a sentence about a file begins with, where the file needs no name."""


class StatedTotal(NamedTuple):
    """One row of `CONTROLS`."""

    where: Sentence
    stated: str | None  # None if the file says nothing that can be compared
    found: str | None
    difference: Sentence | None = None  # how they differ, where `difference_of` does not say it


def controls_frame(totals: Iterable[StatedTotal]) -> pl.DataFrame:
    """Control totals as `CONTROLS`."""
    rows = []
    for where, stated, found, difference in totals:
        agrees = None if found is None else stated == found
        differs = None if agrees else difference or difference_of(where, stated or "", found)
        text = None if differs is None else differs.as_text()
        rows.append((str(where), stated or "", found, agrees, text, where.as_text()))
    return pl.DataFrame(rows, schema=CONTROLS, orient="row")


def difference_of(where: Sentence | str, stated: str, found: str | None) -> Sentence:
    """The sentence about a control total that differs; None found: the payments cannot be added up."""
    if found is None:
        return Sentence("formats.cannot_be_added", file=THE_FILE, said=stated, where=where)
    return Sentence("formats.control_differs", file=THE_FILE, said=stated, where=where, found=found)


class FileIdentity(NamedTuple):
    """The hash and size of a file."""

    sha256: str  # hash of its bytes in hexadecimal
    byte_count: int


class Message(NamedTuple):
    """A payment file, read: its payments, and where in its bytes they stand."""

    payments: pl.DataFrame
    """`PAYMENT_FIELDS`: one row per payment, in file order; null where absent."""
    defects: pl.Series
    """Why a payment cannot be checked, as a key of `unasked.SENTENCES`; null if nothing is in the way.
    Same height."""
    locations: pl.DataFrame
    """`LOCATIONS`: where each payment stands, and what else the format needs for its changes."""
    controls: pl.DataFrame
    """`CONTROLS`."""
    facts: Mapping[str, str]
    """Facts about the whole file: `version`, `namespace`, `encoding`..."""
    set_aside: pl.DataFrame = pl.DataFrame(schema=SET_ASIDE)
    """`SET_ASIDE`: what is no payment that can be checked."""
    warnings: pl.DataFrame = pl.DataFrame(schema=WARNINGS)
    """`frames.WARNINGS` that only the format can know."""
    ids: pl.DataFrame = pl.DataFrame()
    """What a report on the file must name each payment by, as the file does; null where absent. No columns
    where the format has no such ids."""
    addresses: pl.DataFrame = pl.DataFrame()
    """Of each payee of a pain.001, which only banks judge: `address_lines`, `town` and `country`."""
    levels: pl.DataFrame = pl.DataFrame()
    """What a pain.001 says about the message (first row) and each batch, and where."""
    notes: tuple[Sentence, ...] = ()
    """Notes for people on how the file was read."""

    signs: AccountSigns | None = None
    """Evidence for the country of each account without an IBAN; None for formats of UK accounts."""
    identity: FileIdentity | None = None
    """SHA-256 of the parsed bytes; None if the caller knows it."""

    @property
    def difference(self) -> Sentence | None:
        """The first control total that differs or cannot be added up: such a file must not be changed."""
        first = self.controls["difference"].drop_nulls().head(1)
        return None if first.is_empty() else Sentence.of_data(json.loads(first[0]))


def split_obstacle(message: Message) -> Sentence | None:
    """Why payments cannot be taken out of a file; None if they can."""
    for line, _, what in message.set_aside.head(1).iter_rows():
        return Sentence("formats.mixed_with_payments", file=THE_FILE, what=in_words(what), line=line)
    unknown = message.locations["line"].filter(message.defects.eq_missing(CODE_UNKNOWN))
    for line in unknown.head(1):
        return Sentence("formats.line_of_no_kind", file=THE_FILE, line=line)
    return None


def truncated_names(names: pl.Series, *, length_max: int) -> pl.DataFrame:
    """A warning for each name that fills its field completely, in order."""
    rows = pl.DataFrame({"name": names}).with_row_index("row", offset=1)
    return (
        rows.filter(pl.col("name").str.len_chars() >= length_max)
        .select(
            pl.col("row").cast(pl.UInt32),
            field=pl.lit("name"),
            code=pl.lit(WarningCode.NAME_TRUNCATED.value),
            **finding_columns(Sentence("rule.name_truncated", length_max=length_max)),
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
    return [
        StatedControl(
            where=_recorded(place) or where,
            said=stated,
            found=found,
            agrees=agrees,
            difference=_recorded(difference),
        )
        for where, stated, found, agrees, difference, place in listed.select(*CONTROLS).iter_rows()
    ]


def _recorded(sentence: str | None) -> LocalizedText | None:
    if sentence is None:
        return None
    return Sentence("formats.whole_sentence", said=Sentence.of_data(json.loads(sentence))).recorded()


def set_aside(message: Message) -> list[SetAside]:
    """Contents of a file beside payments, by kind and code."""
    kinds = message.set_aside.group_by("kind", "code", maintain_order=True).agg("line")
    return [set_aside_of(kind, code, lines) for kind, code, lines in kinds.iter_rows()]


def set_aside_of(kind: str, code: str | None, lines: Sequence[int]) -> SetAside:
    """Some lines of one kind and code that are no payments."""
    sentence = Sentence(
        "formats.set_aside",
        count=len(lines),
        what=in_words(kind),
        code="" if code is None else Sentence("formats.of_code", code=code),
        lines=_lines_named(lines),
    )
    first = list(lines[:ROWS_NAMED_MAX])
    return SetAside(kind=kind, code=code, row_count=len(lines), lines=first, said=sentence.recorded())


def _lines_named(lines: Sequence[int]) -> Sentence:
    named = list(map(str, lines[:ROWS_NAMED_MAX]))
    sentence = Sentence("formats.lines", count=len(lines), lines=named)
    more_count = len(lines) - len(named)
    return (
        Sentence("formats.lines_and_more", lines=sentence, more_count=more_count) if more_count else sentence
    )


def in_words(kind: str) -> Sentence | str:
    """A kind of line in words: of a format of ours in each language, of a layout as the user calls it."""
    return {
        "direct debit": Sentence("formats.direct_debit"),
        "direct debit instruction": Sentence("formats.direct_debit_instruction"),
    }.get(kind, kind)
