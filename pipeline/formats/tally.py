"""An independent count of a delimited file: how many rows, and how many bytes of text in them.

The parsers of this program are other people's code, and a parser that takes a file for one row, or
for none, says nothing. So the same bytes are counted here a second time, with nothing in common
with a parser: by the rules of RFC 4180 alone, over the whole file at once. A table is believed
only when its control totals are these.
"""

import re
from functools import cache
from typing import NamedTuple

from pipeline.errors import InputError

RECORD_BYTES_MAX = 65_536


class Tally(NamedTuple):
    """Control totals of the rows of a file."""

    row_count: int
    """Line ends outside of quoted cells, and the last row, which needs none."""
    text_byte_count: int
    """UTF-8 bytes of all cells, quote characters not counted."""
    regular: bool
    """Every row has the same number of cells, every quote encloses a whole cell, and every CR is
    part of a CR LF."""


def tally(body: bytes, *, delimiter: str, column_count: int, where: str, line_first: int = 1) -> Tally:
    """Count a file.

    A quoted cell opens only where a cell starts; a quote character elsewhere is text.

    Args:
        body: UTF-8, not empty, without line ends at its end.
        delimiter: One ASCII character.
        column_count: How many cells a regular row has.
        where: The file, for messages.
        line_first: The number of the first line of the body, for messages.

    Raises:
        InputError: a quoted cell is not closed, or goes on after its closing quote.
    """
    mark = delimiter.encode()
    # To look for a byte that is not there is ten times as fast as to count it.
    quote_count = body.count(b'"') if b'"' in body else 0
    cr_count = body.count(b"\r") if b"\r" in body else 0
    crs_are_paired = cr_count == 0 or cr_count == body.count(b"\r\n")
    grammar = _grammar(mark)
    if quote_count == 0 and crs_are_paired:
        separators = body.translate(None, grammar.not_separators)
    elif crs_are_paired and _end(grammar.enclosing, body) == len(body):
        separators = _outside_quotes(body, grammar)
    else:
        return _tally_irregular(body, grammar, where, line_first)
    rows = (separators.replace(b"\r", b"") if cr_count else separators) + b"\n"
    row_count = rows.count(b"\n")
    regular = rows == (mark * (column_count - 1) + b"\n") * row_count
    return Tally(row_count, len(body) - quote_count - len(separators), regular)


def line_ends(text: bytes) -> int:
    """How many lines end in the text, whichever way they end."""
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


class _Grammar(NamedTuple):
    mark: bytes
    not_separators: bytes
    not_marks: bytes
    """All bytes that are neither separators nor quotes."""
    enclosing: re.Pattern[bytes]
    """As much of a text as has quotes around whole cells only."""
    legal: re.Pattern[bytes]
    """As much of a text as is well formed, stray quotes inside of cells included."""
    quoted_cell: re.Pattern[bytes]


@cache
def _grammar(mark: bytes) -> _Grammar:
    edge = b"[^" + re.escape(mark) + rb"\r\n]"
    cell = b'(?<!%b)"[^"]*+(?:""[^"]*+)*+"(?!%b)' % (edge, edge)
    stray = b'(?<=%b)"' % edge
    every = bytes(range(256))
    return _Grammar(
        mark=mark,
        not_separators=every.translate(None, mark + b"\r\n"),
        not_marks=every.translate(None, mark + b'\r\n"'),
        enclosing=re.compile(b'(?:[^"]*+%b)*+[^"]*+' % cell),
        legal=re.compile(b'(?:[^"]*+(?:%b|%b))*+[^"]*+' % (cell, stray)),
        quoted_cell=re.compile(cell),
    )


def _end(pattern: re.Pattern[bytes], text: bytes) -> int:
    matched = pattern.match(text)
    return 0 if matched is None else matched.end()


def _outside_quotes(body: bytes, grammar: _Grammar) -> bytes:
    """The separators outside of quoted cells, where every quote encloses a whole cell.

    Then a byte is inside exactly when an odd number of quotes stands before it, and taking out two
    adjacent quotes changes that for no other byte: most cells vanish without a pattern match.
    """
    marks = body.translate(None, grammar.not_marks).replace(b'""', b"")
    return re.sub(rb'"[^"]*+"', b"", marks)


def _tally_irregular(body: bytes, grammar: _Grammar, where: str, line_first: int) -> Tally:
    legal_end = _end(grammar.legal, body)
    if legal_end < len(body):
        line = line_first + line_ends(body[:legal_end])
        raise InputError(
            f"{where} line {line}: a quoted cell is not closed, or goes on after its closing quote; "
            "close it, and double every quote inside it"
        )
    # A placeholder, because nothing at all would join a CR before the cell to an LF after it.
    outside = grammar.quoted_cell.sub(b"x", body)
    separator_bytes = outside.count(grammar.mark) + outside.count(b"\r") + outside.count(b"\n")
    text_byte_count = len(body) - body.count(b'"') - separator_bytes
    return Tally(line_ends(outside) + 1, text_byte_count, regular=False)


def refuse_long_lines(body: bytes, *, where: str, line_first: int) -> None:
    """Refuse a text with a line that no payment has; in strides, so that short lines cost nothing.

    Raises:
        InputError: a line is longer than `RECORD_BYTES_MAX`.
    """
    start = 0
    while len(body) - start > RECORD_BYTES_MAX:
        stop = start + RECORD_BYTES_MAX + 1
        end = body.rfind(b"\n", start, stop)
        if end < 0:
            end = body.rfind(b"\r", start, stop)
        if end < 0:
            line = line_first + line_ends(body[:start])
            raise InputError(f"{where} line {line}: longer than {RECORD_BYTES_MAX} bytes; correct the line")
        start = end + 1
