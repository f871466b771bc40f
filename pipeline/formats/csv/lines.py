"""Read a delimited text a little at a time: a line that no payment has is found before it is in memory."""

import codecs
import io
from collections.abc import Iterator
from typing import IO

from pipeline.formats.csv.dialect import codec_of, refuse_unsaid_utf_16
from pipeline.formats.csv.tally import line_ends, long_line, long_line_at

_PIECE_BYTES = 256 * 1024
"""Small, so that the memory of one is taken again for the next."""


def read_lines(file: IO[bytes], *, encoding: str | None, where: str) -> bytes:
    """Read a delimited text, up to its end or up to a line that no payment has.

    Args:
        file: Open for reading, at its start.
        encoding: As the user said it; None means UTF-8.
        where: The file, for messages.

    Returns:
        The bytes of the file as they are.

    Raises:
        UsageError: the encoding is not supported.
        InputError: a line is longer than `RECORD_BYTES_MAX`; or the text is UTF-16, and nobody said so.
    """
    read = io.BytesIO()
    rest, done_bytes = b"", 0
    for piece, lines in _pieces(file, encoding, where):
        text = rest + lines
        start = long_line_at(text)
        if start is not None:
            file.seek(0)
            line = _line_ends_before(done_bytes + start, _pieces(file, encoding, where)) + 1
            raise long_line(line, where)
        # What is left after the last line end is looked at again, with what follows it.
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        done_bytes, rest = done_bytes + end, text[end:]
        read.write(piece)
    return read.getvalue()  # without a copy


def _line_ends_before(byte_count: int, pieces: Iterator[tuple[bytes, bytes]]) -> int:
    """How many lines end in the first bytes; they are counted for a message alone, as counting takes time."""
    count, before = 0, b""
    for _, lines in pieces:
        text = lines[:byte_count]
        count += line_ends(text) - (before.endswith(b"\r") and text.startswith(b"\n"))
        byte_count, before = byte_count - len(text), text
        if not byte_count:
            break
    return count


def _pieces(file: IO[bytes], encoding: str | None, where: str) -> Iterator[tuple[bytes, bytes]]:
    """The bytes of the file as they are, and as text whose line ends can be found.

    That is UTF-8 for UTF-16, where half a character can look like a line end.
    """
    decoder = None
    if encoding is not None and (codec := codec_of(encoding)).startswith("utf-16"):
        # What is no character is told when all is read.
        decoder = codecs.getincrementaldecoder(codec)("replace")
    while piece := file.read(_PIECE_BYTES):
        if encoding is None and file.tell() == len(piece):
            refuse_unsaid_utf_16(piece, where=where)
        yield piece, piece if decoder is None else decoder.decode(piece).encode(errors="replace")
