"""Words of headers and footers in 27 languages (`words.toml`) and their cues."""

import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib.resources import files
from typing import Any


class Cue(StrEnum):
    """The meaning of a word in a header."""

    OURS = "our side"
    THEIRS = "the payee"
    MARK = "the payee's side"
    HOLDER = "who owns the account"
    OWNER = "who owns something"
    NAME = "a name"
    FULL = "whole"
    GIVEN = "given name"
    PREFERRED = "the given name that a person uses"
    MIDDLE = "middle name"
    FAMILY = "family name"
    SECOND_FAMILY = "second family name"
    INITIALS = "initials"
    COMPANY = "a company"
    OTHER_PERSON = "a person who is not paid"
    USER = "a person who is paid if no one else is named"
    PARENT = "a parent"
    AGENCY = "an agency that engages the person"
    RELATIVE = "a relative who identifies the payee"
    EMPLOYER = "an employer"
    PERSON = "the person a list is about"
    SUPPLIER = "the supplier a list is about"
    CUSTOMER = "the customer a list is about"
    PARTY = "any other party that a list may be about"
    BANK = "a bank"
    BANK_CODE = "a bank's code"
    ACCOUNT = "an account"
    BARE_ACCOUNT = "an account, whose is not said"
    LEDGER = "an account in the books"
    NUMBER = "a number"
    ID = "an id"
    TYPE = "a type"
    CODE = "a code"
    IBAN = "an IBAN"
    BIC = "a BIC"
    SORT_CODE = "a sort code"
    SECONDARY = "a secondary reference"
    LEI = "an LEI"
    ORGANISATION = "an organisation"
    SCHEME = "a scheme"
    ISSUER = "an issuer"
    AMOUNT = "an amount"
    HUNDREDTHS = "hundredths of a currency"
    NET = "net"
    PAYMENT = "a payment"
    CURRENCY = "a currency"
    CHOICE = "one of two currencies"
    REFERENCE = "a reference"
    MESSAGE = "a text for the payee"
    END_TO_END = "end to end"
    DATE = "a date"
    BOOKED = "booked"
    BALANCE = "a balance"
    MANDATE = "a mandate"
    COLLECTION = "a collection"
    SEQUENCE = "a sequence type"
    CREDITOR_ID = "a creditor identifier"
    DIRECTION = "whether money came in or went out"
    AND = "both"
    PERSON_OR_BUSINESS = "personal or business"
    INTERMEDIARY = "another bank on the way"
    FILLER = "nothing"


def listed(text: str) -> tuple[str, ...]:
    """Return the words and phrases of a text in `words.toml`, without repeats."""
    words = " ".join(text.split()).replace(" ,", ",").replace(", ", ",").strip(",").split(",")
    return tuple(dict.fromkeys(filter(None, words)))


def _lists(table: str, names: str) -> list[tuple[str, ...]]:
    return [listed(_FILE[table][name]) for name in names.split()]


_FILE = tomllib.loads((files(__package__) / "words.toml").read_text("utf-8"))
TOTALS, SUBTOTALS, NOTES, NOTES_ALONE = _lists("footers", "totals subtotals notes alone")
_BY = ("by", "von", "durch", "par", "por", "da", "door", "przez", "av", "af", "de")
_WHO_DID_IT = tuple(note for note in NOTES if note.split()[1:] and note.split()[-1] in _BY)  # `Validé par`
WORDS: Mapping[Cue, tuple[str, ...]] = {
    cue: listed(_FILE["cues"][cue.name.lower()]) + (_WHO_DID_IT if cue is Cue.OTHER_PERSON else ())
    for cue in Cue
}
PLACES = listed(_FILE["places"]["words"])  # institutions, paid if no other column names people or firms
THINGS = listed(_FILE["things"]["words"])  # things that have names but are neither people nor companies
DEBIT_HEADERS, DEBIT_CELLS, DEBIT_TITLES, NO_DEBIT_TITLES, NOT_BEFORE_DEBITS = _lists(
    "direct_debits", "headers cells titles no_titles not_before"
)
DUES, PAYOUTS, REFUNDS, SETTINGS = _lists("direct_debits", "dues payouts refunds settings")
PAYERS, CHARGES, AID, UNPAID = _lists("direct_debits", "payers charges aid unpaid")
TAXES, VAT = (frozenset(listed(_FILE["taxes"][name])) for name in ("words", "vat"))
DEBIT_REFERENCES, MEMBERS = _lists("direct_debits", "references members")
WAYS_IN, WAYS_OUT, WAYS, WAYS_RECEIVED, STATUS = _lists("ways", "in out either received status")
PARTNERS = {word: Cue[cue.upper()] for cue, words in _FILE["partners"].items() for word in listed(words)}
BANK_NAMES, PARTY_NAMES, NO_NAME, OTHER_UNITS, LEGAL_FORMS, VOWELS, FORMS = _FILE["patterns"].values()
NOT_PAID = listed(_FILE["not_paid"]["words"])
COUNTRY_HEADERS = _lists("countries", "any of_bank")
OWN_ACCOUNTS, OWN_ENDS = _lists("own_accounts", "words ends")
CREDIT = tuple(listed(_FILE["credit"][name]) for name in ("deposits", "costs"))
KEY_OWNERS, KEY_WORDS, KEYS = (listed(_FILE["keys"][name]) for name in ("owners", "words", "whole"))
BANK_CODES: Sequence[tuple[str, str, str]] = _FILE["bank_codes"]["codes"]
COUNTRIES: Mapping[str, str] = _FILE["iban_lengths"]
CURRENCIES: Mapping[str, str] = {
    **{code.lower(): code for code in listed(_FILE["currency_codes"]["codes"])},
    **{word: code for code, words in _FILE["currencies"].items() for word in listed(words)},
}
"""Spelling of a currency in the header of an amount -> ISO 4217."""
GRAMMAR = [
    [cell.strip() for cell in line.split("|")]
    for line in _FILE["grammar"]["lines"].splitlines()
    if "|" in line and not line.startswith("#")
]
"""What, rule, groups of cues, other cues and options of each line."""
PRODUCTS: Sequence[Mapping[str, Any]] = _FILE["products"]  # headers of single products and their meanings
COUNTED = {
    language: (listed(words["before"]), listed(words["what"]))
    for language, words in _FILE["footers"]["counted"].items()
}
"""Language -> words that precede the name of counted things, and such names."""
COUNTS = (
    *listed(_FILE["footers"]["counts"]),
    *(f"{first} {what}" for before, counted in COUNTED.values() for what in counted for first in before),
)
