"""Clean columns of identifiers, and find the fault of each value: the code of its first broken rule, or null.

Sources: ISO 13616 (IBAN; country structures from schwifty's copy of the SWIFT registry), ISO 9362
(BIC), ISO 3166 (its countries, from pycountry), ISO 17442 (LEI), ISO 7064 MOD 97-10 (check digits).
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import product
from string import ascii_uppercase

import polars as pl

from pipeline.rules.selected_values import replaced, without

SCIENTIFIC = r"^[0-9]+([.,][0-9]+)?[eE]\+?[0-9]+$|^[0-9]+[.,]0+$"
"""A long number in a spreadsheet's scientific notation, whose digits are lost."""

MASKED_FROM_CHARS = 8  # shorter accounts are masked completely, because the visible end would be most of them
BIC = r"^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$"
HYPHENS = r"\p{Pd}\x{2212}\x{2043}\x{02D7}"  # all that people and programs use, in a character class
_IBAN_LABEL = rf"^(?i:IBAN)[:./{HYPHENS}]*([A-Za-z]{{2}}[0-9])"
_IBAN_PUNCTUATED = rf"^[A-Za-z]{{2}}.*[./{HYPHENS}]"
_KOSOVO = "XK"  # a code in use for a country that has none in ISO 3166
_WITHIN = {
    "FI": ["AX"],
    "FR": ["BL", "GF", "GP", "MF", "MQ", "NC", "PF", "PM", "RE", "TF", "WF", "YT"],
    "GB": ["GG", "IM", "JE"],
}
"""Countries whose IBANs are also used by territories with their own BICs (SWIFT IBAN registry)."""
_NEVER_ISSUED = ["00", "01", "99"]  # never 98 minus a remainder; modulo 97 they equal 97, 98 and 02
_LETTERS = list(ascii_uppercase)
_LETTER_VALUES = [str(10 + position) for position in range(26)]
_HALF_DIGITS = 36  # the largest half for which remainder * 10**half still fits 128 bits


def compact(codes: pl.Series) -> pl.Series:
    """Remove white space from codes and raise ASCII letters to upper case."""
    return replaced(codes, where=codes.str.contains("[^A-Z0-9]"), by=_compact)


def _compact(codes: pl.Series) -> pl.Series:
    bare = codes.str.replace_all(r"\s", "")
    is_plain = bare.str.contains(r"^[\x21-\x7e]+$")
    return bare.str.to_uppercase().zip_with(is_plain, bare)


def compact_ibans(ibans: pl.Series) -> pl.Series:
    """Compact IBANs without label and punctuation; dots stay in numbers, to keep them recognisable."""
    return replaced(ibans, where=ibans.str.contains("[^A-Z0-9]|^IBAN"), by=_compact_ibans)


def compact_leis(leis: pl.Series) -> pl.Series:
    """Compact LEIs and remove the hyphens that people write."""
    return compact(without(f"[{HYPHENS}]", leis))


def _compact_ibans(ibans: pl.Series) -> pl.Series:
    bare = ibans.str.replace_all(r"\s", "").str.replace(_IBAN_LABEL, "$1")
    plain = without(f"[./{HYPHENS}]", bare, where=bare.str.contains(_IBAN_PUNCTUATED))
    return _compact(plain)


def bic11(bics: pl.Series) -> pl.Series:
    """Return BICs of eleven characters; one of eight gets XXX, the head office's branch code."""
    return replaced(bics, where=bics.str.len_chars() == 8, by=lambda short: short + "XXX")


@cache
def countries() -> frozenset[str]:
    """Return the two-letter countries that a BIC can have."""
    import pycountry

    return frozenset(country.alpha_2 for country in pycountry.countries) | {_KOSOVO}


def bic_faults(bics: pl.Series) -> pl.Series:
    """Find the fault of every compact BIC: `bic_fault`, which is FORMAT, COUNTRY or null."""
    return _faults(bics, _bic_faults).alias("bic_fault")


def _bic_faults(bics: pl.Series) -> pl.Series:
    faults = _where(~bics.str.slice(4, 2).is_in(sorted(countries())), "COUNTRY")
    return faults.set(~bics.str.contains(BIC), "FORMAT")


def other_countries(bics: pl.Series, ibans: pl.Series) -> pl.Series:
    """True if a BIC and the IBAN next to it have different countries; false if either is missing."""
    if not bics.count():
        return pl.repeat(False, bics.len(), dtype=pl.Boolean, eager=True)
    ours, theirs = ibans.str.slice(0, 2), bics.str.slice(4, 2)
    differs = (ours != theirs).fill_null(value=False)
    for country, territories in _WITHIN.items():
        differs &= ~((ours == country) & theirs.is_in(territories)).fill_null(value=False)
    return differs


def remainder_97(texts: pl.Series) -> pl.Series:
    """Return codes modulo 97, with A as 10 to Z as 35; 72 digits are read in halves that fit an integer."""
    # As a column of its own: polars would compute the digits again at each use.
    digits = texts.str.replace_many(_LETTERS, _LETTER_VALUES)
    halves = pl.DataFrame({"high": digits.str.head(-_HALF_DIGITS), "low": digits.str.tail(_HALF_DIGITS)})
    high = pl.col("high").replace("", "0").cast(pl.Int128, strict=False)
    low = pl.col("low").cast(pl.Int128, strict=False)
    return halves.select((high % 97 * pl.lit(10**_HALF_DIGITS, dtype=pl.Int128) + low) % 97).to_series()


def iban_faults(ibans: pl.Series) -> pl.Series:
    """Return `iban_fault`: SCIENTIFIC, FORMAT, COUNTRY, LENGTH, STRUCTURE, CHECKSUM or, if none, null."""
    return _faults(ibans, _iban_faults).alias("iban_fault")


def _iban_faults(ibans: pl.Series) -> pl.Series:
    # A structure covers length and characters, which are checked separately only if it does not fit.
    structure = "|".join(f"{country}[0-9]{{2}}{body}" for country, (_, body) in iban_structures().items())
    is_structured = ibans.str.contains(f"^(?:{structure})$")
    is_checked = _check_digits_fit(ibans.str.slice(4) + ibans.str.slice(0, 4), ibans.str.slice(2, 2))
    faults = _where(~is_checked, "CHECKSUM")
    return replaced(
        faults, where=~is_structured, by=lambda _: _structure_faults(ibans.filter(~is_structured))
    )


def _structure_faults(ibans: pl.Series) -> pl.Series:
    """Find the faults of IBANs that fit no country's structure."""
    iban = pl.col("iban")
    lengths = {country: length for country, (length, _) in iban_structures().items()}
    length = iban.str.slice(0, 2).replace_strict(lengths, default=None, return_dtype=pl.UInt32)
    fault = (
        pl.when(iban.str.contains(SCIENTIFIC))
        .then(pl.lit("SCIENTIFIC"))
        .when(~iban.str.contains(r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$"))
        .then(pl.lit("FORMAT"))
        .when(length.is_null())
        .then(pl.lit("COUNTRY"))
        .when(iban.str.len_chars() != length)
        .then(pl.lit("LENGTH"))
        .otherwise(pl.lit("STRUCTURE"))
    )
    return ibans.alias("iban").to_frame().select(fault).to_series()


def lei_faults(leis: pl.Series) -> pl.Series:
    """Find the fault of every compact LEI: `lei_fault`, which is FORMAT, CHECKSUM or null."""
    return _faults(leis, _lei_faults).alias("lei_fault")


def _lei_faults(leis: pl.Series) -> pl.Series:
    faults = _where(~_check_digits_fit(leis, leis.str.slice(18)), "CHECKSUM")
    return faults.set(~leis.str.contains(r"^[A-Z0-9]{18}[0-9]{2}$"), "FORMAT")


def _faults(codes: pl.Series, faults_of: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Find faults only among non-null codes, because most columns of most files are empty."""
    return replaced(codes, where=codes.is_not_null(), by=faults_of)


def _where(is_broken: pl.Series, fault: str) -> pl.Series:
    return pl.select(pl.when(is_broken).then(pl.lit(fault))).to_series()


def _check_digits_fit(texts: pl.Series, check_digits: pl.Series) -> pl.Series:
    return ((remainder_97(texts) == 1) & ~check_digits.is_in(_NEVER_ISSUED)).fill_null(value=False)


@cache
def iban_structures() -> dict[str, tuple[int, str]]:
    """Return country -> length of its IBANs, and the pattern after the check digits."""
    from schwifty import registry
    from schwifty.exceptions import SchwiftyException

    structures = {}
    for letters in product(ascii_uppercase, repeat=2):
        country = "".join(letters)
        try:
            spec = registry.get_iban_spec(country)
        except (KeyError, SchwiftyException):
            continue
        # Compact codes are in capitals.
        body = spec.regex.pattern.strip("^$").replace(r"\d", "[0-9]").replace("[A-Za-z0-9]", "[A-Z0-9]")
        structures[country] = (spec.iban_length, body)
    return structures


def masked(account: str | None) -> str:
    """Mask an account except its end (and an IBAN's country); a short account is masked completely.

    >>> masked("12345678"), masked("DE35 3704 0044 0084 2100 77"), masked("1234567"), masked(None)
    ('**5678', 'DE**0077', '** (7)', '')
    """
    if not account:
        return ""
    is_plain = account.isascii() and account.isalnum()
    letters = account if is_plain else re.sub("[^0-9A-Za-z]", "", account)
    if len(letters) < MASKED_FROM_CHARS:
        return f"** ({len(''.join(account.split())):,})"
    country = letters[:2].upper() if letters[:2].isalpha() else ""
    return f"{country}**{letters[-4:].upper()}"


_HEAD_OFFICE = 8  # characters of a BIC without its branch


def bic_column_is_none(written: pl.Series) -> bool:
    """True if no value looks like a BIC, or one word that others surround: BUSINESS looks like Niger's."""
    codes = bic11(compact(written.drop_nulls()))
    possible = codes.filter(bic_faults(codes).is_null()).unique()
    if codes.is_empty() or possible.len() > 1:
        return False
    if possible.is_empty():
        return True
    bic = possible.item()
    if codes.len() == 1 or not bic.isalpha() or not bic.endswith("XXX"):
        return False
    from schwifty import registry

    return all((bank.bic or "")[:_HEAD_OFFICE] != bic[:_HEAD_OFFICE] for bank in registry.get_all_banks())
