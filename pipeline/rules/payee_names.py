"""Clean payees' names of meaningless characters, find damaged ones, and recognise a sent name in a report.

A bank compares a name with its record, so no letter is changed; formulas are made harmless only in files for
people (reports/safe_csv.py). Sources: API reference, "NameVerificationRequest": the name as entered by the
payment initiator; RFC 5892, appendix A: joiners that are part of the spelling.
"""

from typing import NamedTuple
from unicodedata import normalize

import polars as pl

from pipeline.rules.placeholders import are_no_names
from pipeline.rules.selected_values import noted, replaced

UNWRAPPED, UNMARKED = "unwrapped", "unmarked"  # what was removed from a name before sending it, or both

_DIRECTIONAL = r"\x{200E}\x{200F}\x{61C}"
_HYPHEN_OR_ORDER = r"[\x{AD}\x{FEFF}]"  # a soft hyphen and a byte order mark, which never have a meaning
_AT_ENDS = rf"^[\s{_DIRECTIONAL}]+|[\s{_DIRECTIONAL}]+$"
_MARKED = rf"{_HYPHEN_OR_ORDER}|^\s*[{_DIRECTIONAL}]|[{_DIRECTIONAL}]\s*$"
_COVERED = rf"{_HYPHEN_OR_ORDER}|^[\s{_DIRECTIONAL}=\x{{FF1D}}\x22\x27]|[\s{_DIRECTIONAL}]$|^$"
"""Names with marks, wrappers, only blanks, or blanks at the ends."""
_WRAPPED = r'^[=\x{FF1D}]?\s*"((?:[^"]|"")*)"$|^\x27([^\x27]+)\x27$'

_JOINER = r"[\x{200C}\x{200D}]"
_SELECTORS = r"\x{FE00}-\x{FE0F}\x{E0100}-\x{E01EF}\x{180B}-\x{180D}\x{180F}"
_NOT_ALONE = r"[^\p{Latin}\p{Greek}\p{Cyrillic}]"
"""Letters that may join or vary; next to others, a joiner or variation selector is just hidden."""
_JOINS = rf"[[\p{{L}}\p{{M}}\p{{So}}\p{{Sk}}]&&{_NOT_ALONE}]"
_ENDS_JOINED = rf"[\p{{M}}&&{_NOT_ALONE}&&[^\p{{Inherited}}]]"
"""The sign that removes a consonant's vowel; in Indic scripts a word may end with it and a joiner."""
_VARIES = rf"[[\p{{L}}\p{{M}}\p{{S}}\p{{Nd}}#*]&&{_NOT_ALONE}]"

ANY_INVISIBLE = r"[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]"
"""Characters that are invisible, change the reading direction, or break lines in some programs."""
INVISIBLE = "|".join(
    (
        rf"[{ANY_INVISIBLE}--[\x{{200C}}\x{{200D}}{_SELECTORS}]]",
        rf"(?:^|[^{_JOINS}]){_JOINER}",
        rf"[{_JOINS}--{_ENDS_JOINED}]{_JOINER}(?:[^{_JOINS}]|$)",
        rf"(?:^|[^{_VARIES}])[{_SELECTORS}]",
    )
)
"""The same, except where they are part of the spelling."""
NOT_LATIN = r"[\p{L}&&[^\p{Latin}\p{Common}]]"
"""A letter outside the Latin set of VoP messages, which banks need not support (EPC, FAQ on VoP)."""

# A function, a cell, a range, a sheet or a table, concatenated texts, or another program.
_REFERENCE = r"\$?[A-Z]{1,3}\$?[0-9]{1,7}"
LOST_FORMULA = (
    r"^[=\x{FF1D}][\s(+\-@]*(?i:"
    rf"[\p{{L}}_][\p{{L}}0-9._]*\(|{_REFERENCE}\s*(?:$|[&+*/^=<>,;:!%-])|"
    rf"(?:'[^']*'|[\p{{L}}0-9._]+)!(?:{_REFERENCE}|#)|[\p{{L}}0-9_]*\[|R[0-9]*C[0-9]*$|#|\")"
    r"|^[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}].*\|.*!"
)
"""A formula that a program wrote instead of its value, so that the name is lost."""
NO_NAME = (
    r"^[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]\P{L}*$|^[(+]*[0-9](?:[ ()./-]*[0-9]){6,}$"
    r"|^[0-9]+[.,][0-9]+$|^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+$"
    r"|^[^\s@]+@[^\s@]+\.[^\s@]+$|^(?i:https?)://\S+$|^[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){11,30}$"
)
"""A sign without any letter, the digits of a telephone or account number, a fraction, a workbook's time, an
address on the internet, or an IBAN; a few digits may be a name.
"""
TRUTH_VALUES = ("TRUE", "FALSE", "WAHR", "FALSCH", "VRAI")  # what a spreadsheet makes of such words

_ENTITY = (
    r"&(?:amp|lt|gt|quot|apos|nbsp|szlig|oslash|[A-Za-z](?:acute|grave|uml|circ|tilde|ring|cedil)"
    r"|#[0-9]{1,6}|#x[0-9A-Fa-f]{1,5});"
)
_OF_CP1252 = r"\x{80}-\x{BF}€\x{201A}ƒ„…†‡\x{2C6}‰Š\x{2039}ŒŽ•\x{2DC}™š\x{203A}œžŸ"
_LETTER, _SMALL = "[A-Za-zÀ-ÖØ-öø-ž]", "[a-zß-öø-ÿ]"
MISREAD = (
    rf"{_LETTER}[¡-¬¯±-³¶\xb8-¿\xd7]{_LETTER}|{_SMALL}[¹³¿±¶]|(?:^|[\s-])[¡£¥¦¬¯ª]{_SMALL}"
    rf"|{_LETTER}{{3}}õ(?:[\s-]|$)|ñsk|œ{_SMALL}*sk[aie]|(?i:sz|cs|zs|gy){_SMALL}*[õû]|[õû]{_SMALL}*(?:sz|cs|zs|gy)"
    rf"|[áéíóú].*[^Vv][õÕ](?:[^eE]|$)|(?:^|[^Vv])[õÕ][^eE].*[áéíóú]"
    rf"|[øìùèòï]{_SMALL}*[áíýžš]|[áíýžš]{_SMALL}*[øìùèòï]|þ{_SMALL}*[ãâî]|[ãâî]{_SMALL}*þ"
)
"""Polish, Hungarian, Czech or Romanian letters, read as those of Western Europe."""
DAMAGED = (
    rf"^b['\x22].+['\x22]$|^\{{\s*\x22|\p{{L}}\?\p{{L}}|{_ENTITY}|Ã[{_OF_CP1252}\x{{2013}}\x{{2014}}\x{{2018}}\x{{2019}}“”]"
    rf"|\\['\x22]|\\u[0-9A-Fa-f]{{4}}|</?[A-Za-z]+[ />]|[ÂÄÅÐÑ][[{_OF_CP1252}]--\p{{L}}]|â€|{MISREAD}"
    r"|[%=][0-9A-F]{2}|\+A[0-9A-Za-z/]{2}-"
)
"""Damage by other programs: a question mark, HTML, JSON or Python code, escapes, misread characters."""


class CleanNames(NamedTuple):
    """A column of names, cleaned."""

    text: pl.Series  # as sent; null if blank or a placeholder
    done: pl.Series  # what was removed: `UNWRAPPED`, `UNMARKED`, both in one text, or null


def clean_names(written: pl.Series) -> CleanNames:
    """Normalise names (NFC) and remove blanks at the ends and meaningless characters."""
    # As many bytes as characters of the stripped text: ASCII only, without surrounding white space.
    is_tidy = (written.str.len_bytes() == written.str.strip_chars().str.len_chars()) & (written != "")
    is_odd = ~is_tidy | written.str.contains("^[=\"']")
    is_covered = noted(written, where=is_odd, by=lambda some: some.str.contains(_COVERED), kind=pl.Boolean)
    bare = replaced(
        written, where=is_covered, by=lambda some: _without_marks(_unwrapped(_without_marks(some)))
    )
    text = replaced(bare, where=is_odd, by=lambda some: some.str.normalize("NFC").replace("", None))
    is_none = are_no_names(text)
    text = text.set(is_none, None) if is_none.any() else text
    return CleanNames(text, noted(written, where=is_covered, by=_done))


def _without_marks(names: pl.Series) -> pl.Series:
    return names.str.replace_all(_HYPHEN_OR_ORDER, "").str.replace_all(_AT_ENDS, "").str.strip_chars()


def _unwrapped(names: pl.Series) -> pl.Series:
    return replaced(
        names,
        where=names.str.contains(_WRAPPED),
        by=lambda some: some.str.replace(_WRAPPED, "$1$2").str.replace_all('""', '"', literal=True),
    )


def _done(names: pl.Series) -> pl.Series:
    bare = _without_marks(names)
    is_marked = names.str.contains(_MARKED) | _unwrapped(bare).str.contains(_MARKED)
    notes = [
        pl.when(bare.str.contains(_WRAPPED)).then(pl.lit(UNWRAPPED)),
        pl.when(is_marked).then(pl.lit(UNMARKED)),
    ]
    noted = pl.select(pl.concat_str(notes, separator=" ", ignore_nulls=True)).to_series()
    return noted.replace("", None)


CUT_CHARS_MIN = 30  # length of a name that a bank may have cut; fields hold 35, 70 or 140 characters
_LETTERS = str.maketrans({
    "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "\u0131": "i",
})  # fmt: skip
_DIGRAPHS = (("ae", "a"), ("oe", "o"), ("ue", "u"))


def is_name_as_sent(sent: str, reported: str) -> bool:
    """True if a bank's spelling may be the name that was sent.

    Case, accents, punctuation, spelled-out umlauts, a cut end and a transcription to Latin are ignored.

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
