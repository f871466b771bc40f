"""Recognise the layout of a file by its tags and the shapes of its cells, never by one column alone."""

from collections.abc import Mapping, Sequence

from pipeline.formats.layouts.classified import (
    HEADER,
    TRAILER,
    kinds_of,
    spans_between,
    spans_by_widths,
    unquoted,
)
from pipeline.formats.layouts.model import BankLayout, LineKind, PaymentLine, Shape, has_shape
from pipeline.formats.text_lines import END_OF_FILE, start_of
from pipeline.wording import Sentence

_LINES_LOOKED_AT = 200


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
