"""Split a header into words and look up the cue of each.

Case, accents, width and punctuation are ignored, and words are also found in compounds such as `sortcode` or
`Empfängerkonto`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from pipeline.headers.words import CURRENCIES, FORMS, VOWELS, WORDS, Cue


class Words(NamedTuple):
    """The words of a header with their cues."""

    cues: frozenset[Cue]
    order: tuple[Cue, ...]
    currency: str | None  # ISO 4217
    number: int  # the largest single digit, as in `Name 2`; 0 if none


Found = Cue | int | str  # the meaning of a word: a cue, a digit, or a currency by its ISO 4217 code


def fold(header: str) -> str:
    """Normalise a header for comparison by dropping case, accents, spaces and punctuation.

    >>> fold("Account-Number (UK)") == fold("account_number uk")
    True
    >>> fold("Empfänger") == fold("EMPFANGER")
    True
    """
    return "".join(filter(str.isalnum, _plain(header)))


_SPELLINGS = str.maketrans("øłđðåħıς", "olddahiσ", "") | str.maketrans({"æ": "ae", "œ": "oe", "ß": "ss"})  # noqa: RUF001
_ACCENTS = re.compile("[\u0300-\u036f]")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_TOKEN = re.compile(r"[^\W\d_]+|\d+|[£€]")
_NO_WORDS = re.compile(
    r"(?<=\w)(?:__[cr]$|_id(?=/)|[*:](?:innen|in|r)\b|/r\b)|(?<=\w\w\w)(?:[.·](?:es?|s))+(?!\w)"
    r"|(?<=\w{4})/-?(?:innen|in|as?|os?|es?|ne|rice|k[ay]|czk[ai])\b"
)
"""Endings of Salesforce's own fields, and of words for people of every gender."""
BRACKETS = re.compile(r"[(\[{][^)\]}]*[)\]}]?")
_NUMBERING = re.compile(r"^\s*[A-Za-z][.)]\s")
_PHRASE_WORDS_MAX = 5
_PIECE_LENGTH_MIN = 3
_ABBREVIATION_LENGTH_MIN = 4
_PARTS = {Cue.GIVEN, Cue.MIDDLE, Cue.FAMILY, Cue.INITIALS}
_COMPOUND_LENGTH_MAX, _CHARS_MAX = 100, 1_000
_CLIPPED = re.compile("[a-z](?:name?|naam|navn|namn)")
"""Clipped words such as `nname`, not found in compounds: `Kundenname` has `Kunden` and `name`."""
_SUFFIXES = ("no", "nr", "id")  # short words that may end a compound, as in `accountno`
_ENDINGS = ("s", "ns", "ens", "es", "n", "en", "a", "in")
_STEM_LENGTH_MIN = 5
"""Minimum length of the rest after removing a non-English ending, so that `an` does not become `a`."""
_PEOPLE_LENGTH_MIN = 6
_HEADS = {Cue.PERSON, Cue.PARTY, Cue.SUPPLIER, Cue.EMPLOYER, Cue.PARENT, Cue.OTHER_PERSON, Cue.OURS}
_PEOPLE = _HEADS | {Cue.THEIRS, Cue.RELATIVE, Cue.USER, Cue.AGENCY}


def _plain(text: str) -> str:
    """Return the text in lower case, without full-width forms and accents."""
    if text.isascii():
        return text.lower()
    return _simplest(_undamaged(text))


def _simplest(text: str) -> str:
    """Return undamaged text in lower case, without accents."""
    if text.isascii():
        return text.lower()
    folded = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold().translate(_SPELLINGS)))
    if folded.isascii():
        return folded
    return "".join(letter for letter in folded if not unicodedata.combining(letter))


def _undamaged(text: str) -> str:
    """Return the text in one form of Unicode, with UTF-8 that was read as cp1252, as `RazÃ³n`, undone."""
    if len(text) > _CHARS_MAX:
        return ""  # not a header; to normalise thousands of accents takes minutes
    with suppress(UnicodeError):
        text = text.encode("cp1252").decode()
    return unicodedata.normalize("NFKC", text)


def tokens_of(text: str) -> list[str]:
    """Return the words and numbers of a text, normalised for comparison."""
    return _tokens(_undamaged(text))


def _tokens(text: str) -> list[str]:
    # Apostrophes join words: `payee's` and `d'ordre` are looked up in both spellings.
    words = _TOKEN.findall(_NO_WORDS.sub("", text))
    return [_simplest(part) for token in words for part in _humps_apart(token)]


def _humps_apart(token: str) -> Sequence[str]:
    """Split `camelCase` and `IBANNumber` into words; other tokens stay one word."""
    if token[1:] == token[1:].lower() or token.removesuffix("s").isupper():
        return (token,)
    begins = [
        index
        for index in range(1, len(token))
        if token[index].isupper()
        and (
            token[index - 1].islower()
            or (token[index - 1].isupper() and token[index + 1 : index + 2].islower())
        )
    ]
    return [token[begin:end] for begin, end in pairwise([0, *begins, len(token)])]


@cache
def _lexicon() -> dict[tuple[str, ...], Cue]:
    """Tokens of each word or phrase -> its cue; the first cue listed for a word counts."""
    lexicon: dict[tuple[str, ...], Cue] = {}
    for cue, words in WORDS.items():
        for word in words:
            for tokens in _spelled(word):
                if tokens:
                    lexicon.setdefault(tokens, cue)
    return lexicon


def _spelled(word: str) -> Collection[tuple[str, ...]]:
    """Return the tokens of a word or phrase, with and without umlauts."""
    low = word.lower()
    is_plain = word in (low, low.title()) and word.replace(" ", "").isalpha()
    if is_plain and word.isascii():  # the usual case
        return (tuple(low.split()),)
    spellings = {word, word.casefold().translate(_UMLAUTS)}
    if is_plain:
        return {tuple(_simplest(spelling).split()) for spelling in spellings}
    return {tuple(_tokens(spelling)) for spelling in spellings}


@cache
def _compounds() -> dict[str, Cue]:
    """Return the words of `_lexicon` without spaces, for headers without spaces."""
    compounds: dict[str, Cue] = {}
    for tokens, cue in _lexicon().items():
        compounds.setdefault("".join(tokens), cue)
    return compounds


@cache
def words_with(cue: Cue) -> frozenset[str]:
    """Return the folded words and phrases of a cue."""
    return frozenset(word for word, its in _compounds().items() if its is cue)


def is_known(token: str) -> bool:
    """True if a word has a meaning, alone or in a compound."""
    return _looked_up([token]) is not None


def cue_of(token: str) -> Found | None:
    """Return the cue of a single word."""
    return _found([token])


def is_ours(header: str) -> bool:
    """True if any word of a header marks it as ours."""
    return not set(tokens_of(header)).isdisjoint(words_with(Cue.OURS))


def words_of(header: str) -> Words | None:
    """Return the words of a header; None if one is unknown."""
    if tuple(tokens_of(header)[:2]) not in _lexicon():  # `F. Name` has no numbering
        header = _NUMBERING.sub("", header)
    outside = _looked_up(tokens_of(BRACKETS.sub(" ", header)))
    if outside is None:
        return None
    inside: list[Found] = []
    for bracket in BRACKETS.findall(header):
        # Text in brackets may have unknown words; only known ones count.
        inside += _looked_up(tokens_of(bracket)) or [
            found for token in tokens_of(bracket) for found in _looked_up([token]) or ()
        ]
    # A digit in brackets does not count: it is a length, or part of a legend. A side or a bank in
    # brackets does not count, as in `Name (from the bank statement)`, unless they hold only a side,
    # or name kinds of banks, as in `Name (Bank or Building Society)`.
    is_only = set(inside) <= {Cue.OURS} or inside.count(Cue.BANK) > 1
    aside = () if is_only else (Cue.OURS, Cue.BANK)
    kept = [found for found in inside if not isinstance(found, int) and found not in aside]
    return _counted([*outside, *kept])


def cues_of(header: str) -> frozenset[Cue]:
    """Return the cues of a header; none if a word is unknown."""
    words = words_of(header)
    return frozenset() if words is None else words.cues


def words_in_one_piece(folded: str) -> Words | None:
    """Return the words of a header that is written without spaces."""
    pieces = _segmented(folded)
    return None if pieces is None else _counted(pieces)


def known_and_unknown(header: str) -> tuple[str, frozenset[str]]:
    """Return a header without its unknown words, and those words.

    >>> known_and_unknown("Zorblex sort code") == ("sort code", {"zorblex"})
    True
    """
    pieces = list(_pieces(tokens_of(header)))
    known = [word for words, found in pieces if found is not None for word in words]
    return " ".join(known), frozenset(words[0] for words, found in pieces if found is None)


def _looked_up(tokens: Sequence[str]) -> list[Found] | None:
    """Return the meaning of each word: a cue, a number or a currency; None if one is unknown."""
    every: list[Found] = []
    for _, found in _pieces(tokens):
        if found is None:
            return None
        every += found
    return every


def _pieces(tokens: Sequence[str]) -> Iterator[tuple[Sequence[str], list[Found] | None]]:
    """Yield the words and phrases of a header, longest first, with their meanings."""
    index = 0
    while index < len(tokens):
        for length in range(min(_PHRASE_WORDS_MAX, len(tokens) - index), 0, -1):
            cue = _found(tokens[index : index + length])
            if cue is not None:
                yield tokens[index : index + length], [cue]
                break
        else:
            length = 1
            token = tokens[index]
            yield [token], _segmented(token) or _abbreviations().get(token) or _person(token)
        index += length


def _found(tokens: Sequence[str]) -> Found | None:
    cue: Found | None = _lexicon().get(tuple(tokens))
    if cue is None and len(tokens) == 1:
        [token] = tokens
        if token in _CURRENCY_WORDS:
            return _CURRENCY_WORDS[token]
        if token.isdecimal():
            return int(token) if len(token) == 1 else Cue.FILLER
        cue = _without_ending(token)
    return cue


def _without_ending(token: str) -> Cue | None:
    """Return the cue of a word in the genitive or plural, such as `mottagarens` or `saajan`."""
    for ending in filter(token.endswith, _ENDINGS):
        stem = token.removesuffix(ending)
        is_long = ending == "s" or len(stem) >= _STEM_LENGTH_MIN
        if is_long and (cue := _lexicon().get((stem,))) is not None:
            return cue
    return None


@cache
def _abbreviations() -> dict[str, list[Found]]:
    """Return beginnings that only the words for one part of a name have, such as `nachn` and `pren`."""
    cues: dict[str, set[Cue]] = {}
    for [word, *others], cue in _lexicon().items():
        for length in () if others else range(_ABBREVIATION_LENGTH_MIN, len(word)):
            cues.setdefault(word[:length], set()).add(cue)
    return {text: [*its] for text, its in cues.items() if len(its) == 1 and its <= _PARTS}


def stem(word: str) -> str:
    """Return a word without a vowel at its end."""
    return word[:-1] if word[-1:] in VOWELS else word


@cache
def _people() -> dict[str, Cue | None]:
    """Return the stems of words for people; None for one of several meanings."""
    stems: dict[str, Cue | None] = {}
    for [word, *others], cue in _lexicon().items():
        if cue in _PEOPLE and not others and len(bare := stem(word)) >= _PEOPLE_LENGTH_MIN:
            stems[bare] = cue if stems.get(bare, cue) is cue else None
    return stems


def _person(token: str) -> list[Found] | None:
    """Return the cue of a word for people in another form, or behind another word: `Tagespflegeperson`."""
    length = len(token)
    for begin in (0, *range(_PIECE_LENGTH_MIN, length - _PEOPLE_LENGTH_MIN + 1)):
        for end in range(length, max(begin + _PEOPLE_LENGTH_MIN, length - 3) - 1, -1):
            cue = _people().get(token[begin:end])
            if cue is not None and (begin == 0 or cue in _HEADS) and re.fullmatch(FORMS, token[end:]):
                return [cue]
    return None


def _segmented(text: str) -> list[Found] | None:
    """Split a compound into as few words as possible; None if one is unknown."""
    if len(text) > _COMPOUND_LENGTH_MAX:
        return None
    best: list[list[Found] | None] = [[]]
    for end in range(1, len(text) + 1):
        candidates = []
        for start in range(end):
            before = best[start]
            found = _piece(text, start, end) if before is not None else None
            if before is not None and found is not None:
                candidates.append([*before, found])
        best.append(min(candidates, key=len, default=None))
    return best[-1] or None


def _piece(text: str, start: int, end: int) -> Found | None:
    """Return a word in a compound if it is too long for chance, or a short word that may end one."""
    piece = text[start:end]
    is_suffix = start > 0 and end == len(text) and (piece in _SUFFIXES or piece.isdecimal())
    if (len(piece) < _PIECE_LENGTH_MIN and not is_suffix) or (start > 0 and _CLIPPED.fullmatch(piece)):
        return None
    is_whole = start == 0 and end == len(text)
    found = _compounds().get(piece) or (None if is_whole else _found([piece]))
    return None if found is Cue.FILLER else found


_CURRENCY_WORDS = {_plain(word): code for word, code in CURRENCIES.items()}


def _counted(found: Sequence[Found]) -> Words:
    cues = tuple(one for one in found if isinstance(one, Cue))
    digits = [one for one in found if isinstance(one, int)]
    currencies = {one for one in found if isinstance(one, str) and not isinstance(one, Cue)}
    currency = min(currencies) if len(currencies) == 1 else None
    return Words(frozenset(cues), cues, currency, max(digits, default=0))
