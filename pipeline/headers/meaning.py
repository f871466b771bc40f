"""Find the meaning of one header from its words, in any position.

A header is split into words (`spelling`), each word is looked up in `words`, and the cues must fit one line
of a small grammar. A header with an unknown word has no meaning, so `Beneficiary email` is not a beneficiary.
Only words in brackets may be unknown, as in `Name (as on the statement)`.
"""

import re
from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import NamedTuple

from pipeline.headers.spelling import (
    BRACKETS,
    Words,
    cues_of,
    fold,
    known_and_unknown,
    tokens_of,
    words_in_one_piece,
    words_of,
)
from pipeline.headers.words import GRAMMAR, OTHER_UNITS, PRODUCTS, Cue, listed
from schemas.payments import FIELDS

_HEADER_LENGTH_MAX = 200  # a longer cell is text, not a header
_BALANCES = frozenset({"saldo", "kontostand", "solde", "egyenleg"})
"""Words that occur in no header of a payment file."""
_CANONICAL = {fold(field): field for field in FIELDS}


class Side(StrEnum):
    """The party of a column."""

    OURS = "ours"
    PAYEE = "the payee's"
    UNSAID = "not said"


class Rank(IntEnum):
    """How explicitly a column names the payee; smaller is more explicit."""

    HOLDER = 1
    PAYEE = 2
    SUBJECT = 3
    PLAIN = 4
    PART = 5
    COMPANY = 6


class What(StrEnum):
    """The meaning of a header other than a canonical field: part of a name, or a fact about file or party."""

    GIVEN = "given name"
    PREFERRED = "preferred given name"
    INITIALS = "initials"
    MIDDLE = "middle name"
    FAMILY = "family name"
    SECOND_FAMILY = "second family name"
    COMPANY = "company name"
    SECOND = "second line of a name"
    BALANCE = "balance"
    BOOKED = "booking date"
    DIRECTION = "direction"
    MANDATE = "mandate"
    COLLECTION = "collection date"
    SEQUENCE = "sequence type"
    CREDITOR_ID = "creditor identifier"
    CHOICE = "choice of currency"
    PARENT = "parent"
    USER = "user"
    COUNTER = "counter account"  # such as `Gegenkonto`, which only its cells decide
    NEVER = "never the payee"


class HeaderMeaning(NamedTuple):
    """The meaning of a header whose words are known."""

    what: str | None  # a canonical field, or a `What`; None if the words leave it open
    rule: str  # the rule that recognised the header, in words
    side: Side = Side.UNSAID
    rank: Rank | None = None  # how explicitly it names the payee
    subject: Cue | None = None  # the party that the list is about, if the header shows it
    plain: bool = False  # true for an account without an owner, and an account name that may be a ledger's
    explicit: int = 1  # among columns of a side field, the one with the largest value is read
    currency: str | None = None  # in the header of an amount
    says_name: bool = False  # true if the header says that it is a name; `Supplier` may be a number


# Rules for headers such as `Konto`, `User` or `School`, `Amount (pence)`, and the name of a field.
BARE_ACCOUNT = "an account without an owner in its header"
USERS = "a user or place, read if no other column names a payee"
IN_HUNDREDTHS = "the header says amount in hundredths of the currency"
CANONICAL = "the field's name"
_OTHER_UNITS = re.compile(OTHER_UNITS, re.IGNORECASE)
UNKNOWN = HeaderMeaning(None, "unknown")

_ALIASES: Mapping[str, HeaderMeaning] = {
    fold(header): HeaderMeaning(
        known["what"],
        known.get("rule", "a known header"),
        Side.PAYEE if known.get("of_payee") else Side.UNSAID,
        Rank[known["rank"].upper()] if "rank" in known else None,
        explicit=known.get("explicit", 1),
        says_name=known.get("says_name", False),
    )
    for known in PRODUCTS
    for header in listed(known["headers"])
}
"""Folded headers of single products, whose words have no meaning elsewhere."""


@lru_cache(maxsize=4_000)  # small: the cells of a file's first lines are tried as headers and may name payees
def meaning(header: str) -> HeaderMeaning:
    """Return the meaning of a header.

    >>> meaning("Beneficiary account no.").what, meaning("Beneficiary account no.").side
    ('account_number', <Side.PAYEE: "the payee's">)
    >>> meaning("Beneficiary email").what is None
    True
    """
    if len(header) > _HEADER_LENGTH_MAX:
        return UNKNOWN
    folded = fold(header)
    if (field := _CANONICAL.get(folded)) is not None:
        rank = Rank.PLAIN if field == "name" else None
        # Only a currency sign may accompany a field's name, as in `amount (£)`.
        signed = words_of(header) if field == "amount" and not header.isascii() else None
        currency = None if signed is None else signed.currency
        return HeaderMeaning(
            field, CANONICAL, rank=rank, explicit=3, currency=currency, says_name=field == "name"
        )
    if (alias := _ALIASES.get(folded)) is not None:
        return alias
    for words in (words_of(header), words_of(BRACKETS.sub(" ", header)), words_in_one_piece(folded)):
        if words is not None:
            found = _meaning(words)
            if found.what is not None:
                is_in_other_units = found.what == "amount" and _OTHER_UNITS.search(header)
                return UNKNOWN if is_in_other_units else found
    if _BALANCES & set(tokens_of(header)):
        return HeaderMeaning(What.BALANCE, "a balance")
    return UNKNOWN


def is_code_of_bank(header: str) -> bool:
    """True if a header names codes of the payee's bank, of any kind.

    >>> is_code_of_bank("Beneficiary bank code"), is_code_of_bank("Debit bank code")
    (True, False)
    """
    cues = cues_of(header)
    is_code = Cue.BANK_CODE in cues or {Cue.BANK, Cue.CODE} <= cues
    return is_code and cues <= _QUALIFIERS - {Cue.OURS} | {Cue.BANK_CODE, Cue.CODE, Cue.NUMBER}


def is_column_of(cue: Cue, header: str) -> bool:
    """True if a header has a word with this cue and none for our side.

    >>> is_column_of(Cue.SORT_CODE, "Zorblex's sort code"), is_column_of(Cue.SORT_CODE, "Branch code")
    (True, False)
    """
    known, _ = known_and_unknown(header)
    words = words_of(header) or words_in_one_piece(fold(header)) or words_of(known)
    return words is not None and cue in words.cues and Cue.OURS not in words.cues


# The grammar: the first line that fits the cues of a header gives its meaning.

_FIRMS = frozenset({Cue.SUPPLIER, Cue.CUSTOMER, Cue.PARTY, Cue.AGENCY})
_SUBJECTS = _FIRMS | {Cue.PERSON}
_QUALIFIERS = _SUBJECTS | {Cue.OURS, Cue.THEIRS, Cue.MARK, Cue.BANK, Cue.FILLER, Cue.FULL, Cue.AND}
"""Words that may accompany any other word and show the owner."""
_PAYEE = frozenset({Cue.THEIRS, Cue.MARK})
_SUBJECTS_IN_ORDER = [
    *(Cue.PERSON, Cue.SUPPLIER, Cue.CUSTOMER, Cue.PARTY, Cue.AGENCY),
    *(Cue.PARENT, Cue.RELATIVE, Cue.EMPLOYER, Cue.USER),
]
_ANY_ACCOUNT = frozenset({Cue.ACCOUNT, Cue.BARE_ACCOUNT})
_NOTHING = frozenset({Cue.FILLER, Cue.AND})


class _GrammarLine(NamedTuple):
    what: str | None
    rule: str
    needs: tuple[frozenset[Cue], ...]  # at least one cue from each set
    beside: frozenset[Cue]  # other cues that are allowed
    qualifiers: frozenset[Cue]
    rank: Rank | None
    explicit: int
    when: Callable[[Words], bool]
    plain: Callable[[Words], bool]

    def fits(self, words: Words) -> bool:
        """True if these words fit this line."""
        allowed = self.qualifiers.union(self.beside, *self.needs)
        return words.cues <= allowed and all(words.cues & need for need in self.needs) and self.when(words)


def _cues(names: str) -> frozenset[Cue]:
    """Return the cues with these blank-separated names; `*` means all."""
    return frozenset(Cue) if names.strip() == "*" else frozenset(Cue[name] for name in names.split())


def _holds_both(words: Words) -> bool:
    """True if a header names a sort code and an account number, not just an account's sort code."""
    index = words.order.index(Cue.SORT_CODE)
    return Cue.ACCOUNT in words.cues and (
        bool(words.cues & {Cue.AND, Cue.NUMBER}) or Cue.ACCOUNT in words.order[index:]
    )


def _is_a_holders(words: Words) -> bool:
    """True if a header names something that belongs to a holder, as `Account holder IBAN` does."""
    return Cue.HOLDER not in words.cues or (
        words.order[0] is Cue.HOLDER and not words.cues & {Cue.NAME, Cue.FILLER, Cue.AND}
    )


_CONDITIONS: Mapping[str, Callable[[Words], bool]] = {
    "always": lambda _words: True,
    "never": lambda _words: False,
    "both": _holds_both,
    "of_holder": _is_a_holders,
    # An account number may be the supplier's in our books; an account name without payee or bank, a ledger.
    "of_subject": lambda words: bool(words.cues & _SUBJECTS) and Cue.BANK not in words.cues,
    "free": lambda words: not words.cues & {Cue.BANK, *_SUBJECTS} and _side(words.cues) is not Side.PAYEE,
    "with_side": lambda words: _side(words.cues) is not Side.UNSAID,
    "without_side": lambda words: _side(words.cues) is Side.UNSAID,
    "with_currency": lambda words: words.currency is not None,
    "numbered": lambda words: words.number > 1,
    "ours_or_numbered": lambda words: _side(words.cues) is Side.OURS or words.number > 1,
    "for_payee": lambda words: bool(words.cues & (_PAYEE | {Cue.MESSAGE})),
    "of_one_party": lambda words: Cue.PERSON not in words.cues or not words.cues & _FIRMS - {Cue.AGENCY},
    "without_account": lambda words: not words.cues & {*_ANY_ACCOUNT, Cue.IBAN, Cue.BANK},
}


def _line(what: str, rule: str, needs: str, beside: str, options: str) -> _GrammarLine:
    """Return a line of the grammar from the cells of its table."""
    said = dict(option.split("=") for option in options.split())
    return _GrammarLine(
        what or None,
        rule,
        tuple(_cues(group) for group in needs.split(",") if group),
        _cues(beside),
        {"none": frozenset[Cue](), "filler": _NOTHING}.get(said.get("qualifiers", ""), _QUALIFIERS),
        Rank[said["rank"].upper()] if "rank" in said else None,
        int(said.get("explicit", "1")),
        _CONDITIONS[said.get("when", "always")],
        _CONDITIONS[said.get("plain", "never")],
    )


_GRAMMAR = tuple(_line(*cells) for cells in GRAMMAR)


def _meaning(words: Words) -> HeaderMeaning:
    line = next((line for line in _GRAMMAR if line.fits(words)), None)
    if line is None or line.what is None:
        return UNKNOWN
    plain, side = line.plain(words), _side(words.cues)
    if side is Side.UNSAID and Cue.HOLDER in words.cues and line.what != "name":
        side = Side.PAYEE  # unless it is a whole name, an account holder's column is the payee's
    return HeaderMeaning(
        line.what,
        line.rule,
        Side.UNSAID if plain and side is Side.PAYEE else side,  # a supplier's ledger account is anybody's
        line.rank,
        next((cue for cue in _SUBJECTS_IN_ORDER if cue in words.cues), None),
        plain,
        line.explicit,
        words.currency if line.what == "amount" else None,
        bool(words.cues & {Cue.NAME, Cue.HOLDER, Cue.GIVEN, Cue.FAMILY}),
    )


def _side(cues: frozenset[Cue]) -> Side:
    if Cue.OURS in cues:
        return Side.OURS
    return Side.PAYEE if cues & _PAYEE else Side.UNSAID
