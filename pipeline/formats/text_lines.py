"""The lines of a text and their byte offsets; names in Bacs characters."""

import codecs
import re
import unicodedata
from collections.abc import Iterator

import polars as pl

from pipeline.formats.encodings import marked_encoding

END_OF_FILE = "\x1a"  # the end-of-file byte that DOS programs write after the last line

_BLOCK_LENGTH = 64 * 1024**2

IS_BLANK = pl.col("text").str.strip_chars(f" {END_OF_FILE}") == ""


def start_of(head: bytes) -> str:
    """Return the first characters of a text; only ASCII ones are right in every encoding.

    >>> start_of("UHL1".encode("utf-16")), start_of(b"UHL1")
    ('UHL1', 'UHL1')
    """
    if (encoding := marked_encoding(head)) is not None:
        return head.decode(encoding, errors="replace").removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    return head.removeprefix(codecs.BOM_UTF8).decode("latin-1")


def text_lines(
    text: str, *, start: int = 0, one_byte_each: bool = False, block_length: int = _BLOCK_LENGTH
) -> pl.DataFrame:
    """Split a text into lines, which end with LF or CR LF.

    The columns are `line` (from 1), `start` and `end` (bytes of the file, with the line end) and `text`
    (without it). The argument `start` is the text's offset in its file, which is UTF-8 unless
    `one_byte_each`.
    """
    blocks = (pl.Series("text", [block.removesuffix("\n")]) for block in _blocks(text, block_length))
    pieces = [block.str.split("\n").explode() for block in blocks]
    texts = pl.concat(pieces) if pieces else pl.Series("text", [], dtype=pl.String)
    length = pl.col("text").str.len_chars() if one_byte_each else pl.col("text").str.len_bytes()
    has_end = (pl.int_range(pl.len()) < pl.len() - 1) | pl.lit(text.endswith("\n"))
    end = start + (length.cast(pl.Int64) + has_end.cast(pl.Int64)).cum_sum()
    return pl.DataFrame({"text": texts}).select(
        pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).alias("line"),
        end.shift(1, fill_value=start).alias("start"),
        end.alias("end"),
        pl.col("text").str.strip_suffix("\r"),
    )


def _blocks(text: str, block_length: int) -> Iterator[str]:
    """Yield the text in parts that end with a line: a cell of a frame cannot exceed 4 GiB."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + block_length) + 1 or len(text)
        yield text[start:end]
        start = end


_LETTERS = str.maketrans({"Æ": "AE", "Œ": "OE", "Ø": "O", "Ł": "L", "Đ": "D", "Ð": "D", "Þ": "TH", "ẞ": "SS"})
"""Capitals that Unicode does not decompose; `upper` turns ß into SS."""
_NOT_OF_BACS = re.compile(r"[^A-Z0-9.&/ -]")
_BLANKS = re.compile(r" +")


def in_bacs_characters(name: str) -> str | None:
    """Return a name in capitals, without accents, with blanks for other characters.

    None if Bacs lacks one of its letters or digits, because the name would change.

    >>> in_bacs_characters("Zoë O'Brien & Søn (Leeds) Ltd."), in_bacs_characters("Λ & Σ")
    ('ZOE O BRIEN & SON LEEDS LTD.', None)
    """
    capitals = unicodedata.normalize("NFKD", name.upper().translate(_LETTERS))
    without_accents = "".join(character for character in capitals if not unicodedata.combining(character))
    if any(mark.isalnum() for mark in _NOT_OF_BACS.findall(without_accents)):
        return None
    text = _BLANKS.sub(" ", _NOT_OF_BACS.sub(" ", without_accents)).strip()
    return text or None
