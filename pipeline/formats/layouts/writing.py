"""Changed copies of a file in a bank's layout: names corrected, payments removed, totals recalculated."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from pipeline.errors import OutputError
from pipeline.formats.edits import Edit
from pipeline.formats.layouts.cells import Span, quoted_like, spans_between, spans_by_widths
from pipeline.formats.layouts.classified import BATCH, kinds_of
from pipeline.formats.layouts.model import BankLayout, LineKind, PaymentLine
from pipeline.formats.layouts.reading import classified_lines, payments_of
from pipeline.formats.layouts.table import why_never_changed
from pipeline.formats.layouts.totals import rewritten, totals_of, with_batch
from pipeline.formats.message import THE_FILE, Message, split_obstacle
from pipeline.formats.text_lines import in_bacs_characters, removals
from pipeline.wording import Sentence

_READ_BEFORE = "a file that was read before"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def fitted(name: str, layout: BankLayout) -> str | None:
    """Return a name in the bank's characters, cut to its limit; None if nothing remains."""
    text = in_bacs_characters(name) if layout.name_characters == "bacs" else _on_one_line(name)
    return None if text is None else text[: layout.name_room].rstrip()


def _on_one_line(name: str) -> str | None:
    """Remove line ends and invisible characters from a name."""
    text = name.strip()
    return text if text and not _CONTROL.search(text) else None


def obstacle(layout: BankLayout, message: Message) -> Sentence | None:
    """Return why a file must not be changed; None if it may."""
    if (why := why_never_changed(layout)) is not None:
        return Sentence("layouts.cannot_be_changed", file=THE_FILE, why=why)
    return message.difference


def name_obstacle(layout: BankLayout, message: Message, row: int, name: str) -> Sentence | None:
    """Return why a payee cannot get a name; None if it can."""
    if message.defects[row - 1] is not None:
        return Sentence("layouts.line_not_as_others")
    text, encoding = fitted(name, layout), message.facts["encoding"]
    if text is None:
        return Sentence("layouts.letters_not_of_bank")
    if not _is_written_in(encoding, text):
        return Sentence("layouts.character_not_of_encoding", encoding=encoding)
    return None


def _is_written_in(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def renamed(data: bytes, layout: BankLayout, message: Message, names: Mapping[int, str]) -> list[Edit]:
    """Return edits that give payees new names; a name that fitting leaves unchanged needs no edit."""
    assert obstacle(layout, message) is None
    encoding = message.facts["encoding"]
    lines = classified_lines(data, layout, encoding=encoding, where=_READ_BEFORE)
    kinds = {word: kind for word, kind in kinds_of(layout) if isinstance(kind, PaymentLine)}
    edits: list[Edit] = []
    for row, name in names.items():
        text = fitted(name, layout)
        assert text is not None
        line = lines.row(message.locations["line"][row - 1] - 1, named=True)
        kind = kinds[line["kind"]]
        edits += _Pen(layout, kind, encoding).written(line, kind.columns["name"], text)
    return edits


def kept(data: bytes, layout: BankLayout, message: Message, keep: pl.Series) -> list[Edit]:
    """Like `MessageFormat.kept` (OutputError: a cell is too small for its new sum)."""
    assert keep.len() == message.payments.height
    assert keep.any()
    assert obstacle(layout, message) is None
    assert split_obstacle(message) is None
    encoding = message.facts["encoding"]
    lines = with_batch(classified_lines(data, layout, encoding=encoding, where=_READ_BEFORE))
    payments = payments_of(lines, layout)
    staying = payments.filter(keep)
    leaving = _leaving(lines, payments.filter(~keep), staying)
    edits = removals(leaving)
    before = {(total.line, total.position): total.found for total in totals_of(lines, payments, layout)}
    for total in totals_of(lines, staying, layout):
        assert total.found is not None
        if total.line not in leaving["line"] and total.found != before[total.line, total.position]:
            line = lines.row(total.line - 1, named=True)
            pen = _Pen(layout, total.kind, encoding)
            edits += pen.written(line, total.position, rewritten(total, total.found, layout))
    return edits


def _leaving(lines: pl.DataFrame, gone: pl.DataFrame, staying: pl.DataFrame) -> pl.DataFrame:
    """Return the lines to remove: these payments, and batches that lose all payments."""
    left = staying["batch_line"].unique().implode()
    empty = pl.col("line").is_in(gone["batch_line"].unique().implode()) & ~pl.col("line").is_in(left)
    batches = lines.lazy().filter(kind=BATCH).filter(empty).select("line", "start", "end").collect()
    return pl.concat([gone.select("line", "start", "end"), batches]).sort("line")


class _Pen:
    """Writes cells of one kind of line, in the encoding of the file."""

    def __init__(self, layout: BankLayout, kind: LineKind, encoding: str) -> None:
        self._separator = layout.separator
        self._widths = layout.widths_of(kind)
        self._encoding = encoding

    def written(self, line: Mapping[str, Any], position: int, text: str) -> Iterator[Edit]:
        """Yield the edit that writes a text into a cell of a line; none if unchanged."""
        old = line["text"]
        start, end = self._span(old, position)
        new = self._in_place(old[start:end], text, line["line"])
        if new != old[start:end]:
            offset = line["start"] + len(self._bytes(old[:start]))
            yield Edit(offset, offset + len(self._bytes(old[start:end])), self._bytes(new))

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
        if len(text) > len(old):  # a sum that now needs decimals; names are cut to their cells
            raise OutputError(Sentence("layouts.line_cell_characters", line=line, old_count=len(old)))
        return text.rjust(len(old)) if old.startswith(" ") else text.ljust(len(old))

    def _bytes(self, text: str) -> bytes:
        return text.encode(self._encoding)
