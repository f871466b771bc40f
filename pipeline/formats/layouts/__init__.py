"""Layouts of banks, bureaus and the user: lines of cells without headers, recognised by tags and shapes.

A changed copy of a file has corrected names or fewer payments, and recalculated totals.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.errors import ConfigurationError, OutputError
from pipeline.formats.edits import Edit, removals
from pipeline.formats.layouts import reading
from pipeline.formats.layouts.classified import BATCH, kinds_of, quoted_like, spans_between, spans_by_widths
from pipeline.formats.layouts.model import (
    LAYOUTS,
    UK_ACCOUNT,
    BankLayout,
    LineKind,
    PaymentLine,
    why_never_changed,
)
from pipeline.formats.layouts.recognition import fits, known_by
from pipeline.formats.layouts.totals import rewritten, totals_of, with_batch
from pipeline.formats.message import THE_FILE, Message, Role, split_obstacle
from pipeline.formats.table import ReadingOptions, load
from pipeline.formats.text_lines import in_bacs_characters
from pipeline.wording import Sentence

__all__ = ["LAYOUTS", "BankLayout", "LayoutFormat", "layout_formats"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class LayoutFormat:
    """A layout as a format."""

    NAME: str
    layout: BankLayout
    SUFFIXES: tuple[str, ...] = (".csv", ".txt")
    MEMORY_PER_BYTE: int = 20
    OPTIONS: tuple[str, ...] = ("encoding",)
    load = staticmethod(load)
    split_obstacle = staticmethod(split_obstacle)

    def sniff(self, head: bytes) -> bool:
        """True if a file starts as this layout prescribes."""
        return fits(head, self.layout)

    @property
    def TITLE(self) -> str:  # noqa: N802 - like the constants of other formats
        """The title of the layout, for people."""
        return self.layout.title

    @property
    def KNOWN_BY(self) -> Sentence:  # noqa: N802 - like the constants of other formats
        """How its files start, in words."""
        return known_by(self.layout)

    @property
    def ORIGINS(self) -> Mapping[str, Sentence]:  # noqa: N802 - like the constants of other formats
        """Field -> its cells, counted from 1."""
        numbers: dict[str, list[int]] = {}
        for kind in self.layout.payments:
            for field, place in kind.columns.items():
                for one in ("sort_code", "account_number") if field == UK_ACCOUNT else (field,):
                    numbers.setdefault(one, []).append(place)
        currencies = list(dict.fromkeys(kind.currency for kind in self.layout.payments if kind.currency))
        origins = {"currency": Sentence("column.by_the_format", currencies=currencies)}
        for field, cells in numbers.items():
            origins[field] = Sentence("column.cells", cells=[str(cell) for cell in sorted({*cells})])
        return origins

    def read(self, data: bytes, options: ReadingOptions, *, where: str) -> Message:
        """Read a file; see `reading.read`."""
        return reading.read(data, self.layout, encoding=options.encoding, where=where)

    def fitted(self, name: str) -> str | None:
        """Return a name in the bank's characters, cut to its limit; None if nothing remains."""
        text = None if _CONTROL.search(name.strip()) else name.strip()
        if self.layout.name_characters == "bacs":
            text = in_bacs_characters(name)
        return text[: self.layout.name_room].rstrip() if text else None

    def obstacle(self, message: Message) -> Sentence | None:
        """Return why a file must not be changed; None if it may."""
        if (why := why_never_changed(self.layout)) is not None:
            return Sentence("layouts.cannot_be_changed", file=THE_FILE, why=why)
        return message.difference

    def name_obstacle(self, message: Message, row: int, name: str) -> Sentence | None:
        """Return why a payee cannot get a name; None if it can."""
        if message.defects[row - 1] is not None:
            return Sentence("layouts.line_differs")
        text, encoding = self.fitted(name), message.facts["encoding"]
        if text is None:
            return Sentence("layouts.name_letters_not_accepted")
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            return Sentence("layouts.name_not_in_encoding", encoding=encoding)
        return None

    def renamed(self, data: bytes, message: Message, names: Mapping[int, str]) -> list[Edit]:
        """Return edits that give payees new names; a name that fitting leaves unchanged needs no edit."""
        assert self.obstacle(message) is None
        lines = self._lines(data, message)
        kinds = {word: kind for word, kind in kinds_of(self.layout) if isinstance(kind, PaymentLine)}
        edits: list[Edit] = []
        for row, name in names.items():
            text = self.fitted(name)
            assert text is not None
            line = lines.row(message.locations["line"][row - 1] - 1, named=True)
            kind = kinds[line["kind"]]
            edits += self._written(message, kind, line, kind.columns["name"], text)
        return edits

    def kept(self, data: bytes, message: Message, keep: pl.Series, role: Role) -> list[Edit]:  # noqa: ARG002 - layouts have no IDs of their own
        """Like `MessageFormat.kept` (OutputError: a cell is too small for its new sum)."""
        assert keep.len() == message.payments.height
        assert keep.any()
        assert self.obstacle(message) is None
        assert split_obstacle(message) is None
        lines = with_batch(self._lines(data, message))
        payments = reading.payments_of(lines, self.layout)
        staying = payments.filter(keep)
        leaving = _leaving(lines, payments.filter(~keep), staying)
        edits = removals(leaving)
        totals = (totals_of(lines, rows, self.layout) for rows in (payments, staying))
        for before, total in zip(*totals, strict=True):
            assert total.found is not None
            if total.line not in leaving["line"] and total.found != before.found:
                line, text = lines.row(total.line - 1, named=True), rewritten(total, total.found, self.layout)
                edits += self._written(message, total.kind, line, total.position, text)
        return edits

    def _lines(self, data: bytes, message: Message) -> pl.DataFrame:
        where = "a file that was read before"
        return reading.classified_lines(data, self.layout, encoding=message.facts["encoding"], where=where)

    def _written(
        self, message: Message, kind: LineKind, line: Mapping[str, Any], position: int, text: str
    ) -> Iterator[Edit]:
        """Yield the edit that writes a text into a cell of a line; none if unchanged."""
        encoding, separator = message.facts["encoding"], self.layout.separator
        by_widths = spans_by_widths(self.layout.widths_of(kind) or ())
        spans = by_widths if separator is None else spans_between(line["text"], separator)
        assert spans is not None
        start, end = spans[position - 1]
        before, old = line["text"][:start], line["text"][start:end]
        if separator is not None:
            new = quoted_like(old, text, separator)
        elif len(text) > len(old):  # a sum that now needs decimals; names are cut to their cells
            raise OutputError(Sentence("layouts.no_room_for_sum", line=line["line"], old_count=len(old)))
        else:
            new = text.rjust(len(old)) if old.startswith(" ") else text.ljust(len(old))
        if new != old:
            offset = line["start"] + len(before.encode(encoding))
            yield Edit(offset, offset + len(old.encode(encoding)), new.encode(encoding))


def _leaving(lines: pl.DataFrame, gone: pl.DataFrame, staying: pl.DataFrame) -> pl.DataFrame:
    """Return the lines to remove: these payments, and batches that lose all payments."""
    left = staying["batch_line"].unique().implode()
    empty = pl.col("line").is_in(gone["batch_line"].unique().implode()) & ~pl.col("line").is_in(left)
    batches = lines.lazy().filter(kind=BATCH).filter(empty).select("line", "start", "end").collect()
    return pl.concat([gone.select("line", "start", "end"), batches]).sort("line")


def layout_formats(own: Mapping[str, BankLayout]) -> dict[str, LayoutFormat]:
    """Return the formats of all layouts by name; configured ones never have a built-in name."""
    for name in own:
        if name in LAYOUTS:
            raise ConfigurationError(Sentence("layouts.layout_name_taken", name=name))
    titled = {name: layout.model_copy(update={"title": layout.title or name}) for name, layout in own.items()}
    return {name: LayoutFormat(name, layout) for name, layout in {**LAYOUTS, **titled}.items()}
