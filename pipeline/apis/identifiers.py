"""The identifiers that the APIs accept: how each is cleaned, and what can be wrong with it.

Everything works on whole columns. A *fault* is the code of the first rule that a value breaks, or
null where it breaks none; the sentences that go with the codes belong to the validate stage.

Sources: ISO 13616 (IBAN; country structures from schwifty's copy of the SWIFT registry), ISO 9362
(BIC), ISO 17442 (LEI), ISO 7064 MOD 97-10 (check digits).
"""

from functools import cache
from itertools import product
from string import ascii_uppercase

import polars as pl

SCIENTIFIC = r"^[0-9]+([.,][0-9]+)?[eE]\+?[0-9]+$|^[0-9]+[.,]0+$"
"""What a spreadsheet makes of a long number: the digits are gone for good."""

BIC = r"^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$"
_NEVER_ISSUED = ["00", "01", "99"]
"""Check digits come out as 98 minus a remainder; these leave the same remainder as 97, 98 and 02."""
_LETTERS = list(ascii_uppercase)
_LETTER_VALUES = [str(10 + position) for position in range(26)]
_CHUNK_DIGITS = 15  # the largest chunk for which remainder * 10**chunk still fits 64 bits


def compact(column: str) -> pl.Expr:
    """A code as machines write it: no white space, upper case.

    Only plain letters are raised: Unicode would turn a dotless i into the I of another account.
    """
    bare = pl.col(column).str.replace_all(r"\s", "")
    return pl.when(bare.str.contains(r"^[\x21-\x7e]+$")).then(bare.str.to_uppercase()).otherwise(bare)


def bic11(column: str) -> pl.Expr:
    """A BIC of eleven characters; the head office's branch code XXX completes one of eight."""
    return (
        pl.when(pl.col(column).str.len_chars() == 8)
        .then(pl.concat_str(pl.col(column), pl.lit("XXX")))
        .otherwise(pl.col(column))
    )


def remainder_97(text: pl.Expr) -> pl.Expr:
    """The remainder modulo 97 of codes of digits and capital letters, A being 10 and Z 35.

    Leading zeros do not change a number, so every value is padded to one width and read in
    chunks that fit an integer: at most 35 characters, 70 digits.
    """
    digits = text.str.replace_many(_LETTERS, _LETTER_VALUES).str.zfill(5 * _CHUNK_DIGITS)
    remainder = pl.lit(0, dtype=pl.Int64)
    for start in range(0, 5 * _CHUNK_DIGITS, _CHUNK_DIGITS):
        chunk = digits.str.slice(start, _CHUNK_DIGITS).cast(pl.Int64, strict=False)
        remainder = (remainder * 10**_CHUNK_DIGITS + chunk) % 97
    return remainder


def iban_faults(ibans: pl.Series) -> pl.DataFrame:
    """The fault of every distinct IBAN.

    Args:
        ibans: compact IBANs; nulls are passed over.

    Returns:
        One row per distinct value: `iban` and `iban_fault`, which is SCIENTIFIC, FORMAT, COUNTRY,
        LENGTH, STRUCTURE, CHECKSUM or null.
    """
    iban = pl.col("iban")
    lengths = {country: length for country, (length, _) in iban_structures().items()}
    structure = "|".join(f"{country}[0-9]{{2}}{body}" for country, (_, body) in iban_structures().items())
    rearranged = pl.concat_str(iban.str.slice(4), iban.str.slice(0, 4))
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
        .when(~iban.str.contains(f"^(?:{structure})$"))
        .then(pl.lit("STRUCTURE"))
        .when(_check_digits_fit(rearranged, iban.str.slice(2, 2)))
        .then(pl.lit(None, dtype=pl.String))
        .otherwise(pl.lit("CHECKSUM"))
    )
    return ibans.alias("iban").drop_nulls().unique().to_frame().select(iban, fault.alias("iban_fault"))


def lei_is_valid(column: str) -> pl.Expr:
    """Whether a compact LEI has its form and its check digits."""
    lei = pl.col(column)
    return lei.str.contains(r"^[A-Z0-9]{18}[0-9]{2}$") & _check_digits_fit(lei, lei.str.slice(18))


def _check_digits_fit(text: pl.Expr, check_digits: pl.Expr) -> pl.Expr:
    fit = (remainder_97(text) == 1) & ~check_digits.is_in(_NEVER_ISSUED)
    return fit.fill_null(value=False)


@cache
def iban_structures() -> dict[str, tuple[int, str]]:
    """Per country: the length of its IBANs and the pattern of what follows the check digits."""
    from schwifty import registry
    from schwifty.exceptions import SchwiftyException

    structures = {}
    for letters in product(ascii_uppercase, repeat=2):
        country = "".join(letters)
        try:
            spec = registry.get_iban_spec(country)
        except (KeyError, SchwiftyException):
            continue
        structures[country] = (spec.iban_length, spec.regex.pattern.strip("^$").replace(r"\d", "[0-9]"))
    return structures
