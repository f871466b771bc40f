"""Read the words of payment files for Confirmation of Payee's two account types, in all header languages."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from importlib.resources import files

import polars as pl

from pipeline.rules.selected_values import replaced
from schemas.cop import AccountType


def _tokens(text: str) -> tuple[str, ...]:
    """Return the words of a text without case and punctuation."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text.casefold())))


def _spellings(text: str) -> set[tuple[str, ...]]:
    """Return the words of a text with and without accents and umlauts."""
    text = text.casefold()
    bare = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    plain = "".join(letter for letter in bare if not unicodedata.combining(letter))
    return {_tokens(spelling) for spelling in (text, text.translate(_UMLAUTS), plain)}


_LETTERS = str.maketrans({"ł": "l", "æ": "ae"})
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_WORD = re.compile(r"[^\W_]+")


def _phrases(words: str) -> frozenset[tuple[str, ...]]:
    return frozenset(spelling for phrase in words.split(",") for spelling in _spellings(phrase))


_WORDS = tomllib.loads((files(__package__) / "account_types.toml").read_text("utf-8"))
_TYPES: Mapping[tuple[str, ...], AccountType] = {
    **dict.fromkeys(_phrases(_WORDS["personal"]), AccountType.PERSONAL),
    **dict.fromkeys(_phrases(_WORDS["business"]), AccountType.BUSINESS),
}
"""The words of a cell -> the account type."""
_PRODUCTS = _phrases(_WORDS["product"])
"""Account products: they do not show who holds the account, so the profile's default applies."""
_ACCOUNTS = _phrases(_WORDS["account"])
_LEGEND = re.compile(r"\b([0-9A-Za-z]{1,2})\s*[=:]\s*([A-Za-z]+)")


def account_type_in(cell: str) -> AccountType | None:
    """Return the account type that a whole cell means; None if it means none or both.

    >>> [account_type_in(cell) for cell in ("Business Current", "Privat", "Savings", "Private Limited")]
    [<AccountType.BUSINESS: 'Business'>, <AccountType.PERSONAL: 'Personal'>, None, None]
    """
    words = [word for word in _tokens(cell) if (word,) not in _ACCOUNTS | _PRODUCTS]
    whole = _TYPES.get(tuple(words))
    if whole is not None:
        return whole
    kinds = {_TYPES.get((word,)) for word in words}
    return kinds.pop() if len(kinds) == 1 else None


def tells_no_holder(cell: str) -> bool:
    """True if a cell describes an account but not its kind of holder: a product, or words of both types.

    >>> [tells_no_holder(cell) for cell in ("Savings account", "Personal Business", "Business", "Vendor")]
    [True, True, False, False]
    """
    if account_type_in(cell) is not None:
        return False
    words = {(word,) for word in _tokens(cell)}
    kinds = {_TYPES[word] for word in words & _TYPES.keys()}
    return len(kinds) == len(AccountType) or (words <= _ACCOUNTS | _PRODUCTS and bool(words & _PRODUCTS))


def read_account_types(written: pl.Series) -> pl.Series:
    """Return the account types of cells, null if a cell shows no kind of holder; unknown words stay."""
    return replaced(written, where=~written.is_in(list(AccountType)), by=_read)


def _read(written: pl.Series) -> pl.Series:
    # Plain text: polars would turn enum members into an enum type that refuses all other words.
    meant = {
        cell: None if tells_no_holder(cell) else str(account_type_in(cell) or cell)
        for cell in written.drop_nulls().unique()
    }
    return written.replace_strict(meant, default=None, return_dtype=pl.String)


def by_legend(written: pl.Series, header: str) -> pl.Series:
    """Read account types by a header such as `Account type (1=Personal, 2=Business)`, others as usual."""
    legend = {
        code.lower(): kind.value
        for code, word in _LEGEND.findall(header)
        if (kind := account_type_in(word)) is not None
    }
    if not legend:
        return written
    return written.str.to_lowercase().replace_strict(legend, default=written)
