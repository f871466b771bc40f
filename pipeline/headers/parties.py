"""Find the party that a column belongs to, if a file has several: a landlord's account is not the tenant's.

Also find the column of payees' keys in the payer's own system, such as employee numbers.
"""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from pipeline.frames import Original, Payments
from pipeline.headers.meaning import meaning
from pipeline.headers.spelling import cue_of, cues_of, fold, is_known, stem, tokens_of, words_with
from pipeline.headers.words import KEY_OWNERS, KEY_WORDS, KEYS, THINGS, Cue

_NAME_ENDS = ("name", "naam", "namn", "navn", "nimi", "nome")
"""Endings that mark a compound word as a name, such as `Vereinsname`."""
_STEM_LENGTH = 8
"""Number of first letters that the forms of a word share, such as `ιδιοκτήτης` and `ιδιοκτήτη`."""
_NO_PARTIES = frozenset({Cue.BANK, Cue.MESSAGE, Cue.REFERENCE, Cue.DATE, Cue.OTHER_PERSON, Cue.TYPE})
"""Words that make an unknown word next to them a text, a kind, a bank or a party that is not paid."""
_OF_PAYMENTS = {Cue.PAYMENT, Cue.MESSAGE, Cue.FULL, Cue.FILLER}  # `payment details` alone is a text
_THINGS = frozenset(map(fold, THINGS))
_RANKS = {
    **{f"{who}{which}": rank for rank, who in enumerate(KEY_OWNERS) for which in KEY_WORDS},
    **dict.fromkeys(map(fold, KEYS), 0),
}


@lru_cache(maxsize=4_000)
def party_of(header: str) -> str | None:
    """Return the party that a header names, if any: vendors are suppliers, tenants are no landlords.

    >>> party_of("Landlord's IBAN"), party_of("Name of tenant"), party_of("IBAN")
    ('landlord', 'tenant', None)
    >>> party_of("Vendor") == party_of("Supplier IBAN")
    True
    """
    subject = meaning(header).subject
    if subject is not Cue.PARTY:
        return None if subject is None else subject.value
    # In `Partner organisation` only the first word is a party, though the other begins like `organiser`.
    folded = "".join(token for token in tokens_of(header) if cue_of(token) is Cue.PARTY) or fold(header)
    stems = (stem(word)[:_STEM_LENGTH] for word in words_with(Cue.PARTY))
    return max((one for one in stems if one in folded), key=len, default=None)


def names_unknown_party(header: str) -> bool:
    """True if a header is for names of a party that it gives in unknown words.

    >>> [names_unknown_party(header) for header in ("Zorblex name", "Zorblex", "Project name")]
    [True, False, False]
    """
    return names_payment(header) or (
        is_of_unknown(header)
        and any(token in words_with(Cue.NAME) or _ends_in_name(token) for token in tokens_of(header))
    )


def names_payment(header: str) -> bool:
    """True if a header has just a name and a word for payments, as `payout_name` does; its cells decide."""
    return beside_payment(header) in ({Cue.NAME}, {Cue.COMPANY}, {Cue.COMPANY, Cue.NAME})


def beside_payment(header: str) -> frozenset[Cue]:
    """Return the cues of a header next to a word for payments; none without such a word."""
    is_of_payment = any(cue_of(token) is Cue.PAYMENT for token in tokens_of(header))
    return cues_of(header) - _OF_PAYMENTS if is_of_payment else frozenset()


def names_unknown_payee(header: str) -> bool:
    """True if a header names a payee, but otherwise has unknown words only.

    >>> [names_unknown_payee(header) for header in ("Garnishee payee", "Payee", "Payee city")]
    [True, False, False]
    """
    return is_of_unknown(header) and any(token in words_with(Cue.THEIRS) for token in tokens_of(header))


def is_of_unknown(header: str) -> bool:
    """True if a header has an unknown word and no word for a thing.

    >>> [is_of_unknown(header) for header in ("Zorblex", "Zorblex city", "Payee")]
    [True, False, False]
    """
    if meaning(header).what is not None:
        return False
    tokens = tokens_of(header)
    parts = (part for token in tokens for part in (token, *_ends_in_name(token)))
    is_thing = any(part in _THINGS or part.removesuffix("s") in _THINGS for part in parts)
    return not is_thing and not all(map(is_known, tokens)) and _NO_PARTIES.isdisjoint(map(cue_of, tokens))


def _ends_in_name(token: str) -> list[str]:
    """Return the part before `name` in a single word such as `Vereinsname`."""
    return [stem for end in _NAME_ENDS if (stem := token.removesuffix(end)) not in {token, ""}]


def without_name(token: str) -> str:
    """Return a word without the ending `name`.

    >>> without_name("vereinsname"), without_name("verein"), without_name("name")
    ('vereins', 'verein', 'name')
    """
    return next(iter(_ends_in_name(token)), token)


def payee_id_header(headers: Sequence[str]) -> str | None:
    """Return the header of the column that distinguishes payees, or None.

    Of several, the first by `KEY_OWNERS` and then in the file; only for the comparison with an earlier file.

    >>> payee_id_header(["Name", "Employee No.", "Sort code"]), payee_id_header(["Name", "Payment id"])
    ('Employee No.', None)
    """
    known = [(_RANKS[fold(header)], index) for index, header in enumerate(headers) if fold(header) in _RANKS]
    return headers[min(known)[1]] if known else None


def payee_ids(original: pl.DataFrame) -> pl.Series:
    """Return the payee ID in the payer's system for each row; nulls if no text or number column has it."""
    header = payee_id_header(original.columns)
    kind = None if header is None else original.schema[header]
    is_text = kind in (pl.String, pl.Categorical, pl.Enum) or (kind is not None and kind.is_integer())
    ids = original[header].cast(pl.String) if header is not None and is_text else None
    return pl.Series([None] * original.height, dtype=pl.String) if ids is None else ids


def is_list_of_payees(payments: Payments, original: Original) -> bool:
    """True if a table lists payees, like a vendor master file: it has their keys and no amounts."""
    has_amounts = payments["amount"].count() > 0
    return not has_amounts and payee_id_header(original.columns) is not None
