"""The result of reading a payment message, that is, a file that is not a table.

Such a format has no headers: the position of each field is fixed, and a changed copy is the original with a
few edits (`formats/edits`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

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

Role = Literal["release", "hold"]  # which of a split's two files it is

PAYMENT_FIELDS: Schema = dict.fromkeys(FIELDS, pl.String())

LOCATIONS: Schema = {
    "row": pl.UInt32(),
    "start": pl.Int64(),  # offset of the payment in the file
    "end": pl.Int64(),  # offset after it, line end included
    "line": pl.UInt32(),  # its first line, counted from 1
    "path": pl.String(),  # its position in a document; null in formats of lines
    "batch": pl.String(),  # name of its batch; null if the format has no batches
    "code": pl.String(),  # the transaction code of the format; null if it has none
}

SET_ASIDE: Schema = {
    "line": pl.UInt32(),
    "code": pl.String(),  # the transaction code or tag
    "kind": pl.String(),  # in words, singular: direct debit
}
"""Contents that are not credits to a payee: reported, never checked."""


CONTROLS: Schema = {
    "where": pl.String(),  # the element with the total: UTL1, number of credits
    "stated": pl.String(),
    "found": pl.String(),  # the total of the actual payments; null if it cannot be known
    "agrees": pl.Boolean(),  # null if `found` is
    "difference": pl.String(),  # the difference, as `Sentence.as_text`; null if there is none
    "place": pl.String(),  # `where` as `Sentence.as_text`; null if it is a path
}
"""Every total in the file."""

THE_FILE = Sentence("formats.the_file")  # the subject of sentences that do not name the file


class StatedTotal(NamedTuple):
    """One row of `CONTROLS`."""

    where: Sentence | str  # words, or a path
    stated: str | None  # None if the file states nothing comparable
    found: str | None
    difference: Sentence | None = None  # in place of `difference_of`
    is_equal: bool | None = None  # if the texts may differ for one number


def controls_frame(totals: Iterable[StatedTotal]) -> pl.DataFrame:
    """Return control totals as `CONTROLS`."""
    rows = []
    for where, stated, found, difference, is_equal in totals:
        agrees = None if found is None else stated == found if is_equal is None else is_equal
        differs = None if agrees else difference or difference_of(where, stated or "", found)
        text = None if differs is None else differs.as_text()
        place = where.as_text() if isinstance(where, Sentence) else None
        rows.append((str(where), stated or "", found, agrees, text, place))
    return pl.DataFrame(rows, schema=CONTROLS, orient="row")


def difference_of(where: Sentence | str, stated: str, found: str | None) -> Sentence:
    """Describe a differing control total; `found` is None if the payments cannot be added up."""
    if found is None:
        return Sentence("formats.amounts_cannot_be_added", file=THE_FILE, stated=stated, where=where)
    return Sentence("formats.control_differs", file=THE_FILE, stated=stated, where=where, found=found)


class FileIdentity(NamedTuple):
    """The hash and size of a file."""

    sha256: str  # hexadecimal digest of its bytes
    byte_count: int


class Message(NamedTuple):
    """A payment file after reading: its payments and their positions."""

    payments: pl.DataFrame  # `PAYMENT_FIELDS`: one row per payment, in file order; null where absent
    defects: pl.Series
    """Why a payment cannot be checked, as a key of `unasked.SENTENCES`; null if it can. Same height."""
    locations: pl.DataFrame
    """`LOCATIONS`: the position of each payment, and what the format needs to change it."""
    controls: pl.DataFrame  # `CONTROLS`
    facts: Mapping[str, str]  # facts about the whole file: `version`, `namespace`, `encoding`...
    set_aside: pl.DataFrame = pl.DataFrame(schema=SET_ASIDE)
    """`SET_ASIDE`: contents that are not payments to check."""
    warnings: pl.DataFrame = pl.DataFrame(schema=WARNINGS)  # `frames.WARNINGS` that only the format can find
    ids: pl.DataFrame = pl.DataFrame()
    """IDs that a report must give for each payment, as in the file; null where absent. No columns if the
    format has no such IDs.
    """
    addresses: pl.DataFrame = pl.DataFrame()
    """Payee data of a pain.001 that only banks check: `address_lines`, `town` and `country`, per payment."""
    levels: pl.DataFrame = pl.DataFrame()
    """Header data of a pain.001: the message (first row) and each batch, with paths."""
    notes: tuple[Sentence, ...] = ()  # notes for people on how the file was read

    signs: AccountSigns | None = None
    """Evidence for the country of each account without an IBAN; None for formats of UK accounts."""
    identity: FileIdentity | None = None  # SHA-256 of the parsed bytes; None if the caller knows it

    @property
    def difference(self) -> Sentence | None:
        """The first control total that differs or cannot be added up; such a file must not be changed."""
        first = self.controls["difference"].drop_nulls().head(1)
        return None if first.is_empty() else Sentence.of_data(json.loads(first[0]))


def split_obstacle(message: Message) -> Sentence | None:
    """Return why payments cannot be removed from a file; None if they can."""
    for line, _, what in message.set_aside.head(1).iter_rows():
        return Sentence("formats.mixed_with_payments", file=THE_FILE, what=in_words(what), line=line)
    unknown = message.locations["line"].filter(message.defects.eq_missing(CODE_UNKNOWN))
    for line in unknown.head(1):
        return Sentence("formats.line_of_unknown_kind", file=THE_FILE, line=line)
    return None


def truncated_names(names: pl.Series, *, length_max: int) -> pl.DataFrame:
    """Warn about each name that fills its field completely, in order."""
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


def line_locations(payments: pl.DataFrame, batch: pl.Expr) -> pl.DataFrame:
    """Return `LOCATIONS` of payments that are lines, with `start`, `end`, `line` and `code`."""
    return payments.select(
        pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).alias("row"),
        "start",
        "end",
        "line",
        pl.lit(None, dtype=pl.String).alias("path"),
        batch.alias("batch"),
        "code",
    ).match_to_schema(LOCATIONS)


def with_absent_fields(fields: pl.DataFrame) -> pl.DataFrame:
    """Add the canonical fields that the format lacks, as nulls."""
    absent = [pl.lit(None, dtype=pl.String).alias(field) for field in FIELDS if field not in fields.columns]
    return fields.with_columns(absent).select(FIELDS)


CONTROLS_MAX = 1_000


def message_fields(message: Message | None) -> dict[str, Any]:
    """Return what documents record of a message other than its payments; nothing for other files."""
    if message is None:
        return {}
    return {
        "facts": dict(message.facts),
        "controls": stated_controls(message),
        "control_count": message.controls.height,
        "set_aside": set_aside(message),
    }


def stated_controls(message: Message) -> list[StatedControl]:
    """Return at most `CONTROLS_MAX` control totals of a file, differing ones first."""
    listed = message.controls.sort(pl.col("difference").is_null(), maintain_order=True).head(CONTROLS_MAX)
    return [
        StatedControl(
            **row | {"where": _recorded(place) or row["where"], "difference": _recorded(row["difference"])}
        )
        for place, row in zip(listed["place"], listed.drop("place").iter_rows(named=True), strict=True)
    ]


def _recorded(sentence: str | None) -> LocalizedText | None:
    if sentence is None:
        return None
    return Sentence(
        "formats.sentence_with_full_stop", sentence=Sentence.of_data(json.loads(sentence))
    ).recorded()


def set_aside(message: Message) -> list[SetAside]:
    """Return the contents of a file other than payments, by kind and code."""
    kinds = message.set_aside.group_by("kind", "code", maintain_order=True).agg("line")
    return [set_aside_of(kind, code, lines) for kind, code, lines in kinds.iter_rows()]


def set_aside_of(kind: str, code: str | None, lines: Sequence[int]) -> SetAside:
    """Describe lines of one kind and code that are not payments."""
    sentence = Sentence(
        "formats.lines_not_checked",
        count=len(lines),
        what=in_words(kind),
        code="" if code is None else Sentence("formats.of_code", code=code),
        lines=_lines_named(lines),
    )
    first = list(lines[:ROWS_NAMED_MAX])
    return SetAside(kind=kind, code=code, row_count=len(lines), lines=first, sentence=sentence.recorded())


def _lines_named(lines: Sequence[int]) -> Sentence:
    sentence = Sentence("formats.lines", count=len(lines), lines=[*map(str, lines[:ROWS_NAMED_MAX])])
    more_count = len(lines) - ROWS_NAMED_MAX
    if more_count <= 0:
        return sentence
    return Sentence("formats.lines_and_more", lines=sentence, more_count=more_count)


def in_words(kind: str) -> Sentence | str:
    """Return a kind of line in words: translated for built-in formats, the user's own for layouts."""
    return {
        "direct debit": Sentence("formats.direct_debit"),
        "direct debit instruction": Sentence("formats.direct_debit_instruction"),
    }.get(kind, kind)
