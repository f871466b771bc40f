"""Which layout a file has: by its tags and the shapes of its cells, never by one column alone."""

from collections.abc import Mapping

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.layouts.classified import (
    HEADER,
    UNKNOWN,
    cell,
    classified,
    defect,
    kinds_of,
)
from pipeline.formats.layouts.model import BankLayout, PaymentLine, SummaryLine
from pipeline.formats.layouts.shapes import has_shape
from pipeline.formats.text_lines import text_lines

_LINES_LOOKED_AT = 200
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def recognised(head: bytes, layouts: Mapping[str, BankLayout], *, where: str) -> str | None:
    """The name of the layout that a file has; None where it has none of them.

    Raises:
        InputError: it has several.
    """
    names = [name for name, layout in layouts.items() if fits(head, layout)]
    if len(names) > 1:
        raise InputError(
            f"{where}: has the layout of {' and of '.join(names)}; choose one with --input-format NAME"
        )
    return names[0] if names else None


def fits(head: bytes, layout: BankLayout) -> bool:
    """Whether a file starts as this layout does.

    The header and the first payment must be as the layout says, each line must be of a kind that it knows,
    and most payments must look like payments: a mistake in some rows makes no other file of it.

    Args:
        head: The first bytes of the file; its last line may be cut.
        layout: The layout.
    """
    lines = _whole_lines(head)
    # What ends the file is not among the lines that are looked at.
    start = layout.model_copy(update={"trailer": _optional(layout)})
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


def _optional(layout: BankLayout) -> SummaryLine | None:
    return None if layout.trailer is None else layout.trailer.model_copy(update={"is_optional": True})


def _whole_lines(head: bytes) -> pl.DataFrame:
    # Tags and shapes are ASCII, and so are the bytes of them in every encoding that is read.
    text = head.removeprefix(_BYTE_ORDER_MARK).decode("latin-1")
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
    """The line of each payment, and whether it looks like one."""
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
