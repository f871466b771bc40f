"""Read a file in a bank's layout: decode its text, then turn lines into payments, and compare totals."""

import codecs
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError, UsageError
from pipeline.formats import encodings, message
from pipeline.formats.layouts.classified import (
    BATCH,
    HEADER,
    TRAILER,
    UNKNOWN,
    cell,
    classified,
    defect,
    kinds_of,
)
from pipeline.formats.layouts.model import UK_ACCOUNT, BankLayout, OtherLine, PaymentLine, SummaryLine
from pipeline.formats.message import THE_FILE, StatedTotal
from pipeline.formats.text_lines import text_lines
from pipeline.frames import WARNINGS
from pipeline.rules.unasked import AMOUNT_MALFORMED, CODE_UNKNOWN
from pipeline.wording import Sentence
from schemas.payments import FIELDS

_UTF_8 = "utf-8"
_UK_ACCOUNT = r"^([0-9]{6})[- ]?([0-9]{8})$"
_AMOUNT = r"^[0-9]{1,15}(\.[0-9]{1,2})?$"
_MINOR = r"^[0-9]{1,15}$"
_CENTS = 2


class TotalField(NamedTuple):
    """One count or sum in a line."""

    line: int
    position: int
    kind: SummaryLine
    is_sum: bool
    text: str  # the text in the line, without surrounding blanks
    found: int | None  # the count of payments, or their sum in hundredths; None if an amount is malformed


def classified_lines(data: bytes, layout: BankLayout, *, encoding: str | None, where: str) -> pl.DataFrame:
    """Return the lines of a file, decoded without loss, with position and kind.

    Raises UsageError: the encoding is not supported; InputError: it is not in this encoding or layout.
    """
    used = encoding_of(encoding)
    if encodings.marked_encoding(data) is not None:
        raise InputError(Sentence("layouts.utf_16_not_accepted", where=where))
    encodings.refuse_false_encoding(data, used, where=where)
    start = len(codecs.BOM_UTF8) if used == _UTF_8 and data.startswith(codecs.BOM_UTF8) else 0
    try:
        text = str(memoryview(data)[start:], used)
    except UnicodeDecodeError as error:
        raise encodings.not_in_encoding(data, start + error.start, where=where, encoding=used) from None
    lines = text_lines(text, start=start, one_byte_each=used != _UTF_8)
    for line in lines.filter(pl.col("text").str.contains("\r", literal=True))["line"].head(1):
        raise InputError(Sentence("layouts.line_ends_with_cr", where=where, line=line))
    return classified(lines, layout, where=where)


def read(data: bytes, layout: BankLayout, *, encoding: str | None, where: str) -> message.Message:
    """Read a file by its layout, as UTF-8 unless an encoding is given.

    Raises UsageError: the encoding is not supported; InputError: it is not this layout, or has no payments.
    """
    lines = with_batch(classified_lines(data, layout, encoding=encoding, where=where))
    found = payments_of(lines, layout)
    if found.is_empty():
        raise InputError(Sentence("layouts.no_payments", where=where))
    fields = message.with_absent_fields(found.select(name for name in FIELDS if name in found.columns))
    totals = totals_of(lines, found, layout)
    names, room = fields["name"], layout.name_room
    return message.Message(
        payments=fields,
        defects=found["defect"],
        locations=_locations(found, lines, layout),
        controls=message.controls_frame(controls(totals, layout)),
        facts={"layout": layout.title, "encoding": encoding_of(encoding)},
        set_aside=_set_aside(lines, layout),
        warnings=message.truncated_names(names, length_max=room) if room else pl.DataFrame(schema=WARNINGS),
    )


def payments_of(lines: pl.DataFrame, layout: BankLayout) -> pl.DataFrame:
    """Return the payments among classified lines, in file order.

    The columns are `line`, `start`, `end` and `batch_line` of the lines, `defect`, `code`, `booked` (text),
    `hundredths` (null if malformed), and the layout's canonical fields.
    """
    own = ("line", "start", "end", "batch_line")
    unknown = lines.filter(kind=UNKNOWN).select(*own, defect=pl.lit(CODE_UNKNOWN))
    found = [
        lines.filter(kind=word).select(*own, *_columns(layout, kind))
        for word, kind in kinds_of(layout)
        if isinstance(kind, PaymentLine)
    ]
    return pl.concat([*found, unknown], how="diagonal").sort("line")


def _columns(layout: BankLayout, kind: PaymentLine) -> Iterator[pl.Expr]:
    cells = {field: _filled(cell(layout, kind, place)) for field, place in kind.columns.items()}
    account = cells.pop(UK_ACCOUNT, None)
    if account is not None:
        # The rules for account numbers judge other texts.
        cells["sort_code"] = account.str.extract(_UK_ACCOUNT, 1)
        cells["account_number"] = pl.coalesce(account.str.extract(_UK_ACCOUNT, 2), account)
    amount = cells.get("amount", pl.lit(None, dtype=pl.String))
    cents = hundredths(amount, layout)
    is_malformed = pl.lit(value=False)
    if layout.amount_in == "minor":
        is_malformed = amount.is_not_null() & cents.is_null()
        if "amount" in cells:
            digits = cents.cast(pl.String).str.zfill(3)
            cells["amount"] = digits.str.head(-2) + "." + digits.str.tail(2)
    if kind.currency is not None and "currency" not in cells:
        cells["currency"] = pl.lit(kind.currency)
    yield from (expression.alias(field) for field, expression in cells.items())
    yield cents.alias("hundredths")
    malformed = pl.when(is_malformed).then(pl.lit(AMOUNT_MALFORMED))
    yield pl.coalesce(defect(layout, kind), malformed).alias("defect")
    code = pl.lit(None, dtype=pl.String) if kind.code is None else cell(layout, kind, kind.code)
    yield code.alias("code")
    booked = [_filled(cell(layout, kind, place)) for place in kind.booked_by]
    yield (pl.concat_str(booked, separator=" ", ignore_nulls=True) if booked else pl.lit("")).alias("booked")


def _filled(text: pl.Expr) -> pl.Expr:
    return pl.when(text != "").then(text)


def _locations(found: pl.DataFrame, lines: pl.DataFrame, layout: BankLayout) -> pl.DataFrame:
    # The name of a batch is its label, or else its line.
    label: pl.Expr = pl.format("line {}", "line")
    if layout.batch is not None and layout.batch.label is not None:
        label = pl.coalesce(_filled(cell(layout, layout.batch, layout.batch.label)), label)
    labels = lines.filter(kind=BATCH).select(batch_line="line", label=label)
    labelled = found.join(labels, on="batch_line", how="left", maintain_order="left")
    booked = [_filled(pl.col("label")), _filled(pl.col("booked"))]
    return message.line_locations(labelled, _filled(pl.concat_str(booked, separator=" ", ignore_nulls=True)))


def _set_aside(lines: pl.DataFrame, layout: BankLayout) -> pl.DataFrame:
    found = []
    for word, kind in kinds_of(layout):
        if isinstance(kind, OtherLine):
            code = cell(layout, kind, next(iter(kind.tags)))
            found.append(lines.filter(kind=word).select("line", code=code, kind=pl.lit(kind.what)))
    empty = pl.DataFrame(schema=message.SET_ASIDE)
    return pl.concat([empty, *found]).sort("line")


def encoding_of(name: str | None) -> str:
    """Return a single-byte encoding by one of its names, or UTF-8; UTF-8 for None.

    Raises UsageError: it is another multi-byte encoding, where edits cannot be positioned.
    """
    codec = encodings.codec_of(name or _UTF_8)
    if encodings.is_utf_8(codec):
        return _UTF_8
    if not encodings.has_one_byte_each(codec):
        advice = Sentence("csv.choose_encoding", encodings=["utf-8", "cp1252", "cp1250"])
        raise UsageError(Sentence("layouts.encoding_not_supported", name=name), advice=advice)
    return str(name)


def hundredths(amount: pl.Expr, layout: BankLayout) -> pl.Expr:
    """Return amounts in hundredths; null if malformed."""
    if layout.amount_in == "minor":
        return pl.when(amount.str.contains(_MINOR)).then(amount).cast(pl.Int64)
    cents = amount.str.extract(r"\.([0-9]+)$").fill_null("").str.pad_end(_CENTS, "0")
    digits = amount.str.extract("^([0-9]+)") + cents
    return pl.when(amount.str.contains(_AMOUNT)).then(digits).cast(pl.Int64, strict=False)


def totals_of(lines: pl.DataFrame, amounts: pl.DataFrame, layout: BankLayout) -> list[TotalField]:
    """Return every stated count and sum with the actual one of its payments; a blank cell states none."""
    totals = []
    for word, kind in ((HEADER, layout.header), (BATCH, layout.batch), (TRAILER, layout.trailer)):
        fields = () if kind is None else ((kind, kind.count, False), (kind, kind.sum, True))
        for of_kind, position, is_sum in fields:
            if position is None:
                continue
            stated = lines.filter(kind=word).select("line", cell(layout, of_kind, position).fill_null(""))
            for line, text in stated.filter(pl.nth(1) != "").iter_rows():
                mine = amounts.filter(batch_line=line) if word == BATCH else amounts
                money = mine["hundredths"]
                found = (None if money.null_count() else int(money.sum())) if is_sum else mine.height
                totals.append(TotalField(line, position, of_kind, is_sum, text, found))
    return totals


def with_batch(lines: pl.DataFrame) -> pl.DataFrame:
    """Add `batch_line`, null before the first batch or if the layout has no batches."""
    return lines.with_columns(batch_line=pl.when(pl.col("kind") == BATCH).then("line").forward_fill())


def controls(totals: list[TotalField], layout: BankLayout) -> Iterator[StatedTotal]:
    """Yield the totals as control totals."""
    for total in totals:
        where = Sentence("formats.sum_in_line" if total.is_sum else "formats.count_in_line", line=total.line)
        found = None if total.found is None else _shown(total.found, is_sum=total.is_sum)
        stated = _stated(total, layout)
        wrong = Sentence("formats.stated_unreadable", file=THE_FILE, where=where) if stated is None else None
        yield StatedTotal(where, stated, found, wrong)


def _stated(total: TotalField, layout: BankLayout) -> str | None:
    """Return a count or sum in normal form; None for other text, which could be anything."""
    text = pl.lit(total.text)
    count = text.str.extract("^[0-9]{1,15}$", 0).cast(pl.Int64)
    value = pl.select(hundredths(text, layout) if total.is_sum else count).item()
    return None if value is None else _shown(value, is_sum=total.is_sum)


def _shown(value: int, *, is_sum: bool) -> str:
    return f"{Decimal(value).scaleb(-_CENTS):f}" if is_sum else str(value)


def rewritten(total: TotalField, value: int, layout: BankLayout) -> str:
    """Write a count or sum in its old format: as many decimals, and leading zeros to the same length."""
    text = str(value)
    if total.is_sum and layout.amount_in == "main":
        needed = _CENTS if value % 10 else 1 if value % 100 else 0
        decimals = max(needed, len(total.text.partition(".")[2]))
        text = f"{Decimal(value).scaleb(-_CENTS):.{decimals}f}"
    is_filled = len(total.text) > 1 and total.text.startswith("0") and not total.text.startswith("0.")
    return text.zfill(len(total.text)) if is_filled else text
