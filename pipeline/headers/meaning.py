"""What one header means by its words alone, wherever it stands.

A header is cut into words (`spelling`), each word is looked up in `words`, and the cues must fit one line of
a small grammar. A header with a word that is not known means nothing, so that `Beneficiary email` is no
beneficiary; only what stands in brackets may be unknown, as in `Name (as on the statement)`.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import NamedTuple

from pipeline.headers.spelling import (
    Words,
    fold,
    tokens_of,
    words_in_one_piece,
    words_of,
    words_outside_brackets,
)
from pipeline.headers.words import Cue
from schemas.payments import FIELDS


class Side(StrEnum):
    """Whose column it is."""

    OURS = "ours"
    PAYEE = "the payee's"
    UNSAID = "not said"


class Rank(IntEnum):
    """How explicitly a column names who is paid; the smaller, the more."""

    HOLDER = 1
    PAYEE = 2
    SUBJECT = 3
    PLAIN = 4
    PART = 5
    COMPANY = 6


class HeaderMeaning(NamedTuple):
    """What a header means, if it means anything."""

    what: str | None
    """A canonical field, a part of a name (`GIVEN` to `SECOND`), or what the header states of the file or of
    who is not asked about (`BALANCE` to `NEVER`); None where the words leave it open."""
    rule: str
    """By what it is known, in words."""
    side: Side = Side.UNSAID
    rank: Rank | None = None
    """Of a name."""
    subject: Cue | None = None
    """Whom the list is about, where the header shows it: a person, supplier, customer or another party."""
    plain: bool = False
    """An account name that may be one in the books, or an account without an owner in its header."""
    explicit: int = 1
    """Among columns of a side field, the largest goes first."""
    currency: str | None = None
    """That the header of an amount gives."""
    says_name: bool = False
    """Whether the header says that it is a name; `Supplier` may be a number."""


GIVEN, INITIALS, MIDDLE, FAMILY, SECOND_FAMILY, COMPANY, SECOND = (
    "given name",
    "initials",
    "middle name",
    "family name",
    "second family name",
    "company name",
    "second line of a name",
)
BALANCE, BOOKED, DIRECTION, MANDATE, COLLECTION, SEQUENCE, CREDITOR_ID, CHOICE, PARENT, NEVER = (
    "balance",
    "booking date",
    "direction",
    "mandate",
    "collection date",
    "sequence type",
    "creditor identifier",
    "choice of currency",
    "parent",
    "never the payee",
)

BARE_ACCOUNT = "an account, and nobody says whose"
"""The rule of a header such as `Konto`."""

CANONICAL = "the field's name"
"""The rule of a header that is the name of a field."""

UNKNOWN = HeaderMeaning(None, "unknown")

_ALIASES: Mapping[str, HeaderMeaning] = {
    "koinh": HeaderMeaning("name", "a known header", rank=Rank.HOLDER, says_name=True),
    "bankn": HeaderMeaning("account_number", "a known header"),
    "nm": HeaderMeaning("name", "a known header", rank=Rank.PLAIN),
    "agname1": HeaderMeaning("name", "a known header", rank=Rank.PAYEE),
    "kndname": HeaderMeaning("name", "a known header", rank=Rank.PAYEE),
    "requestname": HeaderMeaning("name", "a known header", rank=Rank.PAYEE),
    "requestiban": HeaderMeaning("iban", "a known header"),
    "empfangerabsendername": HeaderMeaning("name", "a known header", rank=Rank.PAYEE),
    "empfangerabsenderkontonummer": HeaderMeaning("account_number", "a known header", Side.PAYEE),
    "agkto": HeaderMeaning("account_number", "a known header", Side.PAYEE),
    "kndkontonr": HeaderMeaning("account_number", "a known header", Side.PAYEE),
    "ktonummer": HeaderMeaning("account_number", "a known header"),
    "ktonr": HeaderMeaning("account_number", "a known header"),
    "tegenrekening": HeaderMeaning("account_number", "a known header", Side.PAYEE),
    "beguenstigterzahlungspflichtiger": HeaderMeaning(
        "name", "a known header", rank=Rank.PAYEE, says_name=True
    ),
    "begunstigterzahlungspflichtiger": HeaderMeaning(
        "name", "a known header", rank=Rank.PAYEE, says_name=True
    ),
    "anybic": HeaderMeaning("organisation_bic", "a known header"),
    "bicorbei": HeaderMeaning("organisation_bic", "a known header"),
    "beneficiaryorgid": HeaderMeaning("organisation_id", "a known header"),
    "customid": HeaderMeaning("payment_id", "a known header"),
    "payrollno": HeaderMeaning("payment_id", "a known header", explicit=0),
    "payrollnumber": HeaderMeaning("payment_id", "a known header", explicit=0),
    "btgwaehr": HeaderMeaning("currency", "a known header"),
    "vkwahrung": HeaderMeaning("currency", "a known header"),
    "zweck1": HeaderMeaning("reference", "a known header"),
    "sendvalue": HeaderMeaning("amount", "a known header"),
    **dict.fromkeys(
        ("rent", "rents", "refund", "refunds"),
        HeaderMeaning("amount", "what is paid, as amounts", explicit=0),
    ),
}
"""Headers of single products whose words have no meaning elsewhere, folded."""


_KEPT_MAX = 4_000
"""Meanings kept at hand; cells of a file's first lines are tried as headers too, and may name payees."""


@lru_cache(maxsize=_KEPT_MAX)
def meaning(header: str) -> HeaderMeaning:
    """What a header means.

    >>> meaning("Beneficiary account no.").what, meaning("Beneficiary account no.").side
    ('account_number', <Side.PAYEE: "the payee's">)
    >>> meaning("Beneficiary email").what is None
    True
    """
    if len(header) > _HEADER_LENGTH_MAX:
        return UNKNOWN
    folded, as_written = fold(header), words_of(header)
    if (field := _CANONICAL.get(folded)) is not None:
        rank = Rank.PLAIN if field == "name" else None
        currency = as_written.currency if as_written is not None and field == "amount" else None
        return HeaderMeaning(
            field, CANONICAL, rank=rank, explicit=3, currency=currency, says_name=field == "name"
        )
    if (alias := _ALIASES.get(folded)) is not None:
        return alias
    for words in (as_written, words_outside_brackets(header), words_in_one_piece(folded)):
        if words is not None:
            found = _meaning(words)
            if found.what is not None:
                return found
    if _BALANCES & set(tokens_of(header)):
        return HeaderMeaning(BALANCE, "a balance, whatever else the header says")
    return UNKNOWN


def header_rules() -> list[str]:
    """The words of every rule by which a header means something, each once."""
    rules = (line.rule for line in _GRAMMAR)
    return list(dict.fromkeys([CANONICAL, *(known.rule for known in _ALIASES.values()), *rules]))


def is_code_of_bank(header: str) -> bool:
    """Whether a header states that its column has codes of the payee's banks, of whatever kind.

    >>> is_code_of_bank("Beneficiary bank code"), is_code_of_bank("Debit bank code")
    (True, False)
    """
    words = words_of(header)
    if words is None or not words.cues <= _QUALIFIERS - {Cue.OURS} | {Cue.BANK_CODE, Cue.CODE, Cue.NUMBER}:
        return False
    return Cue.BANK_CODE in words.cues or (Cue.BANK in words.cues and Cue.CODE in words.cues)


# The grammar: the first line that fits the cues of a header says what it means.

_FIRMS = frozenset({Cue.SUPPLIER, Cue.CUSTOMER, Cue.PARTY})
_SUBJECTS = _FIRMS | {Cue.PERSON}
_QUALIFIERS = _SUBJECTS | {Cue.OURS, Cue.THEIRS, Cue.MARK, Cue.BANK, Cue.FILLER, Cue.FULL, Cue.AND}
"""What may stand beside anything, and shows whose it is."""
_PAYEE = frozenset({Cue.THEIRS, Cue.MARK})
_SUBJECTS_IN_ORDER = (Cue.PERSON, Cue.SUPPLIER, Cue.CUSTOMER, Cue.PARTY)
_ANY_ACCOUNT = frozenset({Cue.ACCOUNT, Cue.BARE_ACCOUNT})
_NOTHING = frozenset({Cue.FILLER, Cue.AND})


class _GrammarLine(NamedTuple):
    """A line of the grammar."""

    what: str | None
    rule: str
    needs: tuple[frozenset[Cue], ...]
    """Of each of these, one."""
    beside: frozenset[Cue] = frozenset()
    """What else may be there."""
    qualifiers: frozenset[Cue] = _QUALIFIERS
    rank: Rank | None = None
    explicit: int = 1
    when: Callable[[Words], bool] = lambda _words: True
    plain: Callable[[Words], bool] = lambda _words: False

    def fits(self, words: Words) -> bool:
        """Whether these words are a header of this line."""
        allowed = self.qualifiers.union(self.beside, *self.needs)
        return words.cues <= allowed and all(words.cues & need for need in self.needs) and self.when(words)


def _one(*cues: Cue) -> frozenset[Cue]:
    return frozenset(cues)


def _anything(what: str | None, rule: str, *cues: Cue) -> _GrammarLine:
    """A line that fits whatever stands beside its cue."""
    return _GrammarLine(what, rule, (frozenset(cues),), beside=frozenset(Cue))


def _holds_both(words: Words) -> bool:
    """Whether a header of a sort code is one of an account number, too, and not of an account's sort code."""
    at = words.order.index(Cue.SORT_CODE)
    return Cue.ACCOUNT in words.cues and (
        bool(words.cues & {Cue.AND, Cue.NUMBER}) or Cue.ACCOUNT in words.order[at:]
    )


def _is_a_holders(words: Words) -> bool:
    """Whether a header that names a holder names what is theirs, as `Account holder IBAN` does."""
    return Cue.HOLDER not in words.cues or (
        words.order[0] is Cue.HOLDER and not words.cues & {Cue.NAME, Cue.FILLER, Cue.AND}
    )


def _is_a_subjects(words: Words) -> bool:
    """A supplier's account may be its number in our books; its bank account is none."""
    return bool(words.cues & _SUBJECTS) and Cue.BANK not in words.cues


_ORGANISATION = (_one(Cue.ORGANISATION), _one(Cue.ID))
_NAME_ONLY = _one(Cue.NAME, Cue.FULL, Cue.FILLER)
_GRAMMAR = (
    _GrammarLine(None, "unknown", (), qualifiers=_NOTHING),
    # What a header says about the whole file, or about who is not asked about.
    _GrammarLine(
        BALANCE, "a balance", (_one(Cue.BALANCE),), _ANY_ACCOUNT | {Cue.AMOUNT, Cue.CURRENCY, Cue.BOOKED}
    ),
    _anything(BOOKED, "a booking date", Cue.BOOKED),
    _anything(DIRECTION, "whether money came in or went out", Cue.DIRECTION),
    _anything(CREDITOR_ID, "a creditor identifier", Cue.CREDITOR_ID),
    _anything(MANDATE, "a mandate", Cue.MANDATE),
    _anything(COLLECTION, "a collection date", Cue.COLLECTION),
    _anything(SEQUENCE, "a sequence type", Cue.SEQUENCE),
    _anything(CHOICE, "a choice between two currencies", Cue.CHOICE),
    _anything(NEVER, "a person or bank who is not paid", Cue.OTHER_PERSON),
    _anything(None, "unknown", Cue.DATE, Cue.LEDGER, Cue.INTERMEDIARY),
    # Accounts, banks and identifications.
    _GrammarLine(
        "iban",
        "the header says IBAN",
        (_one(Cue.IBAN),),
        _ANY_ACCOUNT | {Cue.NUMBER, Cue.CODE, Cue.ID, Cue.PAYMENT, Cue.HOLDER},
        when=_is_a_holders,
    ),
    _GrammarLine(
        "organisation_bic", "the header says organisation BIC", (_one(Cue.BIC), _one(Cue.ORGANISATION))
    ),
    _GrammarLine(
        "bic",
        "the header says BIC",
        (_one(Cue.BIC),),
        _one(Cue.CODE, Cue.NUMBER, Cue.ACCOUNT, Cue.ID, Cue.PAYMENT),
    ),
    _GrammarLine(
        "account_number",
        "sort code and account number in one cell",
        (_one(Cue.SORT_CODE),),
        _one(Cue.ACCOUNT, Cue.NUMBER, Cue.PAYMENT),
        when=_holds_both,
    ),
    _GrammarLine(
        "sort_code",
        "the header says sort code",
        (_one(Cue.SORT_CODE),),
        _one(Cue.ACCOUNT, Cue.NUMBER, Cue.PAYMENT),
    ),
    _GrammarLine(
        "secondary_reference", "the header says secondary reference", (_one(Cue.SECONDARY),), _one(Cue.NUMBER)
    ),
    _GrammarLine("lei", "the header says LEI", (_one(Cue.LEI),), _one(Cue.CODE, Cue.NUMBER)),
    _GrammarLine(
        "organisation_id_scheme", "the header says organisation id", (*_ORGANISATION, _one(Cue.SCHEME))
    ),
    _GrammarLine(
        "organisation_id_issuer", "the header says organisation id", (*_ORGANISATION, _one(Cue.ISSUER))
    ),
    _GrammarLine("organisation_id", "the header says organisation id", _ORGANISATION),
    _GrammarLine(
        "account_number",
        BARE_ACCOUNT,
        (_one(Cue.BARE_ACCOUNT),),
        plain=lambda words: _side(words.cues) is Side.UNSAID,
    ),
    _GrammarLine(
        "account_number",
        "the header says account",
        (_ANY_ACCOUNT,),
        _one(Cue.NUMBER, Cue.PAYMENT, Cue.HOLDER),
        when=_is_a_holders,
        plain=_is_a_subjects,
    ),
    # Names.
    _GrammarLine(
        SECOND,
        "a second line of a name",
        (_one(Cue.NAME, Cue.THEIRS, Cue.HOLDER, Cue.COMPANY, Cue.FAMILY),),
        frozenset(Cue),
        when=lambda words: words.number > 1,
    ),
    _GrammarLine(
        PARENT,
        "a parent, who may own the account",
        (_one(Cue.PARENT),),
        _one(Cue.NAME, Cue.GIVEN, Cue.FAMILY),
    ),
    _GrammarLine(
        "name",
        "who owns the account",
        (_one(Cue.HOLDER),),
        _ANY_ACCOUNT | {Cue.NAME, Cue.IBAN, Cue.PAYMENT},
        rank=Rank.HOLDER,
    ),
    _GrammarLine(
        "name",
        "who owns something, perhaps the account",
        (_one(Cue.OWNER),),
        _ANY_ACCOUNT | {Cue.NAME, Cue.IBAN},
        rank=Rank.HOLDER,
        plain=lambda words: not words.cues & {*_ANY_ACCOUNT, Cue.IBAN, Cue.BANK},
    ),
    _GrammarLine(
        "name",
        "a full name",
        (_one(Cue.GIVEN), _one(Cue.FAMILY, Cue.NAME)),
        _one(Cue.NAME),
        rank=Rank.SUBJECT,
    ),
    _GrammarLine(GIVEN, "a part of a name", (_one(Cue.GIVEN),), _one(Cue.HOLDER), rank=Rank.PART),
    _GrammarLine(INITIALS, "a part of a name", (_one(Cue.INITIALS),), _one(Cue.HOLDER), rank=Rank.PART),
    _GrammarLine(MIDDLE, "a part of a name", (_one(Cue.MIDDLE),), _one(Cue.NAME, Cue.HOLDER), rank=Rank.PART),
    _GrammarLine(FAMILY, "a part of a name", (_one(Cue.FAMILY),), _one(Cue.NAME, Cue.HOLDER), rank=Rank.PART),
    _GrammarLine(
        SECOND_FAMILY, "a part of a name", (_one(Cue.SECOND_FAMILY),), _one(Cue.HOLDER), rank=Rank.PART
    ),
    # A payee's company name is the payee; a supplier's is the supplier.
    _GrammarLine(
        "name",
        "the payee's role",
        (_one(Cue.COMPANY, Cue.ORGANISATION), _one(Cue.THEIRS)),
        _one(Cue.NAME),
        rank=Rank.PAYEE,
    ),
    _GrammarLine(
        "name",
        "whom the list is about",
        (_one(Cue.COMPANY, Cue.ORGANISATION), _FIRMS | {Cue.OURS}),
        _one(Cue.NAME),
        rank=Rank.SUBJECT,
    ),
    _GrammarLine(
        COMPANY,
        "a company",
        (_one(Cue.COMPANY, Cue.ORGANISATION),),
        _one(Cue.NAME, Cue.HOLDER),
        rank=Rank.COMPANY,
    ),
    _GrammarLine(
        "name",
        "the name of the account",
        (_one(Cue.NAME), _ANY_ACCOUNT),
        _one(Cue.PAYMENT),
        rank=Rank.HOLDER,
        plain=lambda words: _side(words.cues) is not Side.PAYEE and not words.cues & {Cue.BANK, *_SUBJECTS},
    ),
    _anything(NEVER, "a person or bank who is not paid", Cue.BANK)._replace(
        needs=(_one(Cue.NAME), _one(Cue.BANK))
    ),
    _GrammarLine(
        "name",
        "the payee's role",
        (_one(Cue.THEIRS),),
        _NAME_ONLY | _SUBJECTS | {Cue.MARK},
        qualifiers=frozenset(),
        rank=Rank.PAYEE,
    ),
    _GrammarLine(
        "name", "a name of our side", (_one(Cue.OURS),), _NAME_ONLY, qualifiers=frozenset(), rank=Rank.PLAIN
    ),
    _GrammarLine(
        "name",
        "the payee's role",
        (_one(Cue.MARK), _one(Cue.NAME)),
        _NAME_ONLY,
        qualifiers=frozenset(),
        rank=Rank.PAYEE,
    ),
    _GrammarLine(
        "name",
        "whom the list is about",
        (_SUBJECTS,),
        _NAME_ONLY,
        qualifiers=frozenset(),
        rank=Rank.SUBJECT,
        when=lambda words: Cue.PERSON not in words.cues or not words.cues & _FIRMS,
    ),
    _GrammarLine(
        "name",
        "a full name",
        (_one(Cue.NAME), _one(Cue.FULL)),
        qualifiers=_NOTHING,
        rank=Rank.SUBJECT,
    ),
    _GrammarLine("name", "a name", (_one(Cue.NAME),), qualifiers=_NOTHING, rank=Rank.PLAIN),
    # Fields that are no part of the question, or only name the kind of payee.
    _GrammarLine(
        "account_type",
        "the header says account type",
        (_one(Cue.PERSON_OR_BUSINESS, Cue.TYPE),),
        _ANY_ACCOUNT | {Cue.TYPE},
    ),
    _GrammarLine(
        "currency",
        "the header says currency",
        (_one(Cue.CURRENCY), _one(Cue.PAYMENT)),
        _one(Cue.CODE),
        explicit=0,
    ),
    _GrammarLine("currency", "the header says currency", (_one(Cue.CURRENCY),), _one(Cue.CODE, Cue.AMOUNT)),
    _GrammarLine(
        "amount", "the header says amount", (_one(Cue.AMOUNT), _one(Cue.PAYMENT)), _one(Cue.NET), explicit=2
    ),
    _GrammarLine("amount", "the header says amount", (_one(Cue.AMOUNT),), _one(Cue.NET)),
    _GrammarLine(
        "amount",
        "the header says amount",
        (_one(Cue.NET),),
        _one(Cue.PAYMENT),
        qualifiers=_NOTHING,
        explicit=0,
    ),
    _GrammarLine("payment_id", "the header says payment id", (_one(Cue.END_TO_END),), frozenset(Cue)),
    _GrammarLine(
        "payment_id",
        "the header says payment id",
        (_one(Cue.PAYMENT), _one(Cue.ID, Cue.NUMBER)),
        explicit=2,
    ),
    _GrammarLine(
        "payment_id",
        "the header says employee number",
        (_one(Cue.PERSON), _one(Cue.NUMBER, Cue.ID)),
        qualifiers=_NOTHING,
        explicit=0,
    ),
    _GrammarLine(
        "reference",
        "the header says reference",
        (_one(Cue.REFERENCE, Cue.MESSAGE),),
        _one(Cue.PAYMENT, Cue.NUMBER, Cue.CODE),
        explicit=0,
        when=lambda words: _side(words.cues) is Side.OURS or words.number > 1,
    ),
    _GrammarLine(
        "reference",
        "the header says reference",
        (_one(Cue.REFERENCE, Cue.MESSAGE),),
        _one(Cue.PAYMENT, Cue.NUMBER, Cue.CODE),
        explicit=2,
        when=lambda words: bool(words.cues & (_PAYEE | {Cue.MESSAGE})),
    ),
    _GrammarLine(
        "reference",
        "the header says reference",
        (_one(Cue.REFERENCE),),
        _one(Cue.PAYMENT, Cue.NUMBER, Cue.CODE),
    ),
)


def _meaning(words: Words) -> HeaderMeaning:
    line = next((line for line in _GRAMMAR if line.fits(words)), None)
    if line is None or line.what is None:
        return UNKNOWN
    plain, side = line.plain(words), _side(words.cues)
    if side is Side.UNSAID and _is_the_holders(line, words.cues):
        side = Side.PAYEE
    return HeaderMeaning(
        line.what,
        line.rule,
        # Whose a ledger account of a supplier is, its header does not show.
        Side.UNSAID if plain and side is Side.PAYEE else side,
        line.rank,
        next((cue for cue in _SUBJECTS_IN_ORDER if cue in words.cues), None),
        plain,
        line.explicit,
        words.currency if line.what == "amount" else None,
        bool(words.cues & {Cue.NAME, Cue.HOLDER, Cue.GIVEN}),
    )


def _side(cues: frozenset[Cue]) -> Side:
    if Cue.OURS in cues:
        return Side.OURS
    return Side.PAYEE if cues & _PAYEE else Side.UNSAID


def _is_the_holders(line: _GrammarLine, cues: frozenset[Cue]) -> bool:
    """Whether something other than a whole name is said to be the account holder's, who is the payee."""
    return Cue.HOLDER in cues and line.what != "name"


_HEADER_LENGTH_MAX = 200
"""A longer cell is text, and no header."""
_BALANCES = frozenset({"saldo", "kontostand", "solde", "egyenleg"})
"""Words that no column of a payment file has in its header."""
_CANONICAL = {fold(field): field for field in FIELDS}
