"""Find the country of a domestic account, which counts as a UK account only if a sign shows it.

A dozen countries have accounts of fourteen digits, and as many have bank codes of six. The user's choice
comes first, then signs against the UK, then signs for it. Sources: ISO 9362, ISO 4217, the SWIFT IBAN
registry, and the bank codes that each country's clearing systems publish.
"""

from typing import NamedTuple

import polars as pl

from pipeline.rules.amounts import OF_SEVERAL, read_amounts
from pipeline.rules.currencies import completed, currencies, read_currencies
from pipeline.rules.identifiers import HYPHENS, bic11, bic_faults, compact, iban_structures
from pipeline.rules.placeholders import without_words
from pipeline.rules.unasked import ACCOUNT_ELSEWHERE, ACCOUNT_SIGNS_DIFFER, COUNTRIES_KNOWN, elsewhere

UK = ("GB", "JE", "GG", "IM")  # the United Kingdom and the islands whose banks have UK sort codes
_UK_CURRENCIES = ("GBP", "EUR", "USD")  # UK accounts are paid in these; others speak against the UK
_SEPARATORS = rf"[\s.,;{HYPHENS}]"
_BOTH = r"^[0-9]{6}/?[0-9]{8}$"
_BOTH_WRITTEN = rf"^\s*[0-9]{{2}}[{HYPHENS}][0-9]{{2}}[{HYPHENS}][0-9]{{2}}[\s{HYPHENS}/,;]*[0-9]{{8}}\s*$"
"""A sort code as written in the UK, followed by its account number."""
_REVERSED = rf"^\s*([0-9]{{8}})[\s{HYPHENS}/]+([0-9]{{2}}[{HYPHENS}]?[0-9]{{2}}[{HYPHENS}]?[0-9]{{2}})\s*$"
"""An account number followed by its sort code."""
_IRISH_CODE = r"^9[0-9]{5}"
_SHAPES = {
    "PL": r"^[0-9]{26}$",
    "CZ": r"^([0-9]{1,6})?[0-9]{2,10}/[0-9]{4}$",
    "NO": r"^[0-9]{11}$",
}
"""Country -> pattern of its domestic accounts, if no other country's accounts look similar."""
_HUNGARIAN = rf"^\s*[0-9]{{8}}([\s{HYPHENS}]?[0-9]{{8}}[\s{HYPHENS}]?|[\s{HYPHENS}])[0-9]{{8}}\s*$"
"""As written in Hungary; sixteen digits in any other form, such as New Zealand's, are of many countries."""
_NUMBER_LENGTHS = (6, 7, 8, 10, 12, 13, 14)
"""Number of digits in UK account numbers, with or without sort code, even if leading zeros are lost."""


class AccountSigns(NamedTuple):
    """Signs of each account's country, other than digits, BIC and currency."""

    bank_country: pl.Series  # two letters: by the bank's address, clearing system or clearing code
    says_sort_code: pl.Series  # true if the code next to the number, or before it, is called a sort code
    is_stated: pl.Series  # true if the user says that the account is a UK one
    country: str | None = None  # country of all accounts without an IBAN, as stated by the user

    def of_rows(self, rows: pl.Series) -> "AccountSigns":
        """Return the signs of some accounts."""
        return self._replace(
            bank_country=self.bank_country.gather(rows),
            says_sort_code=self.says_sort_code.gather(rows),
            is_stated=self.is_stated.gather(rows),
        )


class Located(NamedTuple):
    """Payments with separate sort codes and account numbers, and why some accounts are not checked."""

    payments: pl.DataFrame
    defects: pl.Series  # a key of `unasked.SENTENCES`; null if the account may be a UK one, or is an IBAN
    is_open: bool  # true if there are accounts other than IBANs and no sign shows that any is a UK account


_OPEN = "?"  # stands for an unknown country


def located(payments: pl.DataFrame, signs: AccountSigns) -> Located:
    """Find the accounts, each in the field that it looks like, that are or may be in another country."""
    nothing = pl.repeat(None, payments.height, dtype=pl.String, eager=True).alias("defect")
    # With their own sort code, paid in pounds, and without any sign against the UK.
    no_bank = payments["bic"].is_null() & signs.bank_country.is_null() & (signs.country is None)
    is_plain = no_bank & payments["sort_code"].is_not_null() & (payments["currency"] == "GBP")
    is_plain = is_plain.fill_null(value=False)
    rows = (payments["iban"].is_null() & ~is_plain).arg_true()
    rows = rows.filter(payments["account_number"].gather(rows).str.contains("[0-9]").fill_null(value=False))
    if rows.is_empty():
        return Located(payments, nothing, is_open=False)
    found = _judged(payments[rows], signs.of_rows(rows))
    split = found.select(pl.col("is_both") & pl.col("country").is_null()).to_series()
    defects = found["country"].replace_strict(
        {country: _defect(country) for country in found["country"].drop_nulls().unique()},
        default=None,
        return_dtype=pl.String,
    )
    is_open = bool((found["country"] == _OPEN).fill_null(value=False).all())
    if split.any():
        digits, at = found["digits"].filter(split), rows.filter(split)
        payments = payments.with_columns(
            payments["sort_code"].scatter(at, digits.str.head(6)),
            payments["account_number"].scatter(at, digits.str.slice(6)),
        )
    is_open &= not payments["iban"].count() and not is_plain.any()
    return Located(payments, nothing.scatter(rows, defects), is_open)


def _judged(some: pl.DataFrame, signs: AccountSigns) -> pl.DataFrame:
    """Return `digits` of domestic accounts, `is_both` (sort code and number) and `country`.

    The country is null if the account may be a UK one, `?` without any sign, and empty if it is unknown but
    not the UK.
    """
    written = some["account_number"].str.replace(_REVERSED, "$2 $1")
    without_blanks = written.str.replace_all(_SEPARATORS, "")
    code = some["sort_code"].str.replace_all(_SEPARATORS, "")
    is_both = (code.is_null() & without_blanks.str.contains(_BOTH)).fill_null(value=False)
    rows = pl.DataFrame(
        {
            "written": written,
            "digits": without_blanks.str.replace("/", "", literal=True).zip_with(is_both, without_blanks),
            "code": code,
            "is_both": is_both,
            "bic_country": _bic_countries(some["bic"]),
            "bank_country": signs.bank_country,
            "currency": _currencies(some),
            "says_sort_code": signs.says_sort_code,
            "is_stated": signs.is_stated,
        }
    )
    if signs.country is not None:
        word = None if signs.country in UK else signs.country
        return rows.select("digits", "is_both", country=pl.lit(word, pl.String))
    return rows.select("digits", "is_both", country=pl.when(~pl.col("is_stated")).then(_country()))


def _country() -> pl.Expr:
    """Return the country of an account, by signs against the UK, then by signs for it."""
    digits = pl.col("digits")
    is_uk_bank = pl.coalesce("bic_country", "bank_country").is_in(UK)
    says_uk = pl.col("says_sort_code") | (pl.col("is_both") & pl.col("written").str.contains(_BOTH_WRITTEN))
    code = pl.coalesce(pl.when(~pl.col("is_both")).then("code"), digits)
    is_irish = (pl.col("currency") == "EUR") & code.str.contains(_IRISH_CODE)
    may_be_uk = pl.col("is_both") | pl.col("code").is_not_null()
    is_like = {country: digits.str.contains(shape) for country, shape in _SHAPES.items()}
    is_like["HU"] = pl.col("written").str.contains(_HUNGARIAN)
    is_longer = digits.str.contains("^[0-9/]+$") & ~digits.str.len_chars().is_in(_NUMBER_LENGTHS)
    known: list[tuple[pl.Expr, pl.Expr]] = [
        (says_uk & ~pl.col("bic_country").is_in(UK), pl.lit(ACCOUNT_SIGNS_DIFFER)),
        *((~pl.col(bank).is_in(UK), pl.col(bank)) for bank in ("bic_country", "bank_country")),
        (~pl.col("currency").is_in(_UK_CURRENCIES), pl.col("currency").str.head(2).replace(OF_SEVERAL, "")),
        (is_irish & ~is_uk_bank.fill_null(value=False), pl.lit("IE")),
        *((~may_be_uk & is_of, pl.lit(country)) for country, is_of in is_like.items()),
        (says_uk | is_uk_bank | (pl.col("currency") == "GBP"), pl.lit("GB")),
        (may_be_uk, pl.lit(_OPEN)),
        (is_longer, pl.lit("")),
    ]
    first = pl.coalesce(pl.when(is_so.fill_null(value=False)).then(country) for is_so, country in known)
    return pl.when(first != "GB").then(first)


def _defect(verdict: str) -> str:
    """Return the key of the sentence about an account in a country; `?` means no sign, empty unknown."""
    if verdict == ACCOUNT_SIGNS_DIFFER:
        return verdict
    if verdict in COUNTRIES_KNOWN:
        return elsewhere(verdict)
    if not verdict:
        return ACCOUNT_ELSEWHERE
    return elsewhere("IBAN" if verdict in iban_structures() else "no IBAN")


def _bic_countries(bics: pl.Series) -> pl.Series:
    """Return the countries of the banks, by possible BICs."""
    if not bics.count():
        return bics
    codes = without_words(bic11(compact(bics)))
    return codes.str.slice(4, 2).set(bic_faults(codes).is_not_null(), None)


def _currencies(some: pl.DataFrame) -> pl.Series:
    """Return the currency of each amount, by its column or the mark next to it; null if unknown."""
    given = read_currencies(some["currency"])
    if given.null_count():
        nowhere = pl.repeat(False, some.height, eager=True)
        marks = read_amounts(some["amount"]).mark
        given = completed(given, marks, nowhere)
        # A sign for kronor or rupees does not show which currency it is, but it is not the UK's.
        given = given.zip_with(given.is_not_null() | marks.ne_missing(OF_SEVERAL), marks)
    if given.is_in(_UK_CURRENCIES).all():
        return given
    return given.set(~given.is_in([*sorted(currencies()), OF_SEVERAL]), None)
