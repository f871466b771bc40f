"""Changed copies of a file in a bank's layout: names corrected, payments taken out, totals made anew."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from pipeline.errors import InputError, OutputError
from pipeline.formats.charsets import in_bacs_characters
from pipeline.formats.edits import Edit
from pipeline.formats.layouts.cells import Span, quoted_like, spans_between, spans_by_widths
from pipeline.formats.layouts.classified import BATCH, kinds_of
from pipeline.formats.layouts.model import BankLayout, LineKind, PaymentLine
from pipeline.formats.layouts.reading import classified_lines, payments_of
from pipeline.formats.layouts.totals import rewritten, totals_of, with_batch
from pipeline.formats.line_message import LineMessage, refuse_differing_totals
from pipeline.formats.text_lines import removals

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def fitted(name: str, layout: BankLayout) -> str | None:
    """A name as the bank takes it: in its characters, cut to its length; None where it has none for it."""
    text = in_bacs_characters(name) if layout.name_characters == "bacs" else _on_one_line(name)
    return None if text is None else text[: layout.name_length_max].rstrip()


def _on_one_line(name: str) -> str | None:
    """A name of any characters but those that would end its line, or that nobody sees."""
    text = name.strip()
    return text if text and not _CONTROL.search(text) else None


def renamed(
    data: bytes, layout: BankLayout, message: LineMessage, names: Mapping[int, str], *, where: str
) -> list[Edit]:
    """The edits that write names into payments.

    Args:
        data: The bytes of the file.
        layout: That it has.
        message: What was read from them.
        names: Row -> name. A name that stands there already, as far as it goes, is no edit.
        where: The file, for messages.

    Raises:
        InputError: the file is not what its totals say, or has a total that nobody can make anew.
        OutputError: a name has characters that the bank or the encoding does not have.
    """
    _refuse_what_cannot_be_written(layout, message, where)
    lines = classified_lines(data, layout, encoding=message.facts["encoding"], where=where)
    kinds = {word: kind for word, kind in kinds_of(layout) if isinstance(kind, PaymentLine)}
    edits: list[Edit] = []
    for row, name in names.items():
        line = lines.row(message.places["line"][row - 1] - 1, named=True)
        kind = kinds.get(line["kind"])
        text = fitted(name, layout)
        if text is None or kind is None:
            raise OutputError(
                f"{where} row {row}: the name cannot be written in the characters of the bank; correct it "
                "where the file is made"
            )
        pen = _Pen(layout, kind, message.facts["encoding"], where)
        edits += pen.written(line, kind.columns["name"], text)
    return edits


def kept(data: bytes, layout: BankLayout, message: LineMessage, keep: pl.Series, *, where: str) -> list[Edit]:
    """The edits that leave some of the payments, with counts and sums for just these.

    Args:
        data: The bytes of the file.
        layout: That it has.
        message: What was read from them.
        keep: Of each payment, whether it stays; at least one does.
        where: The file, for messages.

    Raises:
        InputError: the file is not what it says, has a total that nobody can make anew, or has more than
            payments.
    """
    assert keep.len() == message.payments.height
    assert keep.any()
    _refuse_what_cannot_be_written(layout, message, where)
    for line, _, what in message.set_aside.head(1).iter_rows():
        raise InputError(
            f"{where} line {line} is a {what}; a file that mixes them with payments is not split: "
            "split it where it is made"
        )
    encoding = message.facts["encoding"]
    lines = with_batch(classified_lines(data, layout, encoding=encoding, where=where))
    payments = payments_of(lines, layout)
    staying = payments.filter(keep)
    leaving = _leaving(lines, payments.filter(~keep), staying)
    edits = removals(leaving)
    before = {(total.line, total.position): total.found for total in totals_of(lines, payments, layout)}
    for total in totals_of(lines, staying, layout):
        assert total.found is not None
        if total.line not in leaving["line"] and total.found != before[total.line, total.position]:
            line = lines.row(total.line - 1, named=True)
            pen = _Pen(layout, total.kind, encoding, where)
            edits += pen.written(line, total.position, rewritten(total, total.found, layout))
    return edits


def _leaving(lines: pl.DataFrame, gone: pl.DataFrame, staying: pl.DataFrame) -> pl.DataFrame:
    """The lines of payments that go, and of batches that are left without any that had some."""
    left = staying["batch_line"].unique().implode()
    empty = pl.col("line").is_in(gone["batch_line"].unique().implode()) & ~pl.col("line").is_in(left)
    batches = lines.lazy().filter(kind=BATCH).filter(empty).select("line", "start", "end").collect()
    return pl.concat([gone.select("line", "start", "end"), batches]).sort("line")


def _refuse_what_cannot_be_written(layout: BankLayout, message: LineMessage, where: str) -> None:
    if layout.unknown_total is not None:
        raise InputError(
            f"{where}: {layout.title}: {layout.unknown_total}, so no changed copy can be written; correct or "
            "split the payments where they are made"
        )
    refuse_differing_totals(message, where=where)


class _Pen:
    """Writes cells of one kind of line, in the encoding of the file."""

    def __init__(self, layout: BankLayout, kind: LineKind, encoding: str, where: str) -> None:
        self._separator = layout.separator
        self._widths = layout.widths_of(kind)
        self._encoding = encoding
        self._where = where

    def written(self, line: Mapping[str, Any], position: int, text: str) -> Iterator[Edit]:
        """The edit that writes a text into a cell of a line; none where it stands there."""
        old = line["text"]
        start, end = self._span(old, position)
        new = self._in_place(old[start:end], text, line["line"])
        if new != old[start:end]:
            at = line["start"] + len(self._bytes(old[:start]))
            yield Edit(at, at + len(self._bytes(old[start:end])), self._bytes(new))

    def _span(self, text: str, position: int) -> Span:
        if self._separator is None:
            assert self._widths is not None
            return spans_by_widths(self._widths)[position - 1]
        spans = spans_between(text, self._separator)
        assert spans is not None
        return spans[position - 1]

    def _in_place(self, old: str, text: str, line: int) -> str:
        if self._separator is not None:
            return quoted_like(old, text, self._separator)
        if len(text) > len(old):
            raise OutputError(
                f"{self._where} line {line}: a cell of {len(old)} characters has no room for {len(text)}; "
                "correct the file where it is made"
            )
        return text.rjust(len(old)) if old.startswith(" ") else text.ljust(len(old))

    def _bytes(self, text: str) -> bytes:
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError:
            raise OutputError(
                f"{self._where}: a name has a character that {self._encoding} does not have; export the "
                "payment file as UTF-8 and check it again"
            ) from None
