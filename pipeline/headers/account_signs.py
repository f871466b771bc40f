"""Find signs of the accounts' country in a table, other than digits, BIC and currency.

Signs are columns of one country's bank codes, such as IFSC or BSB, columns of bank countries, and headers
that say sort code. Only cells that look like the code count: `Routing` may also be a payment method.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import polars as pl

from pipeline.headers.cells import ColumnCells
from pipeline.headers.meaning import CANONICAL, Side, is_code_of_bank, is_column_of, meaning
from pipeline.headers.spelling import fold, is_ours, tokens_of, words_with
from pipeline.headers.words import BANK_CODES, COUNTRY_HEADERS, Cue, listed
from pipeline.rules.account_country import UK, AccountSigns
from pipeline.rules.identifiers import HYPHENS

_VALUE_WORDS = ("value", "number", "no")
_KINDS_MAX = 20


class _BankCode(NamedTuple):
    """A bank code that one country uses."""

    country: str
    headers: tuple[str, ...]  # folded words; each of its headers has one of them
    look: str  # pattern of a cell without blanks and hyphens


_BANK_CODES = [_BankCode(country, listed(headers), look) for country, headers, look in BANK_CODES]
_OF_OTHER_LENGTHS = [code for code in _BANK_CODES if code.country in ("DE", "US")]
_NAMED_CODE = r"^(?i:GBDSC|SC)[\s0-9]"  # a sort code after the name of its clearing system
_NOT_IN_CODES = rf"[\s{HYPHENS}]"
_COUNTRY, _BANK_COUNTRIES = (frozenset(map(fold, words)) for words in COUNTRY_HEADERS)
_UK_WORDS = frozenset({"uk", "gb"})


def account_signs(
    cells: pl.DataFrame,
    payments: pl.DataFrame,
    sources: Mapping[str, Sequence[Sequence[str]]],
    *,
    mapping: Mapping[str, str],
    country: str | None,
) -> AccountSigns:
    """Find the signs of each account's country in a table.

    `payments` holds the fields that were read from `cells`, and `sources` their columns. A column mapped by
    the user as `sort_code` holds sort codes; `country` is the user's, for all accounts other than IBANs.
    """
    has_code = payments["sort_code"].is_not_null()
    nothing = pl.Series([False], dtype=pl.Boolean).new_from_index(0, payments.height)
    says = has_code if _all_say_sort_code(sources.get("sort_code", ())) else nothing
    if _all_say_sort_code(sources.get("account_number", ())):
        says = says | payments["account_number"].is_not_null()
    if (payments["sort_code"] >= "A").any():
        says = says | payments["sort_code"].str.contains(_NAMED_CODE).fill_null(value=False)
    is_stated = has_code if "sort_code" in mapping else nothing
    banks = _bank_countries(cells)
    says_countries = any(_COUNTRY & set(tokens_of(header)) for header in cells.columns)
    is_of_many = banks.count() or payments["bic"].count() or payments["currency"].count() or says_countries
    if _all_say_sort_code(sources.get("sort_code", ())) and not is_of_many:
        # If nothing in the file points to another country, a row without a code is like the others.
        says = says | payments["account_number"].is_not_null()
    return AccountSigns(banks, says, is_stated, country)


def _all_say_sort_code(sources: Sequence[Sequence[str]]) -> bool:
    headers = [header for parts in sources for header in parts]
    return bool(headers) and all(says_sort_code(header) for header in headers)


def says_sort_code(header: str) -> bool:
    """True if a header says that its cells are, or hold, UK sort codes.

    >>> [says_sort_code(header) for header in ("Sort code", "UK account number", "Sort code/BSB")]
    [True, True, False]
    """
    if is_code_elsewhere(header):
        return False
    return is_column_of(Cue.SORT_CODE, header) or bool(_UK_WORDS & set(tokens_of(header)))


def is_code_elsewhere(header: str) -> bool:
    """True if a header names the bank code of one country other than the UK.

    >>> [is_code_elsewhere(header) for header in ("BSB", "Routing number or sort code")]
    [True, False]
    """
    # US routing numbers differ in length, so a header may name them next to sort codes.
    return any(code.country != "US" and _has(header, code) for code in _BANK_CODES)


def may_hold_sort_codes(header: str) -> bool:
    """True if a header names bank codes of any country, or of one whose codes differ in length.

    >>> [may_hold_sort_codes(header) for header in ("BLZ", "Routing number", "Bankl", "BSB")]
    [True, True, True, False]
    """
    if is_ours(header) or meaning(header).what is not None:
        return False
    return is_code_of_bank(header) or any(_has(header, code) for code in _OF_OTHER_LENGTHS)


def are_of_uk(cells: ColumnCells) -> pl.Series:
    """True for each row with a sign for the UK: pounds, or the BIC or country of a UK bank."""
    found = [pl.repeat(False, cells.row_count, eager=True)]
    for header in cells.headers:
        meant, text = meaning(header), cells.text(header).str.to_uppercase()
        if meant.what == "bic" and meant.side is not Side.OURS:
            found.append(text.str.slice(4, 2).is_in(UK))
        elif meant.what == "currency" or meant.currency == "GBP":
            found.append(text.is_in(("GBP", "£")) | (meant.currency == "GBP"))
        elif _says_bank_country(header):
            found.append(_countries(text).is_in(UK))
    return pl.select(pl.any_horizontal(each.fill_null(value=False) for each in found)).to_series()


def kinds_of_codes(header: str, cells: ColumnCells) -> pl.Series | None:
    """Country of each cell's code if another column names its kind (`routing_code_type`); else None."""
    words = [word for word in tokens_of(header) if word not in _VALUE_WORDS]
    kinds = [
        other
        for other in cells.headers
        if other != header and _says_kind(other) and [*filter(_is_no_kind, tokens_of(other))] == words
    ]
    return _countries_of_kinds(cells.text(kinds[0])) if len(kinds) == 1 else None


def _is_no_kind(word: str) -> bool:
    return word not in words_with(Cue.TYPE)


def _says_kind(header: str) -> bool:
    return not all(map(_is_no_kind, tokens_of(header)))


def _countries_of_kinds(kinds: pl.Series) -> pl.Series | None:
    """Return the country of each kind of code; None if the column names no known kind."""
    named = kinds.drop_nulls().unique()
    if len(named) > _KINDS_MAX:
        return None
    countries = {kind: country for kind in named if (country := _country_of_kind(kind)) is not None}
    return kinds.replace_strict(countries, default=None, return_dtype=pl.String) if countries else None


def _country_of_kind(kind: str) -> str | None:
    of_code = next((code.country for code in _BANK_CODES if _has(kind, code)), None)
    return "GB" if is_column_of(Cue.SORT_CODE, kind) else of_code


def _has(header: str, code: _BankCode) -> bool:
    folded, tokens = fold(header), set(tokens_of(header))
    return any(word in tokens or (len(word) > 3 and word in folded) for word in code.headers)


def _bank_countries(cells: pl.DataFrame) -> pl.Series:
    found: list[pl.Expr] = []
    stated: list[pl.Expr] = []
    texts = ColumnCells(cells)
    for header in cells.columns:
        if (meant := meaning(header)).rule == CANONICAL or meant.side is Side.OURS or is_ours(header):
            continue
        for code in _BANK_CODES:
            if _has(header, code):
                look = texts.text(header).str.replace_all(_NOT_IN_CODES, "").str.contains(code.look)
                found.append(pl.when(look).then(pl.lit(code.country)))
        if _says_kind(header) and (kinds := _countries_of_kinds(texts.text(header))) is not None:
            found.append(pl.lit(kinds))
        if _says_bank_country(header):
            stated.append(pl.lit(_countries(texts.text(header))))
    found = [*(pl.when(~of_bank.is_in(UK)).then(of_bank) for of_bank in stated), *found, *stated]
    if not found:
        return pl.Series([None], dtype=pl.String).new_from_index(0, cells.height)
    return pl.select(pl.coalesce(*found)).to_series()


def _says_bank_country(header: str) -> bool:
    tokens = set(tokens_of(header))
    of_bank = {*words_with(Cue.BANK), *words_with(Cue.ACCOUNT), "bankkonto", "konto"}
    return fold(header) in _BANK_COUNTRIES or bool(tokens & _COUNTRY and tokens & of_bank)


def _countries(names: pl.Series) -> pl.Series:
    """Return the country code for each code or English name of a country; null for other words."""
    words = names.str.strip_chars().str.to_lowercase()
    return words.replace_strict(_country_names(), default=None, return_dtype=pl.String)


@cache
def _country_names() -> dict[str, str]:
    import pycountry

    names = {**dict.fromkeys(("uk", "england", "scotland", "wales", "northern ireland"), "GB"), "usa": "US"}
    for country in pycountry.countries:
        for name in (country.alpha_2, country.alpha_3, country.name, getattr(country, "common_name", "")):
            names.setdefault(name.lower(), country.alpha_2)
    return names
