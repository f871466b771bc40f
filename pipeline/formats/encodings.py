"""What can be known for certain of the encoding of a text."""

import codecs

from pipeline.formats.edits import Bytes

_CHUNK_BYTES = 64 * 1024


def not_utf_8_at(text: Bytes) -> int | None:
    """The first byte that is not UTF-8; None where all of the text is."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), _CHUNK_BYTES):
        stop = start + _CHUNK_BYTES
        # A character may be cut by the end of the chunk: the decoder keeps its first bytes.
        kept = len(decoder.getstate()[0])
        try:
            decoder.decode(text[start:stop], final=stop >= len(text))
        except UnicodeDecodeError as error:
            return start - kept + error.start
    return None


def has_utf_8_signs(text: Bytes) -> bool:
    """Whether a text is UTF-8 and has characters of several bytes, so that it is hardly anything else.

    >>> has_utf_8_signs("Zoë".encode()), has_utf_8_signs("Zoë".encode("latin-1")), has_utf_8_signs(b"Zoe")
    (True, False, False)
    """
    return not text[:].isascii() and not_utf_8_at(text) is None
