"""Header data of a message and its batches, with byte offsets; their control totals against the payments."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.edits import Bytes
from pipeline.formats.message import THE_FILE, StatedTotal
from pipeline.formats.pain001.elements import OF_PAYER, Kind
from pipeline.formats.pain001.versions import OTHER_MESSAGES, dialect_of, name_chars_max, version_of
from pipeline.wording import Sentence

STATED = ("id", "created", "method", "count", "sum", "executed", *OF_PAYER.values())
"""The texts that a level may state; each lies between `..._start` and `..._end`."""
_SPANS = {f"{what}_{end}": pl.Int64() for what in ("id", "count", "sum") for end in ("start", "end")}
LEVELS = {"start": pl.Int64(), "end": pl.Int64(), **dict.fromkeys(STATED, pl.String()), **_SPANS}
"""`start` is the end of the preceding element, so that comments belong to the element after them."""
FACTS = {"name": pl.String(), "fact": pl.String()}

_LENIENT = frozenset(("executed", *OF_PAYER.values()))
"""Texts that only banks check; a repeated one adds a line."""
_METHODS = ("TRF", "TRA", "CHK")
CHEQUES = "CHK"
_FRAME_HEIGHT = 65_536
_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_SIGNATURE = "Signature"
_OF_SIGNATURES = frozenset({"SignedInfo", "SignatureValue", "DigestValue"})
"""Elements within a W3C signature, in any surrounding element."""
_SEALS = ("signature", "sgntr", "digest", "hash")


class StatedText(NamedTuple):
    """A text that a level states, and its position in the file."""

    text: str
    start: int
    end: int


class Levels:
    """The message and its batches, in file order."""

    def __init__(self) -> None:
        self.batch_count = 0
        self.facts: dict[str, str] = {}
        self._declared: dict[str, str] = {}
        self._header: dict[str, StatedText] = {}
        self._stated = self._header
        self._batches: list[tuple[object, ...]] = []
        self._frames: list[pl.DataFrame] = []

    def enveloped(self, tag: str, attributes: Sequence[str]) -> None:
        """Check an element around the message (InputError: it is another message)."""
        self._declared |= _namespaces(attributes)
        if (other := OTHER_MESSAGES.get(tag.rpartition(":")[2])) is not None:
            raise InputError(other)

    def found(self, tag: str, attributes: Sequence[str]) -> None:
        """Record the message (InputError: it is not the first)."""
        if self.facts:
            raise InputError(Sentence("pain001.several_messages"))
        self._declared |= _namespaces(attributes)
        namespace = _namespace_of(tag, self._declared)
        version = version_of(namespace, tag)
        self.facts |= {
            "version": version,
            "namespace": namespace or "",
            "dialect": dialect_of(namespace),
            "name_chars_max": str(name_chars_max(version)),
        }

    def is_seal(self, tag: str, attributes: Sequence[str], *, in_header: bool) -> bool:
        """True if an element is a hash or signature of the file, so that a changed copy would be refused.

        That is any W3C signature, and above the batches any element named as a signature or hash. A date of
        signature or the signatory of a cheque is payment data.
        """
        name = tag.rpartition(":")[2]
        if in_header and any(seal in name.lower() for seal in _SEALS):
            return True
        if name != _SIGNATURE:
            return name in _OF_SIGNATURES
        return (_namespace_of(tag, self._declared | _namespaces(attributes)) or "") != self.facts["namespace"]

    def opened(self, kind: int) -> None:
        """Begin a header or a batch; the texts that follow belong to it."""
        if kind is Kind.BATCH:
            self.batch_count += 1
            self._stated = {}
        elif self._header:
            raise InputError(Sentence("pain001.two_group_headers"))
        else:
            self._stated = self._header

    def states(self, what: str, control: StatedText, *, line: int) -> None:
        """Record a text of a level."""
        if what in _LENIENT and (before := self._stated.get(what)) is not None:
            control = before._replace(text=f"{before.text}\n{control.text}")
        elif what in self._stated:
            raise InputError(Sentence("pain001.element_twice_in_level", line=line))
        if what == "method" and control.text not in _METHODS:
            raise InputError(Sentence("pain001.payment_method_unknown", line=line, methods=list(_METHODS)))
        self._stated[what] = control

    def closed(self, start: int, end: int) -> None:
        """End a batch."""
        self._batches.append(_row(start, end, self._stated))
        if len(self._batches) == _FRAME_HEIGHT:
            self._frames.append(_frame(self._batches))
            self._batches = []

    def whole(self, start: int, end: int) -> pl.DataFrame:
        """Return all levels, the message first."""
        return pl.concat([_frame([_row(start, end, self._header)]), *self._frames, _frame(self._batches)])


def _namespace_of(tag: str, declared: Mapping[str, str]) -> str | None:
    prefix, _, name = tag.rpartition(":")
    return declared.get(prefix) if name else None


def _namespaces(attributes: Sequence[str]) -> dict[str, str]:
    """Return prefix -> namespace; the empty prefix has the default namespace."""
    pairs = zip(attributes[::2], attributes[1::2], strict=True)
    return {name.partition(":")[2]: value for name, value in pairs if name.partition(":")[0] == "xmlns"}


def _row(start: int, end: int, stated: dict[str, StatedText]) -> tuple[object, ...]:
    texts = (stated[what].text or None if what in stated else None for what in STATED)
    parts = (column.rpartition("_") for column in _SPANS)
    return (start, end, *texts, *(getattr(stated.get(what), side, None) for what, _, side in parts))


def _frame(rows: Sequence[tuple[object, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=LEVELS, orient="row")


def tag_end(data: Bytes, start: int) -> int:
    """Return the end of the tag that starts here; quoted attribute values may contain `>`.

    >>> tag_end(b'<Nm note=">">', 0)
    13
    """
    tag = _TAG.match(data, start)
    assert tag is not None, "the parser has found a tag here"
    return tag.end()


MONEY = pl.Decimal(precision=38, scale=5)
"""Exact amounts within the schemas' limits. Sums mix currencies, like banks' sums."""
_AMOUNT = r"^[0-9]{1,18}(\.[0-9]{1,5})?$"


def totals(amounts: pl.DataFrame, level_count: int) -> pl.DataFrame:
    """Count and add up the payments of the message and each batch: `level_count` rows.

    `amounts` has `batch` and `amount` (text) of each payment. The columns are `count` and `sum`: null if an
    amount is not a number.
    """
    money = pl.when(pl.col("amount").str.contains(_AMOUNT)).then(pl.col("amount")).cast(MONEY)
    summed = (
        amounts.select("batch", money=money)
        .group_by("batch")
        .agg(count=pl.len(), sum=pl.col("money").sum(), known=pl.col("money").is_not_null().all())
    )
    zero = pl.lit(0, pl.Int64).alias("batch")
    whole = summed.select(zero, pl.col("count", "sum").sum(), pl.col("known").all())
    levels = pl.DataFrame({"batch": range(level_count)}, schema={"batch": pl.Int64})
    known = pl.col("known").fill_null(value=True)
    return levels.join(pl.concat([whole, summed]), on="batch", how="left", maintain_order="left").select(
        pl.col("count").fill_null(0), pl.when(known).then(pl.col("sum").fill_null(0)).alias("sum")
    )


def amount_like(total: Decimal, stated: str) -> str:
    """Write a sum with as many decimals as the stated one, or more if needed.

    >>> amount_like(Decimal("3.50000"), "6.00"), amount_like(Decimal("3.50000"), "6")
    ('3.50', '3.5')
    """
    whole, _, decimals = f"{total:f}".partition(".")
    decimals = decimals.rstrip("0").ljust(len(stated.partition(".")[2]), "0")
    return f"{whole}.{decimals}" if decimals else whole


def controls(levels: pl.DataFrame, found: pl.DataFrame) -> Iterator[StatedTotal]:
    """Compare the stated totals of all levels with their actual `totals`."""
    pairs = zip(*(each.select("count", "sum").iter_rows() for each in (levels, found)), strict=True)
    for level, ((said_count, said_sum), (count, total)) in enumerate(pairs):
        place = f"PmtInf[{level}]" if level else "GrpHdr"
        if said_count is not None:
            where, is_equal = f"{place}/NbOfTxs", _number(said_count) == count
            yield StatedTotal(where, said_count, str(count), is_equal=is_equal)
        if said_sum is not None:
            where, said = f"{place}/CtrlSum", _number(said_sum)
            text = None if total is None else amount_like(total, said_sum)
            wrong = None
            if said is None:
                wrong = Sentence("formats.control_not_a_number", file=THE_FILE, stated=said_sum, where=where)
            yield StatedTotal(where, said_sum, text, wrong, is_equal=said == total)


def _number(text: str) -> Decimal | None:
    """Parse the number in a level; None if it is not a number.

    >>> _number("+12.50"), _number("1e3"), _number("12,50")
    (Decimal('12.50'), None, None)
    """
    digits = text.removeprefix("+").replace(".", "", 1)
    return Decimal(text) if digits.isascii() and digits.isdecimal() else None
