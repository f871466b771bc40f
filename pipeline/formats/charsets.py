"""Names in the few characters that Bacs has, and in the room that a field has for them."""

import re
import unicodedata

_LETTERS = str.maketrans({"Æ": "AE", "Œ": "OE", "Ø": "O", "Ł": "L", "Đ": "D", "Ð": "D", "Þ": "TH", "ẞ": "SS"})
"""Capitals that are no letter with an accent; ß becomes SS by itself."""
_NOT_OF_BACS = re.compile(r"[^A-Z0-9.&/ -]")
_BLANKS = re.compile(r" +")


def in_bacs_characters(name: str) -> str | None:
    """A name in capitals, without accents, other marks as blanks.

    Returns:
        None where a letter or digit of it has no place in Bacs: the name would be another one.

    >>> in_bacs_characters("Zoë O'Brien & Søn (Leeds) Ltd."), in_bacs_characters("Λ & Σ")
    ('ZOE O BRIEN & SON LEEDS LTD.', None)
    """
    capitals = unicodedata.normalize("NFKD", name.upper().translate(_LETTERS))
    without_accents = "".join(character for character in capitals if not unicodedata.combining(character))
    if any(mark.isalnum() for mark in _NOT_OF_BACS.findall(without_accents)):
        return None
    text = _BLANKS.sub(" ", _NOT_OF_BACS.sub(" ", without_accents)).strip()
    return text or None
