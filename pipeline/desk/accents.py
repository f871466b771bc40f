"""Search without accents: `Solene` finds Solène, and `strasse` finds Straße."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

_MARKS = "".join(map(chr, (*range(0x300, 0x305), *range(0x306, 0x30D), 0x323, 0x326, 0x327, 0x328, 0x331)))
"""Combining marks used with Latin letters."""
_ACCENTED = (*range(0xDF, 0x250), *range(0x1E00, 0x1F00))
_STROKED = {"ø": "o", "đ": "d", "ð": "d", "ħ": "h", "\u0131": "i", "ł": "l", "ŧ": "t"}
"""Letters without a Unicode decomposition -> the letters that people type instead."""
_TWO = {"ß": "ss", "æ": "ae", "œ": "oe"}
"""Single letters that people type as two."""


def without_accents(text: str) -> str:
    """A text in lower case, without accents on Latin letters, in any Unicode form."""
    letters = unicodedata.normalize("NFC", text.lower())
    return "".join(_TWO.get(one) or _plain(one) for one in letters if one not in _MARKS)


def _plain(letter: str) -> str:
    """A Latin letter without its accents; other letters unchanged."""
    first = unicodedata.normalize("NFD", letter)[0]
    first = _STROKED.get(first, first)
    return first if first.isascii() else letter


def pattern_of(plain: str, between: str = "") -> str:
    """Return a regular expression for a text, ignoring case and accents; `between` joins its characters."""
    pieces = [_with_any_accent(one) if one.isalpha() else re.escape(one) for one in plain]
    whole = between.join(pieces)
    for letter, letters in _TWO.items():
        two = between.join(map(_with_any_accent, letters))
        whole = whole.replace(two, f"(?:{two}|{letter}[{_MARKS}]*)")
    return f"(?i){whole}"


def _with_any_accent(letter: str) -> str:
    accented = _accented().get(letter, "")
    return f"[{letter}{accented}][{_MARKS}]*" if accented else re.escape(letter)


class Plainer:
    """Removes accents from long texts quickly: only from letters that the search text contains."""

    def __init__(self, plain: str) -> None:
        """Take the search text, as `without_accents` returns it."""
        self._pairs = list(_pairs(plain))

    def __call__(self, text: str) -> str:
        """Fold a text to lower case, so that the search text can be found in it."""
        text = text.lower()
        if text.isascii():
            return text
        for accented, plain in self._pairs:
            text = text.replace(accented, plain)
        return text


def _pairs(plain: str) -> Iterator[tuple[str, str]]:
    for letter in dict.fromkeys(plain):
        yield from ((one, letter) for one in _accented().get(letter, ""))
    yield from ((letter, two) for letter, two in _TWO.items() if two in plain)
    yield from ((mark, "") for mark in _MARKS)


@cache
def _accented() -> dict[str, str]:
    """Small letter -> the same with an accent."""
    found: dict[str, str] = {}
    for code in _ACCENTED:
        one = chr(code)
        plain = without_accents(one)
        if one.islower() and len(plain) == 1 and plain.isascii() and plain != one:
            found[plain] = found.get(plain, "") + one
    return found
