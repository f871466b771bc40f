"""The labels of a Standard 18 file: its owner, its day and its totals."""

import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.bacs18.records import LABELS, Field
from pipeline.wording import Sentence

_SERIAL = Field(5, 10)  # VOL1
_SUN = Field(42, 47)
_BLOCK_LENGTH = Field(6, 10)  # HDR2
_RECORD_LENGTH = Field(11, 15)
_DAY = Field(5, 10)  # UHL1
_CURRENCY = Field(21, 22)
_WORK = Field(29, 37)
BLOCK_COUNT = Field(55, 60)  # EOF1

_STERLING = "00"


class Totals(NamedTuple):
    """The totals in UTL1, in its order. A contra counts as a debit or a credit."""

    debit_pence: int
    credit_pence: int
    debit_count: int
    credit_count: int


TOTALS: Mapping[str, Field] = {
    "bacs18.debit_total": Field(5, 17),
    "bacs18.credit_total": Field(18, 30),
    "bacs18.number_of_debits": Field(31, 37),
    "bacs18.number_of_credits": Field(38, 44),
}
"""The fields of UTL1, one per field of `Totals`: key of its name -> position."""
TOTALS_FIELD = Field(5, 44)
"""The position of all these fields together."""


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

    Raises:
        InputError: the file has its first labels but not the last, or is not in sterling.
    """
    found = records.filter(pl.col("kind").is_in(LABELS)).select("kind", "line", "start", "text")
    labels = {kind: FileLabel(*rest) for kind, *rest in found.iter_rows()}
    first = next(iter(labels), None)
    if first is not None and "UTL1" not in labels:
        raise InputError(Sentence("bacs18.starts_label_no", where=where, first=first))
    header = labels.get("UHL1")
    if header is not None and header.field(_CURRENCY) not in {_STERLING, ""}:
        raise InputError(
            Sentence("bacs18.line_uhl1_another", where=where, line=header.line, sterling=_STERLING)
        )
    return labels


def stated_totals(label: FileLabel, *, where: str) -> Totals:
    """Return the totals in UTL1 (InputError: not digits)."""
    stated = [label.field(field) for field in TOTALS.values()]
    for name, value in zip(TOTALS, stated, strict=True):
        if not (value.isascii() and value.isdecimal()):
            raise InputError(
                Sentence("bacs18.line_utl1_not", where=where, line=label.line, name=Sentence(name))
            )
    return Totals(*map(int, stated))


def totals_text(totals: Totals) -> bytes:
    """Write the totals in the form of UTL1."""
    digits = (
        str(total).zfill(field.last - field.first + 1)
        for total, field in zip(totals, TOTALS.values(), strict=True)
    )
    return "".join(digits).encode("ascii")


def block_count(labels: Mapping[str, FileLabel], record_count: int) -> int | None:
    """Return the number of blocks for these records; None if HDR2 has no block length."""
    header = labels.get("HDR2")
    if header is None:
        return None
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
