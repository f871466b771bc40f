"""How simulated responders compare names and identifications.

The guidance for Confirmation of Payee (API reference, "What the service does") binds every bank. It is never
No Match if forename and surname are reversed, if the surname matches and the forename is a common variant, or
if one of them has a spelling error. It is never Full Match unless the surname matches exactly and the first
character of the forename is correct. Within these bounds, to a lenient bank a slight deviation is a full
match.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache

from pipeline.sandbox.names import SURNAME_PARTICLES, TITLES, are_variants
from schemas.outcomes import Outcome
from schemas.vop import IdMatch, Party


class Likeness(IntEnum):
    """How similar two names, or parts of names, are; higher means more similar."""

    OTHER = 0
    NEAR = 1  # perhaps the same: reversed, misspelt, or shortened to another first character
    SLIGHT = 2  # the same surname and first character of the forename, and few other differences
    EXACT = 3


_JOINED = re.compile(r"[.'`\u2019\u2010-\u2015-]")  # O'Dunmore, S.r.l., Ashby-Fenn
_SEPARATOR = re.compile(r"[^\w]+|_+")

_SAME_WORD = {"ltd": "limited", "co": "company", "bros": "brothers", "inc": "incorporated"}
_LEGAL_FORMS = frozenset({
    "limited", "llp", "lp", "plc", "company", "incorporated", "gmbh", "ag", "kg", "bv", "nv",
    "sa", "sas", "sarl", "sl", "srl", "spa", "oy", "ab", "as", "lda",
})  # fmt: skip


def compare_names(asked: str, held: str, *, business: bool, lenient: bool) -> Outcome:
    """Compare the payer's name with the bank's: match, close match or no match.

    A lenient bank treats a slight deviation as a full match.

    >>> compare_names("thornwood avery", "Avery Thornwood", business=False, lenient=True).value
    'close_match'
    """
    if asked == held:
        return Outcome.MATCH
    likeness = _company_likeness(asked, held) if business else _person_likeness(asked, held)
    if likeness is Likeness.EXACT or (lenient and likeness is Likeness.SLIGHT):
        return Outcome.MATCH
    return Outcome.NO_MATCH if likeness is Likeness.OTHER else Outcome.CLOSE_MATCH


def compare_identifications(asked: Mapping[str, str], held: Mapping[str, str]) -> IdMatch:
    """Compare identifications of kinds that the bank holds: NOAP without any, NMTC with any difference."""
    comparable = asked.keys() & held.keys()
    if not comparable:
        return IdMatch.NOAP
    return IdMatch.MTCH if all(asked[kind] == held[kind] for kind in comparable) else IdMatch.NMTC


def identifications(party: Party) -> dict[str, str]:
    """A payee's identifications by kind: LEI, BIC, a scheme code, or a scheme's own name."""
    organisation = party.identification.organisation_id if party.identification else None
    if organisation is None:
        return {}
    found: dict[str, str] = {}
    if organisation.lei is not None:
        found["LEI"] = organisation.lei
    if organisation.any_bic is not None:
        found["BIC"] = organisation.any_bic
    for other in organisation.others or ():
        kind = other.scheme_name_code or other.scheme_name_proprietary
        if kind is not None and other.identification is not None:
            found[str(kind)] = other.identification
    return found


def _person_likeness(asked: str, held: str) -> Likeness:
    words = _without_titles(_words(asked))
    forenames, surname = _parts(_without_titles(_words(held)))
    if len(words) == 1 and words[0] == "".join(forenames) + surname:
        return Likeness.EXACT  # written as one word, which is consistent with the surname
    best = Likeness.OTHER
    for cut in range(1, len(words)):
        for first, last, is_reversed in ((words[:cut], words[cut:], False), (words[cut:], words[:cut], True)):
            of_surname = _surname_likeness("".join(last), surname)
            of_forenames = _forename_likeness(first, forenames) if of_surname else Likeness.OTHER
            likeness = min(of_surname, of_forenames)
            best = max(best, min(likeness, Likeness.NEAR) if is_reversed else likeness)
    return best


def _surname_likeness(asked: str, held: str) -> Likeness:
    if asked == held:
        return Likeness.EXACT
    return Likeness.NEAR if _is_misspelling(asked, held) else Likeness.OTHER


def _forename_likeness(asked: list[str], held: list[str]) -> Likeness:
    if "".join(asked) == "".join(held):
        return Likeness.EXACT
    if not held:
        return Likeness.OTHER
    first_asked, first_held = asked[0], held[0]
    is_alike = (
        first_asked == first_held
        or (len(first_asked) == 1 and first_held.startswith(first_asked))
        or are_variants(first_asked, first_held)
        or _is_misspelling(first_asked, first_held)
    )
    if not is_alike:
        # Two forenames joined, with a spelling error.
        return Likeness.NEAR if _is_misspelling("".join(asked), "".join(held)) else Likeness.OTHER
    if first_asked[0] != first_held[0] or _middle_names_differ(asked[1:], held[1:]):
        return Likeness.NEAR
    return Likeness.SLIGHT


def _middle_names_differ(asked: list[str], held: list[str]) -> bool:
    """True if middle names contradict each other; missing names and initials do not."""
    return any(a[0] != h[0] or (len(a) > 1 < len(h) and a != h) for a, h in zip(asked, held, strict=False))


def _company_likeness(asked: str, held: str) -> Likeness:
    asked_words, held_words = _company_words(asked), _company_words(held)
    if "".join(asked_words) == "".join(held_words):
        return Likeness.EXACT
    asked_core, asked_form = _core(asked_words)
    held_core, held_form = _core(held_words)
    if not asked_core or not held_core:
        return Likeness.OTHER
    if "".join(asked_core) == "".join(held_core):
        # Acme Ltd and Acme LLP are different companies; Acme may be short for either.
        return Likeness.NEAR if asked_form and held_form and asked_form != held_form else Likeness.SLIGHT
    shorter, longer = sorted((asked_core, held_core), key=len)
    is_short_form = longer[: len(shorter)] == shorter and 2 * len(shorter) >= len(longer)
    is_near = is_short_form or _is_misspelling("".join(asked_core), "".join(held_core))
    return Likeness.NEAR if is_near else Likeness.OTHER


def _company_words(name: str) -> list[str]:
    return [_SAME_WORD.get(word, word) for word in _words(name.replace("&", " and ").replace("+", " and "))]


def _core(words: list[str]) -> tuple[list[str], list[str]]:
    """Return a company's words without a leading article and legal form, and the legal form."""
    core = [word for word in words if word not in _LEGAL_FORMS]
    return (core[1:] if core[:1] == ["the"] else core), [word for word in words if word in _LEGAL_FORMS]


def _words(name: str) -> list[str]:
    folded = _JOINED.sub("", unicodedata.normalize("NFKC", name).casefold())
    return [word for word in _SEPARATOR.split(folded) if word]


def _without_titles(words: list[str]) -> list[str]:
    return [word for word in words if word not in TITLES] or words


def _parts(words: list[str]) -> tuple[list[str], str]:
    """Split a name into forenames and surname; a surname starts at its first particle: van der Maasdijk."""
    start = len(words) - 1
    while start > 1 and words[start - 1] in SURNAME_PARTICLES:
        start -= 1
    return words[:start], "".join(words[start:])


@lru_cache(maxsize=65_536)  # the same few names are compared again and again
def _is_misspelling(one: str, other: str) -> bool:
    """True if the words differ only in accents or in a few wrong, missing, extra or swapped letters."""
    one, other = _without_accents(one), _without_accents(other)
    errors_max = 1 if min(len(one), len(other)) <= 4 else 2
    return abs(len(one) - len(other)) <= errors_max and _edit_distance(one, other) <= errors_max


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    return "".join(
        letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter)
    )


def _edit_distance(one: str, other: str) -> int:
    """Optimal string alignment distance: insertions, deletions, replacements and swaps of neighbours."""
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        current = [row]
        for column, other_letter in enumerate(other, start=1):
            is_changed = letter != other_letter
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + is_changed)
            is_swap = row > 1 < column and letter == other[column - 2] and one[row - 2] == other_letter
            if is_swap and is_changed:
                cost = min(cost, before_last[column - 2] + 1)
            current.append(cost)
        before_last, last = last, current
    return last[-1]
