"""Classify the lines of a file by its layout: header, batch, payment, other, trailer; cut them into cells."""

import re
from collections.abc import Iterator, Sequence

import polars as pl
from polars.expr.whenthen import ChainedThen, Then

from pipeline.errors import InputError
from pipeline.formats.layouts.model import BankLayout, LineKind, PaymentLine
from pipeline.formats.text_lines import IS_BLANK
from pipeline.rules.unasked import LINE_TOO_LONG, LINE_TOO_SHORT
from pipeline.wording import Sentence

PAYMENT = "payment"  # prefix of the kinds of payment lines; a number follows
OTHER = "other"
HEADER = "header"
BATCH = "batch"
TRAILER = "trailer"
UNKNOWN = "unknown"  # a line of an unknown kind; it counts as a payment, which is rejected
BLANK = "blank"


_MARKS = {",": ",", ";": ";", "|": r"\|", "\t": r"\t"}  # the separators as regular expressions


def kinds_of(layout: BankLayout) -> list[tuple[str, LineKind]]:
    """Return the kinds of lines in a layout, in the order of trying, and their names in the column `kind`."""
    single = ((HEADER, layout.header), (TRAILER, layout.trailer), (BATCH, layout.batch))
    named: list[tuple[str, LineKind]] = [(word, kind) for word, kind in single if kind is not None]
    named += [(f"{OTHER} {number}", kind) for number, kind in enumerate(layout.others)]
    return [*named, *((f"{PAYMENT} {number}", kind) for number, kind in enumerate(layout.payments))]


def classified(lines: pl.DataFrame, layout: BankLayout, *, where: str) -> pl.DataFrame:
    """Add the `kind` of each line and, if the layout has a separator, a list of `cells`.

    Raises InputError: the header or trailer is missing, or a quoted cell is not closed.
    """
    if layout.separator is not None:
        lines = lines.with_columns(_cells(lines, layout.separator, where))
    lines = lines.with_columns(is_blank=IS_BLANK).with_columns(
        is_first=pl.int_range(pl.len()) == pl.col("is_blank").not_().arg_max(),
        is_last=pl.int_range(pl.len()) == pl.len() - 1 - pl.col("is_blank").not_().reverse().arg_max(),
    )
    found: Then | ChainedThen = pl.when("is_blank").then(pl.lit(BLANK))
    places = {HEADER: pl.col("is_first"), TRAILER: pl.col("is_last")}
    for word, kind in kinds_of(layout):
        is_there = places.get(word, pl.lit(value=True))
        found = found.when(is_there & has_tags(layout, kind)).then(pl.lit(word))
    lines = lines.with_columns(found.otherwise(pl.lit(UNKNOWN)).alias("kind")).drop(
        "is_blank", "is_first", "is_last"
    )
    for sentence in _what_lacks(lines, layout):
        raise InputError(Sentence("layouts.file_and_reason", where=where, why=sentence))
    return lines


def _what_lacks(lines: pl.DataFrame, layout: BankLayout) -> Iterator[Sentence]:
    filled = lines.filter(pl.col("kind") != BLANK).select("line", "kind")
    if filled.is_empty():
        yield Sentence("layouts.file_empty")
        return
    (first, kind_first), (last, kind_last) = filled.row(0), filled.row(-1)
    if layout.header is not None and not layout.header.is_optional and kind_first != HEADER:
        yield Sentence("layouts.header_line_missing", first=first, title=layout.title)
    if layout.trailer is not None and not layout.trailer.is_optional and kind_last != TRAILER:
        yield Sentence("layouts.trailer_line_missing", last=last, title=layout.title)


def has_tags(layout: BankLayout, kind: LineKind) -> pl.Expr:
    """True if a line has the tags of this kind, or the kind has no tags."""
    matches = (cell(layout, kind, place).is_in(words) for place, words in kind.tags.items())
    return pl.all_horizontal(pl.lit(value=True), *matches).fill_null(value=False)


def cell(layout: BankLayout, kind: LineKind, position: int) -> pl.Expr:
    """Return one cell of each line, without surrounding blanks; null if the line lacks it."""
    widths = layout.widths_of(kind)
    if widths is None:
        text = pl.col("cells").list.get(position - 1, null_on_oob=True)
    else:
        start, end = spans_by_widths(widths)[position - 1]
        whole = pl.col("text").str
        text = pl.when(whole.len_chars() > start).then(whole.slice(start, end - start))
    return text.str.strip_chars(" ")


def defect(layout: BankLayout, kind: PaymentLine) -> pl.Expr:
    """Return the defect of a whole payment, too few or too many cells; else null."""
    widths = layout.widths_of(kind)
    if widths is None:
        count = pl.col("cells").list.len()
        is_short = count < (kind.cells_min or max(kind.positions))
        is_long = pl.lit(value=False) if kind.cells_max is None else count > kind.cells_max
    else:
        is_short = pl.col("text").str.len_chars() < sum(widths)
        is_long = pl.col("text").str.strip_chars_end(" ").str.len_chars() > sum(widths)
    return pl.when(is_short).then(pl.lit(LINE_TOO_SHORT)).when(is_long).then(pl.lit(LINE_TOO_LONG))


def _cells(lines: pl.DataFrame, separator: str, where: str) -> pl.Series:
    """Return the cells of each line, without enclosing quotes."""
    mark = _MARKS[separator]
    quoted_or_not = f'(?:"[^"{mark}]*"|[^"{mark}]*)'
    # Unneeded quotes around whole cells are removed; lines with other quotes are read one by one.
    is_plain = pl.col("text").str.contains(f"^{quoted_or_not}(?:{mark}{quoted_or_not})*$")
    without_quotes = pl.col("text").str.replace_all('"', "", literal=True).str.split(separator)
    cells = lines.select(pl.when(is_plain).then(without_quotes).alias("cells")).to_series()
    if not cells.null_count():
        return cells
    careful = lines.filter(cells.is_null()).select("line", "text")
    read = [_carefully(text, line, separator, where) for line, text in careful.iter_rows()]
    found = careful.select("line", careful=pl.Series(read, dtype=pl.List(pl.String)))
    every = lines.select("line", cells=cells).join(found, on="line", how="left", maintain_order="left")
    return every.select(pl.coalesce("cells", "careful")).to_series()


def _carefully(text: str, line: int, separator: str, where: str) -> list[str]:
    spans = spans_between(text, separator)
    if spans is None:
        raise InputError(Sentence("csv.quoted_cell_malformed", where=where, line=line))
    return [unquoted(text[start:end]) for start, end in spans]


# Cells of one line, at separators or by widths.

_QUOTED = re.compile(r'"(?:[^"]|"")*"')

Span = tuple[int, int]  # a range of characters: the first, and the one past the last


def spans_between(text: str, separator: str) -> list[Span] | None:
    """Return the cells between separators, with their quotes; None if a quoted cell is not closed.

    >>> spans_between('a,"b,c",', ",")
    [(0, 1), (2, 7), (8, 8)]
    """
    spans, start = [], 0
    while True:
        if text.startswith('"', start):
            quoted = _QUOTED.match(text, start)
            if quoted is None or text[quoted.end() : quoted.end() + 1] not in {"", separator}:
                return None
            end = quoted.end()
        else:
            end = text.find(separator, start)
            end = len(text) if end < 0 else end
        spans.append((start, end))
        if end == len(text):
            return spans
        start = end + 1


def spans_by_widths(widths: Sequence[int]) -> list[Span]:
    """Return the cells of a line with these widths.

    >>> spans_by_widths([2, 3])
    [(0, 2), (2, 5)]
    """
    spans, start = [], 0
    for width in widths:
        spans.append((start, start + width))
        start += width
    return spans


def unquoted(cell: str) -> str:
    """Return the text of a cell without quotes.

    >>> unquoted('"12"" pipe"'), unquoted("plain")
    ('12" pipe', 'plain')
    """
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def quoted_like(cell: str, text: str, separator: str) -> str:
    """Quote a text that replaces a cell, if the cell was quoted or the text needs it.

    >>> quoted_like('"Ada"', "Zoe", ","), quoted_like("Ada", "Quillon, Ada", ","), quoted_like("A", "Z", ",")
    ('"Zoe"', '"Quillon, Ada"', 'Z')
    """
    if cell.startswith('"') or separator in text or '"' in text:
        return f'"{text.replace(chr(34), chr(34) * 2)}"'
    return text
