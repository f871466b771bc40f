"""Cut a line into cells, at separators or by widths."""

import re
from collections.abc import Sequence

_QUOTED = re.compile(r'"(?:[^"]|"")*"')

Span = tuple[int, int]
"""A range of characters: the first, and the one past the last."""


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
