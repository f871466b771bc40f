"""Layouts of banks, bureaus and the user: lines of cells without headers, recognised by tags and shapes.

A changed copy of a file has corrected names or fewer payments, and recalculated totals.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.errors import ConfigurationError, OutputError
from pipeline.formats.edits import Edit, removals
from pipeline.formats.layouts import reading
from pipeline.formats.layouts.classified import (
    BATCH,
    HEADER,
    TRAILER,
    kinds_of,
    quoted_like,
    spans_between,
    spans_by_widths,
    unquoted,
)
from pipeline.formats.layouts.model import (
    LAYOUTS,
    UK_ACCOUNT,
    BankLayout,
    LineKind,
    PaymentLine,
    Shape,
    has_shape,
    why_never_changed,
)
from pipeline.formats.layouts.reading import rewritten, totals_of, with_batch
from pipeline.formats.message import THE_FILE, Message, Role, split_obstacle
from pipeline.formats.table import ReadingOptions, load
from pipeline.formats.text_lines import END_OF_FILE, in_bacs_characters, start_of
from pipeline.wording import Sentence

__all__ = ["LAYOUTS", "BankLayout", "LayoutFormat", "layout_formats"]

_LINES_LOOKED_AT = 200
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


def fits(head: bytes, layout: BankLayout) -> bool:
    """True if a file starts as this layout prescribes; the last line of `head` may be cut.

    The header and the first payment must fit the layout, each line must be of a known kind, and most payments
    must look like payments: mistakes in some rows do not change the format. The first line decides for most
    files.
    """
    # Tags and shapes are ASCII, which has the same bytes in every supported encoding.
    every = start_of(head).replace("\r", "\n").split("\n")  # odd line ends are refused when it is read
    filled = [line for line in every[: len(every) - 1 or 1] if line.strip(f" {END_OF_FILE}")]
    lines, looks = filled[:_LINES_LOOKED_AT], list[bool]()
    for number, line in enumerate(lines):
        places = {HEADER: number == 0, TRAILER: number == len(lines) - 1}
        kinds = [kind for word, kind in kinds_of(layout) if places.get(word, True)]
        kind = next((kind for kind in kinds if _has_tags(line, layout, kind)), None)
        if kind is None:
            return False
        if number == 0 and (header := layout.header) is not None:
            shapes = header.shapes if kind is header else {}
            is_fit = kind is header or header.is_optional
            if not (is_fit and _has_shapes(line, layout, header, shapes, max(shapes, default=0))):
                return False
        if isinstance(kind, PaymentLine):
            looks.append(_looks_like_payment(line, layout, kind))
        if looks and not looks[0]:
            return False
    return 2 * sum(looks) > len(looks)


def known_by(layout: BankLayout) -> Sentence:
    """Return how `fits` recognises a file, in words.

    >>> from pipeline.formats.layouts.model import LAYOUTS
    >>> str(known_by(LAYOUTS["cashbacs"]))[:55]
    'lines with cells 1 (sort code with hyphens), 2 (account'
    """
    kinds: list[tuple[str, LineKind, Mapping[int, Shape]]] = []
    if layout.header is not None:
        kinds.append(("formats.known_header", layout.header, layout.header.shapes))
    kinds += [("formats.known_payments", kind, layout.shapes_of(kind)) for kind in layout.payments]
    lines = [
        Sentence(key, cells=_known_cells(kind, shapes)) for key, kind, shapes in kinds if kind.tags or shapes
    ]
    return Sentence("formats.known_lines", lines=lines)


def _known_cells(kind: LineKind, shapes: Mapping[int, Shape]) -> list[Sentence]:
    """Describe each cell that identifies the layout: its shape, or the words allowed in it."""
    known: dict[int, Sequence[Sentence | str]] = {
        place: [Sentence(f"formats.shape_{shape.name.lower()}")] for place, shape in shapes.items()
    }
    return [
        Sentence("formats.known_cell", what=what, cell=place)
        for place, what in sorted((known | kind.tags).items())
    ]


def _has_tags(line: str, layout: BankLayout, kind: LineKind) -> bool:
    """True if a line can be cut into cells and has the tags of this kind, or the kind has no tags."""
    cells = _cells(line, layout, kind)
    return cells is not None and all(
        cells[place - 1 : place] and cells[place - 1] in words for place, words in kind.tags.items()
    )


def _looks_like_payment(line: str, layout: BankLayout, kind: PaymentLine) -> bool:
    widths, count = layout.widths_of(kind), len(_cells(line, layout, kind) or ())
    count_min = kind.cells_min or max(kind.positions)
    if widths is None:
        is_whole = count_min <= count <= (kind.cells_max or count)
    else:
        is_whole = len(line.rstrip(" ")) <= sum(widths) <= len(line)
    return is_whole and _has_shapes(line, layout, kind, layout.shapes_of(kind), count_min)


def _has_shapes(
    line: str, layout: BankLayout, kind: LineKind, shapes: Mapping[int, Shape], count_min: int
) -> bool:
    """True if the cells have these shapes; those after the first `count_min` may be missing."""
    cells = _cells(line, layout, kind) or ()
    return all(
        has_shape(cells[place - 1], shape) if place <= len(cells) else place > count_min
        for place, shape in shapes.items()
    )


def _cells(line: str, layout: BankLayout, kind: LineKind) -> list[str] | None:
    """Return the cells of one line, as in `classified`; None if a quoted cell is not closed."""
    widths = layout.widths_of(kind)
    if widths is not None:
        return [line[start:end].strip(" ") for start, end in spans_by_widths(widths) if start < len(line)]
    if '"' not in line:
        return [cell.strip(" ") for cell in line.split(layout.separator)]
    spans = spans_between(line, str(layout.separator))
    return None if spans is None else [unquoted(line[start:end]).strip(" ") for start, end in spans]
