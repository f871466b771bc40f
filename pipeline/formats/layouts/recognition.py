"""Recognise the layout of a file by its tags and the shapes of its cells, never by one column alone."""

import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.layouts.classified import (
    HEADER,
    UNKNOWN,
    Span,
    cell,
    classified,
    defect,
    kinds_of,
    spans_between,
    spans_by_widths,
    unquoted,
)
from pipeline.formats.layouts.model import BankLayout, LineKind, PaymentLine, Shape, has_shape
from pipeline.formats.text_lines import END_OF_FILE, start_of, text_lines
from pipeline.wording import Sentence

_LINES_LOOKED_AT = 200


def fits(head: bytes, layout: BankLayout) -> bool:
    """True if a file starts as this layout prescribes; the last line of `head` may be cut.

    The header and the first payment must fit the layout, each line must be of a known kind, and most payments
    must look like payments: mistakes in some rows do not change the format.
    """
    # Tags and shapes are ASCII, which has the same bytes in every supported encoding.
    text = start_of(head)
    if not _first_line_fits(text, layout):
        return False
    lines = _whole_lines(re.sub(r"\r+\n|\r", "\n", text))  # odd line ends are refused when it is read
    # The last line of the file is not in `head`.
    trailer = layout.trailer and layout.trailer.model_copy(update={"is_optional": True})
    start = layout.model_copy(update={"trailer": trailer})
    try:
        lines = classified(lines, start, where="")
    except InputError:
        return False
    if (lines["kind"] == UNKNOWN).any() or not _header_fits(lines, layout):
        return False
    looks: list[tuple[int, bool]] = []
    for word, kind in kinds_of(layout):
        if isinstance(kind, PaymentLine):
            looks += _looks(lines.filter(kind=word), layout, kind)
    in_order = [is_payment for _, is_payment in sorted(looks)]
    return bool(in_order) and in_order[0] and 2 * sum(in_order) > len(in_order)


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


def _first_line_fits(text: str, layout: BankLayout) -> bool:
    """True if the first line has its tags, which decides for most files."""
    line = re.split("[\r\n]", text.lstrip(f" \r\n{END_OF_FILE}"), maxsplit=1)[0]
    return any(_has_tags(line, layout, kind) for kind in _first_kinds(layout))


def _first_kinds(layout: BankLayout) -> Iterator[LineKind]:
    if layout.header is not None:
        yield layout.header
        if not layout.header.is_optional:
            return
    if layout.batch is not None:
        yield layout.batch
    yield from layout.others
    yield from layout.payments


def _has_tags(line: str, layout: BankLayout, kind: LineKind) -> bool:
    cells = _cells(line, layout, kind)
    shapes: Mapping[int, Shape] = {}
    if isinstance(kind, PaymentLine) and not kind.tags:
        always_there = kind.cells_min or max(kind.positions)
        shapes = {place: shape for place, shape in layout.shapes_of(kind).items() if place <= always_there}
    needed = max([*kind.tags, *shapes], default=0)
    return (
        len(cells) >= needed
        and all(cells[place - 1] in words for place, words in kind.tags.items())
        and all(has_shape(cells[place - 1], shape) for place, shape in shapes.items())
    )


def _cells(line: str, layout: BankLayout, kind: LineKind) -> list[str]:
    """Return the cells of one line, as in `classified`; none if it cannot be cut."""
    widths = layout.widths_of(kind)
    if widths is not None:
        spans: Sequence[Span] | None = spans_by_widths(widths)
    elif '"' in line:
        spans = spans_between(line, str(layout.separator))
    else:
        return [cell.strip(" ") for cell in line.split(layout.separator)]
    return [unquoted(line[start:end]).strip(" ") for start, end in spans or ()]


def _whole_lines(text: str) -> pl.DataFrame:
    lines = text_lines(text, one_byte_each=True)
    if not text.endswith("\n") and lines.height > 1:
        lines = lines.head(lines.height - 1)
    return lines.head(_LINES_LOOKED_AT)


def _header_fits(lines: pl.DataFrame, layout: BankLayout) -> bool:
    if layout.header is None or not layout.header.shapes:
        return True
    header = lines.filter(kind=HEADER)
    cells = header.select(
        cell(layout, layout.header, place).alias(str(place)) for place in layout.header.shapes
    )
    return all(
        text is not None and has_shape(text, shape)
        for row in cells.iter_rows()
        for text, shape in zip(row, layout.header.shapes.values(), strict=True)
    )


def _looks(lines: pl.DataFrame, layout: BankLayout, kind: PaymentLine) -> list[tuple[int, bool]]:
    """Return the line of each payment, and true if it looks like one."""
    shapes = layout.shapes_of(kind)
    cells = lines.select(
        "line",
        defect(layout, kind).is_null().alias("whole"),
        *(cell(layout, kind, place).alias(str(place)) for place in shapes),
    )
    always_there = kind.cells_min or max(kind.positions)
    return [
        (
            line,
            whole
            and all(
                place > always_there if text is None else has_shape(text, shape)
                for (place, shape), text in zip(shapes.items(), texts, strict=True)
            ),
        )
        for line, whole, *texts in cells.iter_rows()
    ]
