"""Clean payments: normalise different spellings of the same value."""

import polars as pl

from pipeline.rules import currencies, identifiers
from pipeline.rules.account_types import read_account_types
from pipeline.rules.amounts import Amounts, read_amounts
from pipeline.rules.payee_names import clean_names
from pipeline.rules.placeholders import without_words
from pipeline.rules.selected_values import replaced, without

_FREE_TEXTS = ("secondary_reference", "organisation_id", "organisation_id_issuer")
_NOT_IN_SORT_CODES = rf"^\s*(?i:GBDSC|SC)|[\s{identifiers.HYPHENS}\x{{00ad}}]"
"""Hyphens of any kind, and prefixes that clearing systems put before the digits."""
_CODES = ("bic", "organisation_bic", "organisation_id_scheme")


def cleaned(payments: pl.DataFrame) -> pl.DataFrame:
    """Put fields of `Payments` into the form that rules and APIs expect; other values are unchanged."""
    amounts = read_amounts(payments["amount"])
    names = clean_names(payments["name"])
    account_types = read_account_types(payments["account_type"])
    clean = payments.with_columns(
        names.text,
        names.done.alias("name_done"),
        *(normalized(payments[column]) for column in _FREE_TEXTS),
        *(identifiers.compact(payments[column]) for column in _CODES),
        identifiers.compact_ibans(payments["iban"]),
        identifiers.compact_leis(payments["lei"]),
        account_types,
        (payments["account_type"].is_not_null() & account_types.is_null()).alias("is_product"),
        without(_NOT_IN_SORT_CODES, payments["sort_code"]),
        without(r"\s", payments["account_number"]),
        amounts.text,
        amounts.money.alias("money"),
    )
    bics = {field: without_words(identifiers.bic11(clean[field])) for field in ("bic", "organisation_bic")}
    return clean.with_columns(
        bics["bic"],
        bics["organisation_bic"],
        identifiers.bic_faults(bics["bic"]),
        identifiers.bic_faults(bics["organisation_bic"]).alias("organisation_bic_fault"),
        identifiers.iban_faults(clean["iban"]),
        identifiers.lei_faults(clean["lei"]),
        *_currencies(payments, amounts),
    )


def _currencies(payments: pl.DataFrame, amounts: Amounts) -> tuple[pl.Series, ...]:
    """Return the currency of every payment, and its fault or its amount's."""
    given = currencies.clean_currencies(payments["currency"])
    currency = currencies.completed(given, amounts.mark, currencies.of_uk_accounts(payments))
    faults = currencies.amount_faults(amounts.money, amounts.mark, given, currency)
    return currency, currencies.currency_faults(currency), faults.alias("amount_fault")


def normalized(texts: pl.Series) -> pl.Series:
    """Normalise Unicode (NFC), so that what looks the same is the same question; null if blank."""
    if not texts.count():
        return texts
    # As many bytes as characters of the stripped text: ASCII only, without surrounding white space.
    is_tidy = (texts.str.len_bytes() == texts.str.strip_chars().str.len_chars()) & (texts != "")
    return replaced(
        texts, where=~is_tidy, by=lambda some: some.str.normalize("NFC").str.strip_chars().replace("", None)
    )
