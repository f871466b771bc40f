"""The records of a Standard 18 file: labels of 80 characters, payments and contras of 100 or 106.

Positions count from 1, as in the standard. A file becomes one frame with a row per line; each field is cut
from all lines at once.
"""

import codecs
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.encodings import marked_encoding
from pipeline.formats.text_lines import IS_BLANK, text_lines
from pipeline.wording import Sentence

LABELS = ("VOL1", "HDR1", "HDR2", "UHL1", "EOF1", "EOF2", "UTL1")
"""In file order; the payments are between the fourth and fifth."""
LABEL_LENGTH = 80
RECORD_LENGTHS = (100, 106)  # lengths of a payment without and with a day of its own
_PADDED_LENGTH_MAX = 111  # some programs pad their lines with blanks

CREDIT = "99"
DEBITS = ("01", "17", "18", "19")
INSTRUCTIONS = ("0N", "0C", "0S")
_CONTRA = "CONTRA"

PAYMENT = "payment"
CONTRA = "contra"
DIRECT_DEBIT = "direct debit"
INSTRUCTION = "direct debit instruction"
NOTHING = "nothing"  # a blank line at the end of the file


class Field(NamedTuple):
    """The position of a field in its record."""

    first: int
    last: int

    @property
    def of_line(self) -> pl.Expr:
        """Return the field of every line, blanks included."""
        return pl.col("text").str.slice(self.first - 1, self.last - self.first + 1)

    def within(self, start: int) -> tuple[int, int]:
        """Return its byte range in a file, given the offset of its record."""
        return start + self.first - 1, start + self.last

    def digits(self, number: int) -> bytes:
        """Return a number as the field holds it."""
        return str(number).zfill(self.last - self.first + 1).encode("ascii")


SORT_CODE = Field(1, 6)
ACCOUNT_NUMBER = Field(7, 14)
DESTINATION = Field(1, 14)
CODE = Field(16, 17)
ORIGINATOR = Field(18, 31)
PENCE = Field(36, 46)
REFERENCE = Field(65, 82)
CONTRA_MARK = Field(65, 70)
NAME = Field(83, 100)
DAY = Field(101, 106)

NAME_LENGTH_MAX = 18
PENCE_MAX = 99_999_999_999  # the largest amount that fits in a record


def records_of(data: bytes, *, where: str) -> pl.DataFrame:
    """Split a file into its lines (InputError: a line is not Standard 18).

    Returns `line`, `start` and `end` (bytes, the line end included), `text` (without it), `kind` (a label, or
    one of the words above), `code`, `originator`, `day` (empty if the record has none) and `pence` (null for
    labels, and if it is not 11 digits).
    """
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    records = text_lines(_text(data, start, where), start=start, one_byte_each=True)
    records = records.with_columns(_kind())
    _refuse_odd_labels(records, where)
    _refuse_odd_lengths(records, where)
    _refuse_disorder(records, where)
    is_record = ~pl.col("kind").is_in([*LABELS, NOTHING])
    # A blank day means no day, whether or not the line is padded.
    fields = {"code": CODE, "originator": ORIGINATOR, "day": DAY, "pence": PENCE}
    records = records.with_columns(
        pl.when(is_record).then(field.of_line).alias(name) for name, field in fields.items()
    )
    return records.with_columns(
        pl.col("day").str.strip_chars_end(" "),
        pl.when(pl.col("pence").str.contains(r"^[0-9]{11}$")).then("pence").cast(pl.Int64),
    )


def _text(data: bytes, start: int, where: str) -> str:
    if marked_encoding(data) is not None:
        raise InputError(Sentence("bacs18.utf_16_text", where=where))
    try:
        return str(memoryview(data)[start:], "ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, start + error.start) + 1
        raise InputError(Sentence("bacs18.character_not_allowed", where=where, line=line)) from None


def _kind() -> pl.Expr:
    label = pl.col("text").str.slice(0, 4)
    code = CODE.of_line
    # A reference may begin with the word CONTRA. A real contra pays from an account to itself, or has no
    # other text.
    is_own = DESTINATION.of_line == ORIGINATOR.of_line
    says_nothing_else = REFERENCE.of_line.str.strip_chars_end(" ") == _CONTRA
    is_contra = (CONTRA_MARK.of_line == _CONTRA) & (
        (is_own & code.is_in([*DEBITS, CREDIT])) | (says_nothing_else & code.is_in(DEBITS))
    )
    return (
        pl.when(label.is_in(LABELS))
        .then(label)
        .when(IS_BLANK)
        .then(pl.lit(NOTHING))
        .when(is_contra)
        .then(pl.lit(CONTRA))
        .when(code.is_in(DEBITS))
        .then(pl.lit(DIRECT_DEBIT))
        .when(code.is_in(INSTRUCTIONS))
        .then(pl.lit(INSTRUCTION))
        .otherwise(pl.lit(PAYMENT))  # unknown codes too, so that they are not skipped
        .alias("kind")
    )


def _refuse_odd_labels(records: pl.DataFrame, where: str) -> None:
    """Refuse labels in lower case or after blanks, which no bank accepts."""
    meant = pl.col("text").str.strip_chars_start(" \t").str.slice(0, 4).str.to_uppercase()
    odd = records.filter(meant.is_in(LABELS), pl.col("kind") != meant).select("line", meant)
    for line, kind in odd.head(1).iter_rows():
        raise InputError(Sentence("bacs18.label_indented_or_lower_case", where=where, line=line, kind=kind))


def _refuse_odd_lengths(records: pl.DataFrame, where: str) -> None:
    length = pl.col("text").str.len_bytes()
    filled = pl.col("text").str.strip_chars_end(" ").str.len_bytes()
    single, multi = RECORD_LENGTHS
    fits = length.is_between(single, _PADDED_LENGTH_MAX) & ((filled <= single) | (filled == multi))
    fits = pl.when(pl.col("kind").is_in(LABELS)).then(filled <= LABEL_LENGTH).otherwise(fits)
    records = records.filter(pl.col("kind") != NOTHING)
    for line, kind, count in records.filter(~fits).head(1).select("line", "kind", length).iter_rows():
        key, lengths = "bacs18.payment_length_wrong", {"single": single, "multi": multi}
        if kind in LABELS:
            key, lengths = "bacs18.label_length_wrong", {"kind": kind, "label_length": LABEL_LENGTH}
        has = Sentence("bacs18.has_characters", count=count)
        raise InputError(Sentence(key, where=where, line=line, has=has, **lengths))
    control = records.filter(pl.col("text").str.contains(r"[\x00-\x1f\x7f]"))
    for line in control["line"].head(1):
        raise InputError(Sentence("bacs18.control_character_in_line", where=where, line=line))


def _refuse_disorder(records: pl.DataFrame, where: str) -> None:
    """Refuse labels in the wrong order, and blank lines before the end."""
    places = (*LABELS[:4], "", *LABELS[4:], NOTHING)
    order = {label: position for position, label in enumerate(places)}
    position = records["kind"].replace_strict(order, default=order[""], return_dtype=pl.Int8)
    repeats = (position == position.shift(1)) & records["kind"].is_in(LABELS)
    wrong = ((position < position.shift(1)) | repeats).fill_null(value=False)
    if not wrong.any():
        return
    index = int(wrong.arg_max() or 0)
    line, kind, before = records["line"][index], records["kind"][index], records["kind"][index - 1]
    if before == NOTHING:
        raise InputError(Sentence("bacs18.blank_line", where=where, line=line - 1))
    what = Sentence("bacs18.the_label", kind=kind) if kind in LABELS else Sentence("bacs18.a_payment")
    raise InputError(Sentence("bacs18.line_out_of_order", where=where, line=line, what=what, records=before))
