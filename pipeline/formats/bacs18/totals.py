"""The labels and contras of a Standard 18 file: its owner, its day and its totals."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.bacs18.records import CONTRA, CREDIT, DEBITS, LABELS, Field
from pipeline.formats.message import THE_FILE, StatedTotal, controls_frame
from pipeline.wording import Sentence

BOOKING = ("originator", "day")
"""How payments are booked: one contra for all payments of one account on one day."""

_SERIAL = Field(5, 10)  # VOL1
_SUN = Field(42, 47)
_BLOCK_LENGTH = Field(6, 10)  # HDR2
_RECORD_LENGTH = Field(11, 15)
_DAY = Field(5, 10)  # UHL1
_CURRENCY = Field(21, 22)
_WORK = Field(29, 37)
BLOCK_COUNT = Field(55, 60)  # EOF1

_STERLING = "00"


TOTALS: Mapping[str, Field] = {
    "bacs18.debit_total": Field(5, 17),
    "bacs18.credit_total": Field(18, 30),
    "bacs18.number_of_debits": Field(31, 37),
    "bacs18.number_of_credits": Field(38, 44),
}
"""The totals in UTL1, in its order: key of the name -> position. A contra counts as a debit or a credit."""
TOTALS_FIELD = Field(5, 44)  # the position of all these fields together


class FileLabel(NamedTuple):
    """One label of a file."""

    line: int
    start: int
    text: str

    def field(self, field: Field) -> str:
        """Return a field without surrounding blanks."""
        return self.text[field.first - 1 : field.last].strip()


def labels_of(records: pl.DataFrame, *, where: str) -> dict[str, FileLabel]:
    """Return the labels of a file by name.

    Raises InputError: the file has its first labels but not the last, or is not in sterling.
    """
    found = records.filter(pl.col("kind").is_in(LABELS)).select("kind", "line", "start", "text")
    labels = {kind: FileLabel(*rest) for kind, *rest in found.iter_rows()}
    first = next(iter(labels), None)
    if first is not None and "UTL1" not in labels:
        raise InputError(Sentence("bacs18.no_utl1_at_end", where=where, first=first))
    header = labels.get("UHL1")
    if header is not None and header.field(_CURRENCY) not in {_STERLING, ""}:
        raise InputError(
            Sentence("bacs18.currency_not_sterling", where=where, line=header.line, sterling=_STERLING)
        )
    return labels


def stated_totals(label: FileLabel, *, where: str) -> list[int]:
    """Return the totals in UTL1 (InputError: not digits)."""
    stated = {name: label.field(field) for name, field in TOTALS.items()}
    for name, value in stated.items():
        if not (value.isascii() and value.isdecimal()):
            key = "bacs18.utl1_not_a_number"
            raise InputError(Sentence(key, where=where, line=label.line, name=Sentence(name)))
    return list(map(int, stated.values()))


def totals_text(totals: Sequence[int]) -> bytes:
    """Write the totals in the form of UTL1."""
    return b"".join(field.digits(total) for total, field in zip(totals, TOTALS.values(), strict=True))


def block_count(labels: Mapping[str, FileLabel], record_count: int) -> int | None:
    """Return the number of blocks for these records; None if HDR2 has no block length."""
    header = labels.get("HDR2", FileLabel(0, 0, ""))
    block, record = header.field(_BLOCK_LENGTH), header.field(_RECORD_LENGTH)
    if not (block.isdecimal() and record.isdecimal() and int(record) and int(block) >= int(record)):
        return None
    return -(-record_count // (int(block) // int(record)))


def processing_day(labels: Mapping[str, FileLabel]) -> str | None:
    """Return the day in UHL1, blanks included; None if no label states one."""
    return None if "UHL1" not in labels else labels["UHL1"].text[_DAY.first - 1 : _DAY.last]


def facts_of(labels: Mapping[str, FileLabel]) -> dict[str, str]:
    """Return the facts in the labels about the file as a whole."""
    stated = {
        "labels": " ".join(labels) or "none",
        "serial": labels["VOL1"].field(_SERIAL) if "VOL1" in labels else "",
        "service user number": labels["VOL1"].field(_SUN) if "VOL1" in labels else "",
        "work code": labels["UHL1"].field(_WORK) if "UHL1" in labels else "",
        "processing day": in_calendar(processing_day(labels) or "") or "",
    }
    return {name: value for name, value in stated.items() if value}


def in_calendar(day: str) -> str | None:
    """Return a day of the standard, bYYDDD, as an ISO date; None if it is invalid.

    >>> in_calendar(" 26330"), in_calendar(" 26366")
    ('2026-11-26', None)
    """
    digits = day[1:]
    if len(day) != 6 or day[0] not in " 0" or not (digits.isascii() and digits.isdecimal()):
        return None
    year, of_year = 2000 + int(digits[:2]), int(digits[2:])
    date = dt.date(year, 1, 1) + dt.timedelta(days=of_year - 1)
    return date.isoformat() if of_year and date.year == year else None


def totals_of(records: pl.DataFrame) -> list[int]:
    """Return `TOTALS` of these records; malformed amounts and instructions do not count."""
    sides = [records.filter(is_mine) for is_mine in (pl.col("code").is_in(DEBITS), pl.col("code") == CREDIT)]
    counts = [side.height for side in sides]
    return [*(int(side["pence"].sum()) for side in sides), *counts]


def controls_of(records: pl.DataFrame, labels: Mapping[str, FileLabel], *, where: str) -> pl.DataFrame:
    """Return `CONTROLS`: every total in the file, and the actual total of its records."""
    return controls_frame([*_of_trailer(records, labels, where), *_of_contras(records)])


def _of_trailer(records: pl.DataFrame, labels: Mapping[str, FileLabel], where: str) -> Iterator[StatedTotal]:
    if "UTL1" not in labels:
        return
    stated, found = stated_totals(labels["UTL1"], where=where), totals_of(records)
    malformed = records.filter(pl.col("pence").is_null())["code"]
    is_unknown = {
        "bacs18.debit_total": malformed.is_in(DEBITS).any(),
        "bacs18.credit_total": (malformed == CREDIT).any(),
    }
    for name, value_stated, value_found in zip(TOTALS, stated, found, strict=True):
        shown, where_ = (
            _pounds if name in is_unknown else str,
            Sentence("bacs18.in_utl1", name=Sentence(name)),
        )
        yield StatedTotal(where_, shown(value_stated), None if is_unknown.get(name) else shown(value_found))


def _of_contras(records: pl.DataFrame) -> Iterator[StatedTotal]:
    """Yield a total for each account and day; none if the file has no contras."""
    if records.filter(kind=CONTRA).is_empty():
        return
    is_contra = pl.col("kind") == CONTRA
    # A contra is a debit for credits, and a credit for debits.
    credited = pl.when(pl.col("code") == CREDIT).then("pence").otherwise(-pl.col("pence"))
    by_booking = (
        records.filter(pl.col("code").is_in([*DEBITS, CREDIT]))
        .group_by(BOOKING, maintain_order=True)
        .agg(
            line=pl.col("line").filter(is_contra).first(),
            line_first=pl.col("line").first(),
            stated=-credited.filter(is_contra).sum(),
            found=credited.filter(~is_contra).sum(),
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


def _pounds(pence: int) -> str:
    """Return an amount in pounds, for messages.

    >>> _pounds(123456), _pounds(-5)
    ('1,234.56', '-0.05')
    """
    return f"{'-' if pence < 0 else ''}{abs(pence) // 100:,}.{abs(pence) % 100:02d}"
