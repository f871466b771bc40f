"""Count the rows of a delimited file, and their text in bytes, independently of parsers.

A parser that reads a file as a single row, or none, reports no error. So the bytes are counted a second time,
by the rules of RFC 4180, and a parsed table is accepted only if its control totals agree.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.files.expansion import RECORD_BYTES_MAX
from pipeline.wording import Sentence, Value
from pipeline.wording.rows import rows_named
from schemas.row_positions import RowPositions

CLOSED_SETS = (pl.Enum, pl.Categorical)  # column types of polars that are text outside polars

BLOCK_BYTES = 262_144
"""The bytes examined at a time: if all are quotes, their list takes forty times as much memory."""


class Body(NamedTuple):
    """The rows of a text, without copying it: large files take time and memory."""

    text: bytes  # the text in UTF-8
    start: int  # the offset of the first row; a line ends before it
    stop: int  # the offset after the last row; only line ends may follow
    block_bytes: int = BLOCK_BYTES  # the bytes examined at a time, extended to the end of a line

    def copy(self) -> bytes:
        """Return a copy of the rows only."""
        return self.text[self.start : self.stop]


class CsvTally(NamedTuple):
    """Control totals of the rows of a file."""

    row_count: int  # line ends outside of quoted cells, and the last row, which needs none
    text_byte_count: int  # UTF-8 bytes of all cells; enclosing quotes do not count, doubled quotes count once
    regular: bool
    """Every row has the same number of cells, every quote encloses a whole cell, and every CR is
    part of a CR LF."""


def text_bytes(cells: pl.DataFrame) -> int:
    """Return the UTF-8 bytes of all cells of a table, to compare with a `CsvTally`."""
    lengths = (pl.col(pl.String).str.len_bytes(), pl.col(*CLOSED_SETS).cat.len_bytes())
    return sum(cells.select(length.cast(pl.Int64).sum() for length in lengths).row(0))


def tally(body: Body, *, delimiter: str, column_count: int, where: str, line_first: int = 1) -> CsvTally:
    """Count the rows of a file with an ASCII delimiter; regular rows have `column_count` cells.

    A quote opens a cell only at its start. Raises InputError: a quoted cell is not closed, has text after its
    closing quote, or is oversized.
    """
    mark = delimiter.encode()
    grammar = _grammar(mark)
    # Searching for a missing byte is ten times as fast as counting it.
    has_cr = body.text.find(b"\r", body.start, body.stop) >= 0
    crs, pairs = (body.text.count(end, body.start, body.stop) if has_cr else 0 for end in (b"\r", b"\r\n"))
    outside = _outside_quotes(body, grammar) if crs == pairs else None
    if outside is None:
        return _tally_irregular(body.copy(), grammar, where, line_first)
    if outside.long_row is not None:
        raise long_row(outside.long_row, where)
    rows = outside.separators.replace(b"\r", b"") + b"\n"
    row_count = rows.count(b"\n")
    regular = rows == (mark * (column_count - 1) + b"\n") * row_count
    byte_count = body.stop - body.start
    return CsvTally(row_count, byte_count - len(outside.separators) - outside.quote_byte_count, regular)


def line_ends(text: bytes, start: int = 0, stop: int | None = None) -> int:
    """Return the number of line ends in a text, or in a part of it, of any kind."""
    lfs, crs, pairs = (text.count(end, start, stop) for end in (b"\n", b"\r", b"\r\n"))
    return lfs + crs - pairs


class _Grammar(NamedTuple):
    mark: bytes
    edges: frozenset[bytes]
    """Bytes that may precede or follow a quoted cell; empty if the adjacent quote belongs to another."""
    not_separators: bytes
    legal: re.Pattern[bytes]  # the longest well-formed part of a text; quotes inside of cells are allowed
    quoted_cell: re.Pattern[bytes]
    whole_rows: re.Pattern[bytes]  # as many complete rows as possible, with their line ends


@cache
def _grammar(mark: bytes) -> _Grammar:
    edge = b"[^" + re.escape(mark) + rb"\r\n]"
    cell = b'(?<!%b)"[^"]*+(?:""[^"]*+)*+"(?!%b)' % (edge, edge)
    stray = b'(?<=%b)"' % edge
    # Repeated groups are atomic: before 3.11.5, Python mishandles possessive repeats that may backtrack.
    return _Grammar(
        mark=mark,
        edges=frozenset({mark, b"\r", b"\n", b""}),
        not_separators=bytes(range(256)).translate(None, mark + b"\r\n"),
        legal=re.compile(b'(?:[^"]*+(?>%b|%b))*+[^"]*+' % (cell, stray)),
        quoted_cell=re.compile(cell),
        whole_rows=re.compile(rb'(?:(?>(?>[^"\r\n]++|%b|%b)*+[\r\n]))*+' % (cell, stray)),
    )


_FIRST, _LAST = itemgetter(slice(1)), itemgetter(slice(-1, None))


class _Outside(NamedTuple):
    separators: bytes
    quote_byte_count: int  # enclosing quotes, and the first of each doubled quote
    long_row: int | None  # the first oversized row, counted from 1


def _outside_quotes(body: Body, grammar: _Grammar) -> _Outside | None:
    """Return the separators outside quoted cells if every quote encloses a whole cell; else None.

    Quotes alternate between opening and closing; two adjacent quotes are one escaped quote.
    """
    separators: list[bytes] = []
    lengths: list[int] = []
    quote_count = doubled_count = is_inside = 0
    for block in _blocks(body):
        lengths.append(len(block))
        if b'"' not in block:
            separators.append(b"" if is_inside else block.translate(None, grammar.not_separators))
            continue
        pieces = block.split(b'"')
        outside = pieces[is_inside::2]
        separators.append(b"".join(outside).translate(None, grammar.not_separators))
        quote_count += len(pieces) - 1
        # A block lies between line ends, or at an end of the text: a cell may start and end there.
        if not is_inside:
            outside[0] = b"\n" + outside[0]
        is_inside ^= (len(pieces) - 1) % 2
        if not is_inside:
            outside[-1] += b"\n"
        if not {*map(_FIRST, outside), *map(_LAST, outside)} <= grammar.edges:
            return None
        doubled_count += outside.count(b"")
    if is_inside:
        return None
    return _Outside(b"".join(separators), quote_count - doubled_count, _long_row(separators, lengths))


def _long_row(separators: Sequence[bytes], lengths: Sequence[int]) -> int | None:
    """Return the first row with too many whole blocks of text; shorter oversized rows are found later."""
    filled = 0
    for number, (block, length) in enumerate(zip(separators, lengths, strict=True)):
        filled = 0 if b"\n" in block else filled + length
        if filled > RECORD_BYTES_MAX:
            return sum(before.count(b"\n") for before in separators[:number]) + 1
    return None


def _blocks(body: Body) -> Iterator[bytes]:
    """Yield the rows in parts; every part but the last ends with a line end."""
    text, start, end, block_bytes = body
    while start < end:
        stop = text.find(b"\n", start + block_bytes, end) + 1 or end
        yield text[start:stop]
        start = stop


def _tally_irregular(body: bytes, grammar: _Grammar, where: str, line_first: int) -> CsvTally:
    legal = grammar.legal.match(body)
    legal_end = 0 if legal is None else legal.end()
    if legal_end < len(body):
        line = line_first + line_ends(body[:legal_end])
        raise InputError(Sentence("csv.quoted_cell_malformed", where=where, line=line))
    # A placeholder: without it, a CR before the cell would join an LF after it.
    outside, cell_count = grammar.quoted_cell.subn(b"x", body)
    separator_bytes = outside.count(grammar.mark) + outside.count(b"\r") + outside.count(b"\n")
    inside_quote_count = body.count(b'"') - outside.count(b'"') - 2 * cell_count
    text_byte_count = len(body) - separator_bytes - 2 * cell_count - inside_quote_count // 2
    return CsvTally(line_ends(outside) + 1, text_byte_count, regular=False)


def long_line_at(body: bytes) -> int | None:
    """Return the offset of an oversized line; the search skips ahead, so that short lines cost nothing."""
    start = 0
    while len(body) - start > RECORD_BYTES_MAX:
        stop = start + RECORD_BYTES_MAX + 1
        end = body.rfind(b"\n", start, stop)
        if end < 0:
            end = body.rfind(b"\r", start, stop)
        if end < 0:
            return start
        start = end + 1
    return None


def whole_rows(text: bytes, start: int, *, delimiter: str) -> int:
    """Return the offset after the last complete row; if none ends near the end, an offset in that row.

    The last row may be cut; the first begins at `start`.
    """
    grammar = _grammar(delimiter.encode())
    # Going row by row is slow: search only near the end, from a line start with no open cell.
    near = text.find(b"\n", max(start, len(text) - 2 * RECORD_BYTES_MAX)) + 1
    closed = grammar.legal.match(text, start, max(start, near))
    start = start if closed is None else closed.end()
    rows = grammar.whole_rows.match(text, start)
    return start if rows is None else rows.end()


def too_long(key: str, where: str, **place: Value) -> InputError:
    """Return the refusal of a line, a cell or a row longer than any payment's."""
    return InputError(Sentence(key, where=where, record_bytes_max=RECORD_BYTES_MAX, **place))


def long_row(row: int, where: str, positions: RowPositions | None = None) -> InputError:
    """Return the refusal of a row of more lines than any payment has."""
    return too_long("csv.row_too_long", where, rows=rows_named([row], positions))
