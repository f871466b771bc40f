"""What payment files call the two account types of Confirmation of Payee."""

import re
from collections.abc import Mapping

import polars as pl

from pipeline.rules.selected_values import replaced
from schemas.cop import AccountType

WORDS: Mapping[str, AccountType] = {
    "personal": AccountType.PERSONAL,
    "individual": AccountType.PERSONAL,
    "person": AccountType.PERSONAL,
    "private": AccountType.PERSONAL,
    "business": AccountType.BUSINESS,
    "company": AccountType.BUSINESS,
    "corporate": AccountType.BUSINESS,
    "institution": AccountType.BUSINESS,
    "organisation": AccountType.BUSINESS,
    "organization": AccountType.BUSINESS,
}
"""Word in lower case -> the account type it means."""

PRODUCTS = ("current", "savings", "saving", "checking", "chequing", "cheque", "deposit")
"""What an account is for, which does not tell who holds it: the type of the profile applies."""
_ACCOUNT = r"\s+account$"
_LEGEND = re.compile(r"\b([0-9A-Za-z]{1,2})\s*[=:]\s*([A-Za-z]+)")


def read_account_types(written: pl.Series) -> pl.Series:
    """The account types that are meant; null for a kind of product; anything else as it is."""
    return replaced(written, where=~written.is_in(list(AccountType)), by=_read)


def by_legend(written: pl.Series, header: str) -> pl.Series:
    """Account types where a header such as `Account type (1=Personal, 2=Business)` explains short codes.

    Other cells are read as they are anywhere else.
    """
    legend = {
        code.lower(): WORDS[word.lower()].value
        for code, word in _LEGEND.findall(header)
        if word.lower() in WORDS
    }
    if not legend:
        return written
    return written.str.to_lowercase().replace_strict(legend, default=written)


def _read(written: pl.Series) -> pl.Series:
    words = _word(written)
    meant = words.replace_strict(WORDS, default=written)
    return meant.set(words.is_in(PRODUCTS), None)


def _word(written: pl.Series) -> pl.Series:
    return written.str.to_lowercase().str.replace(_ACCOUNT, "")
