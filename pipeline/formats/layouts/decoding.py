"""The text of a file in a bank's layout, and how its characters stand in the bytes."""

import codecs
from typing import NamedTuple

from pipeline.errors import Advice, InputError, UsageError
from pipeline.formats.text_lines import is_utf_16

ENCODINGS = ("utf-8", "cp1252", "latin-1")
"""What banks take. A byte order mark is kept where it is, and is no character."""

_UTF_8 = "utf-8"
_CODECS = {"utf-8": _UTF_8, "utf-8-sig": _UTF_8, "cp1252": "cp1252", "iso8859-1": "latin-1"}


class DecodedText(NamedTuple):
    """A text, and where it stands in its file."""

    text: str
    start: int
    """The byte of its first character."""
    encoding: str
    """One of `ENCODINGS`."""

    @property
    def one_byte_each(self) -> bool:
        """Whether every character takes a byte."""
        return self.encoding != _UTF_8


def decoded(data: bytes, *, encoding: str | None, where: str) -> DecodedText:
    """The text of a file; never lossy.

    Args:
        data: The bytes of the file.
        encoding: A name of one of `ENCODINGS`; None means UTF-8.
        where: The file, for messages.

    Raises:
        UsageError: no bank takes this encoding.
        InputError: the bytes are not text in it.
    """
    used = encoding_of(encoding)
    if is_utf_16(data):
        raise InputError(f"{where}: the text is UTF-16, which no bank takes; export it as UTF-8")
    start = len(codecs.BOM_UTF8) if used == _UTF_8 and data.startswith(codecs.BOM_UTF8) else 0
    try:
        return DecodedText(str(memoryview(data)[start:], used), start, used)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, start + error.start) + 1
        raise InputError(
            f"{where} line {line}: a byte that is not {used}",
            advice=Advice.CHOOSE_ENCODING,
            choices=ENCODINGS,
        ) from None


def encoding_of(name: str | None) -> str:
    """One of `ENCODINGS`, by one of its names; UTF-8 for None.

    Raises:
        UsageError: it is none of them.
    """
    try:
        return _CODECS[codecs.lookup(name or _UTF_8).name]
    except (LookupError, ValueError):
        raise UsageError(
            f"{name}: not supported for a bank's layout",
            option="--encoding",
            advice=f"choose one of {', '.join(ENCODINGS)}",
        ) from None
