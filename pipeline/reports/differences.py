"""Show where a supplied name and the bank's name differ, by letters to mark and a sentence.

The responder has already decided. The marks show a person where to look, and sentences say the same for
readers who cannot see them. No name is cached here; callers may cache results while they hold the names.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher
from enum import Enum
from functools import cache
from typing import NamedTuple

from pipeline.wording import Sentence

ALIKE_MIN = 0.6  # words at least this similar (0 to 1) count as spellings of one word
QUOTED_MAX = 3  # maximum number of word pairs that a sentence quotes
COMPARED_MAX = 8  # maximum number of words that are compared, each with each, for other spellings

TITLES = frozenset({
    "mr", "mrs", "ms", "miss", "mx", "dr", "prof", "professor", "sir", "dame", "lord", "lady", "rev",
    "reverend", "herr", "frau", "mme", "mlle", "m",
})  # fmt: skip
COMPANY_SUFFIXES = frozenset({
    "ltd", "limited", "llp", "lp", "plc", "co", "company", "inc", "incorporated", "corp", "gmbh", "ag",
    "kg", "ug", "bv", "nv", "sa", "sas", "sarl", "sl", "srl", "spa", "oy", "ab", "as", "lda",
})  # fmt: skip


class Piece(NamedTuple):
    """A part of a name, marked or not."""

    text: str
    marked: bool


class Difference(NamedTuple):
    """Two names and where they differ."""

    supplied: tuple[Piece, ...]  # joined, the pieces are the supplied name
    matched: tuple[Piece, ...]  # joined, the pieces are the bank's name
    sentences: tuple[Sentence, ...]


class _Kind(Enum):
    TITLE = "title"
    SUFFIX = "company suffix"
    WORD = "word"


_MISSING = {_Kind.TITLE: "names.title_missing", _Kind.SUFFIX: "names.suffix_missing"}


class _Word(NamedTuple):
    start: int
    end: int
    text: str
    key: str  # without case, accents and punctuation; equal keys are the same word
    kind: _Kind


class _Pair(NamedTuple):
    supplied: _Word
    matched: _Word


_Span = tuple[int, int]  # a stretch of letters in a name: the first, and the one past the last

_Letters = tuple[str, ...]
_SameLetters = Callable[[_Letters, _Letters], Sequence[Match]]  # `_same_letters`, cached for two names


def difference(supplied: str, matched: str) -> Difference:
    """Compare two names word by word, then letter by letter.

    >>> [str(sentence) for sentence in difference("Averi Thornwood", "Mr Avery Thornwood").sentences]
    ['The bank has “Avery” for “Averi”.', 'The title “Mr” is missing.']
    """
    theirs, ours = _words(matched), _words(supplied)
    same_letters = cache(_same_letters)  # each pair is compared twice, for similarity and differences
    pairs, extra, missing = _paired(ours, theirs, same_letters)
    moved = _moved(pairs)
    marks_ours = [*map(_span, extra), *(_span(pair.supplied) for pair in moved)]
    marks_theirs = [*map(_span, missing), *(_span(pair.matched) for pair in moved)]
    for pair in pairs:
        in_ours, in_theirs = _differing_letters(pair, same_letters)
        marks_ours += in_ours
        marks_theirs += in_theirs
    is_company = any(word.kind is _Kind.SUFFIX for word in (*ours, *theirs))
    sentences = [*_changed(pairs, moved, extra), *_missing(missing, theirs, is_company)]
    if not pairs:
        sentences = [Sentence("names.no_word_in_common")]
    return Difference(
        _pieces(supplied, marks_ours),
        _pieces(matched, marks_theirs),
        tuple(sentences or [_written(supplied, matched)]),
    )


def _words(name: str) -> list[_Word]:
    words: list[_Word] = []
    for found in re.finditer(r"\S+", name):
        key = _key(found[0])
        if key:
            start = found.start()
            kind = _Kind.TITLE if key in TITLES and not words else _Kind.WORD
            kind = _Kind.SUFFIX if key in COMPANY_SUFFIXES and words else kind
            words.append(_Word(start, found.end(), found[0], key, kind))
    return words


def _key(word: str) -> str:
    if word in {"&", "+"}:
        return "and"
    if word.isascii() and word.isalnum():
        return word.casefold()
    plain = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in plain if letter.isalnum())


def _paired(
    ours: Sequence[_Word], theirs: Sequence[_Word], same_letters: _SameLetters
) -> tuple[list[_Pair], list[_Word], list[_Word]]:
    """Pair the words: first equal ones, then the most similar, then the last remaining two."""
    extra, missing, pairs = list(ours), list(theirs), []

    def take(supplied: _Word, matched: _Word) -> None:
        pairs.append(_Pair(supplied, matched))
        extra.remove(supplied)
        missing.remove(matched)

    for word in ours:
        if same := next((other for other in missing if other.key == word.key), None):
            take(word, same)
    candidates = (
        (_likeness(word, other, same_letters), word, other)
        for word in extra[:COMPARED_MAX]
        for other in missing[:COMPARED_MAX]
        if word.kind is other.kind
    )
    for likeness, word, other in sorted(candidates, key=lambda found: -found[0]):
        if likeness >= ALIKE_MIN and word in extra and other in missing:
            take(word, other)
    if pairs and len(extra) == len(missing) == 1 and extra[0].kind is missing[0].kind:
        take(extra[0], missing[0])
    return sorted(pairs), extra, missing


def _likeness(word: _Word, other: _Word, same_letters: _SameLetters) -> float:
    shorter, longer = sorted((word.key, other.key), key=len)
    if word.kind is _Kind.SUFFIX or (len(shorter) == 1 and longer.startswith(shorter)):
        return 1.0  # two suffixes, or an initial and a name
    same = same_letters(tuple(word.key), tuple(other.key))
    return 2 * sum(stretch.size for stretch in same) / (len(word.key) + len(other.key))


def _moved(pairs: Sequence[_Pair]) -> list[_Pair]:
    """Return the pairs whose position among the shared words differs at the bank."""
    at_bank = sorted(pairs, key=lambda pair: pair.matched.start)
    return [pair for pair, other in zip(pairs, at_bank, strict=True) if pair != other]


def _span(word: _Word) -> _Span:
    return word.start, word.end


def _differing_letters(pair: _Pair, same_letters: _SameLetters) -> tuple[list[_Span], list[_Span]]:
    ours, theirs = pair
    if ours.text == theirs.text:
        return [], []  # the usual case
    if ours.kind is not _Kind.WORD and ours.key != theirs.key:
        return [_span(ours)], [_span(theirs)]  # letters that Ltd and LLP share are chance
    in_ours, in_theirs = [], []
    our_at, their_at = ours.start, theirs.start
    letters = (tuple(map(str.casefold, word.text)) for word in pair)
    for same in same_letters(*letters):
        in_ours.append((our_at, ours.start + same.a))
        in_theirs.append((their_at, theirs.start + same.b))
        our_at, their_at = ours.start + same.a + same.size, theirs.start + same.b + same.size
    return in_ours, in_theirs


def _same_letters(ours: _Letters, theirs: _Letters) -> Sequence[Match]:
    """Return the stretches that two words share, left to right; the last, at their ends, is empty."""
    return SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()


def _pieces(name: str, marks: Iterable[_Span]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    position = 0  # start of the letters not yet in a piece
    for start, end in _joined(name, marks):
        pieces += (Piece(name[position:start], marked=False), Piece(name[start:end], marked=True))
        position = end
    pieces.append(Piece(name[position:], marked=False))
    return tuple(piece for piece in pieces if piece.text) or (Piece(name, marked=False),)


def _joined(name: str, marks: Iterable[_Span]) -> list[_Span]:
    """Sort marks from left to right; join adjacent ones, and those with only a gap between them."""
    joined: list[_Span] = []
    for start, end in sorted(mark for mark in marks if mark[0] < mark[1]):
        if joined and name[joined[-1][1] : start] in {"", " "}:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _changed(pairs: Sequence[_Pair], moved: Sequence[_Pair], extra: Sequence[_Word]) -> Iterator[Sentence]:
    texts = [(pair.matched.text, pair.supplied.text) for pair in pairs]
    spelt = [(theirs, ours) for theirs, ours in texts if theirs.casefold() != ours.casefold()]
    quoted = [Sentence("names.pair", theirs=theirs, ours=ours) for theirs, ours in spelt[:QUOTED_MAX]]
    if len(spelt) > QUOTED_MAX:
        quoted.append(Sentence("names.and_more"))
    if quoted:
        yield Sentence("names.bank_has", pairs=quoted)
    if moved:
        yield Sentence("names.words_in_other_order")
    if extra:
        yield Sentence("names.bank_lacks_words", words=_texts(extra))


def _missing(words: Sequence[_Word], theirs: Sequence[_Word], is_company: bool) -> Iterator[Sentence]:
    for kind, key in _MISSING.items():
        if of_kind := [word for word in words if word.kind is kind]:
            yield Sentence(key, words=_texts(of_kind))
    plain = [word for word in words if word.kind is _Kind.WORD]
    if plain and not is_company and theirs[-1] not in plain:
        yield Sentence("names.forename_missing", words=_texts(plain))
    elif plain:
        yield Sentence("names.bank_also_has", words=_texts(plain))


def _texts(words: Sequence[_Word]) -> str:
    return " ".join(word.text for word in words)


def _written(supplied: str, matched: str) -> Sentence:
    """Return the sentence for names with the same words."""
    if supplied == matched:
        return Sentence("names.same")
    if supplied.casefold() == matched.casefold():
        return Sentence("names.capitals_differ")
    return Sentence("names.punctuation_differs")
