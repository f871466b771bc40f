"""Read a delimited text in pieces, so that an oversized row is found before it is in memory."""

import codecs
import io
from collections.abc import Iterator, Mapping
from typing import IO

from pipeline.errors import InputError
from pipeline.files.expansion import RECORD_BYTES_MAX
from pipeline.formats.csv.dialect import find_layout
from pipeline.formats.csv.tally import line_ends, long_line, long_line_at, unclosed_row, whole_rows
from pipeline.formats.encodings import codec_of, keeps_ascii, marked_encoding

_PIECE_BYTES = 256 * 1024
"""Small, so that the memory of one piece is reused for the next."""
_HEAD_BYTES = 2 * RECORD_BYTES_MAX
"""Enough for the lines that `find_layout` searches for the header line."""


def read_lines(
    file: IO[bytes], *, encoding: str | None, where: str, mapping: Mapping[str, str] | None = None
) -> bytes:
    """Return the bytes of a delimited text, up to its end or an oversized line or row.

    The text is UTF-8 unless the user or a mark states an encoding. The mapping, from `--map`, helps to find
    the header line.

    Raises:
        UsageError: the encoding is not supported.
        InputError: a line, or a row of several lines, is longer than `RECORD_BYTES_MAX`, or a quoted cell is
        not closed.
    """
    encoding = encoding or marked_encoding(file.read(4))
    file.seek(0)
    read = io.BytesIO()
    rest, done_bytes = b"", 0
    head: bytes | None = None
    body: tuple[str, int] | None = None
    for piece, lines in _pieces(file, encoding):
        text = rest + lines

        def line_at(start: int, before: int = done_bytes) -> int:
            file.seek(0)
            return _line_ends_before(before + start, _pieces(file, encoding)) + 1

        if (start := long_line_at(text)) is not None:
            raise long_line(line_at(start), where)
        head = lines[:_HEAD_BYTES] if head is None else head
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        if len(text) > RECORD_BYTES_MAX and b'"' in text:
            body = body or _body_of(head, encoding, mapping, where)
            delimiter, body_at = body
            end = whole_rows(text, max(0, body_at - done_bytes), delimiter=delimiter) if delimiter else end
            if len(text) - end > RECORD_BYTES_MAX:
                raise unclosed_row(line_at(end), where)
        # The rest after the last row is searched again, together with the next piece.
        done_bytes, rest = done_bytes + end, text[end:]
        read.write(piece)
    return read.getvalue()  # without a copy


def _body_of(
    head: bytes, encoding: str | None, mapping: Mapping[str, str] | None, where: str
) -> tuple[str, int]:
    """Return delimiter and offset of the first row; no delimiter without headers, reported later."""
    codec = "utf-8" if encoding is None or not keeps_ascii(codec_of(encoding)) else codec_of(encoding)
    mark = codecs.BOM_UTF8 if head.startswith(codecs.BOM_UTF8) else b""
    text = head.removeprefix(mark).decode(codec, errors="ignore").encode()
    try:
        layout = find_layout(text, mapping, where=where)
    except InputError:
        return "", 0
    above = text[: layout.body_at].decode(errors="ignore")
    return layout.delimiter, len(mark) + len(above.encode(codec, errors="ignore"))


def _line_ends_before(byte_count: int, pieces: Iterator[tuple[bytes, bytes]]) -> int:
    """Return the number of line ends in the first bytes; counting takes time, so only messages need it."""
    count, before = 0, b""
    for _, lines in pieces:
        text = lines[:byte_count]
        count += line_ends(text) - (before.endswith(b"\r") and text.startswith(b"\n"))
        byte_count, before = byte_count - len(text), text
        if not byte_count:
            break
    return count


def _pieces(file: IO[bytes], encoding: str | None) -> Iterator[tuple[bytes, bytes]]:
    """Yield the bytes of the file, and also UTF-8 if bytes of its encoding can look like line ends."""
    decoder = None
    if encoding is not None and not keeps_ascii(codec := codec_of(encoding)):
        marked = marked_encoding(file.read(4))
        file.seek(0)
        # Without a mark, the UTF-16 decoder reads nothing. Invalid characters are reported at the end.
        codec = f"{codec}-le" if codec in ("utf-16", "utf-32") and marked is None else codec
        decoder = codecs.getincrementaldecoder(codec)("replace")
    while piece := file.read(_PIECE_BYTES):
        yield piece, piece if decoder is None else decoder.decode(piece).encode(errors="replace")
