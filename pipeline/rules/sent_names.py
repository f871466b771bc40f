"""Recognise a sent name in a report: banks rewrite letters that their networks do not carry."""

from unicodedata import normalize

CUT_CHARS_MIN = 30
"""Minimum length of a name that a bank may have cut; its fields hold 35, 70 or 140 characters."""
_LETTERS = str.maketrans({
    "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "\u0131": "i",
})  # fmt: skip
_DIGRAPHS = (("ae", "a"), ("oe", "o"), ("ue", "u"))


def is_name_as_sent(sent: str, reported: str) -> bool:
    """True if a bank's spelling may be the name that was sent.

    Case, accents, punctuation, spelled-out umlauts and a cut end are ignored. A name in letters that no table
    here rewrites cannot be compared with a Latin one, so it counts as the same.

    >>> is_name_as_sent("Jürgen Müller & Co.", "JUERGEN MUELLER + CO")
    True
    >>> is_name_as_sent("Jürgen Müller", "Ann Miller")
    False
    """
    ours, theirs = _folded(sent), _folded(reported)
    if theirs.isascii() and not ours.isascii():
        return True
    shorter, longer = sorted((ours, theirs), key=len)
    return shorter == longer or (len(shorter) >= CUT_CHARS_MIN and longer.startswith(shorter))


def _folded(name: str) -> str:
    plain = normalize("NFKD", name.casefold().translate(_LETTERS))
    letters = "".join(character for character in plain if character.isalnum())
    for written_out, letter in _DIGRAPHS:
        letters = letters.replace(written_out, letter)
    return letters
