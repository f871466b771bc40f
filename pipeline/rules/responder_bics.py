"""Which bank answers for an IBAN: needed by VoP Standard, where the requester names the responder.

Source of the built-in directory: schwifty's registry of bank codes. It is public, incomplete and
older than the scheme's own directory, so a BIC from the file or from the user's table goes first.
"""

from collections.abc import Mapping
from functools import cache

import polars as pl

from pipeline.rules.identifiers import compact, iban_structures


def registry_bics(ibans: pl.Series) -> pl.Series:
    """The BIC11 that the registry has for every valid compact IBAN, or null."""
    from schwifty import IBAN

    banks = _banks(ibans)
    # A file has far fewer banks than accounts.
    examples = pl.DataFrame({"bank": banks, "iban": ibans}).drop_nulls().unique("bank")
    known = {}
    for bank, iban in examples.iter_rows():
        bic = IBAN(iban, allow_invalid=True).bic
        known[bank] = None if bic is None else str(bic).ljust(11, "X")
    return banks.replace_strict(known, default=None, return_dtype=pl.String)


def directory_bics(ibans: pl.Series, directory: Mapping[str, str]) -> pl.Series:
    """The BIC11 that the user's own table has for every IBAN.

    Args:
        ibans: valid compact IBANs, or nulls.
        directory: the start of an IBAN without its check digits, such as `DE10010010` -> BIC11; the longest
            start wins.

    Returns:
        Null where there is no IBAN, or the table has none.
    """
    account = ibans.str.head(2) + ibans.str.slice(4)
    found = ibans.clear(ibans.len())
    by_length: dict[int, dict[str, str]] = {}
    for start, bic in directory.items():
        by_length.setdefault(len(start), {})[start] = bic
    for length in sorted(by_length):
        bics = account.str.head(length).replace_strict(
            by_length[length], default=None, return_dtype=pl.String
        )
        found = bics.zip_with(bics.is_not_null(), found)
    return found


def bank_identifiers(payments: pl.DataFrame) -> pl.Series:
    """The bank of each payment of `Payments`: country and bank code of an IBAN, or six digits of a sort code.

    Null where neither is readable. An IBAN of a UK account counts by its sort code.
    """
    account = compact(payments["iban"]).alias("iban")
    country = account.str.head(2)
    start, length = (
        country.replace_strict(spans, default=None, return_dtype=pl.UInt32) for spans in _bank_code_places()
    )
    is_uk = account.str.contains(r"^GB[0-9]{2}[A-Z]{4}[0-9]{14}$")
    coded = pl.select(
        pl.when(pl.lit(is_uk))
        .then(pl.lit(account).str.slice(8, 6))
        .otherwise(pl.lit(country) + pl.lit(account).str.slice(pl.lit(start), pl.lit(length)))
    ).to_series()
    digits = pl.coalesce("sort_code", "account_number").str.replace_all(r"[\s-]", "")
    uk = payments.select(digits.str.extract(r"^([0-9]{6})(?:[0-9]{8})?$")).to_series()
    return coded.zip_with(coded.is_not_null(), uk).alias("bank")


@cache
def _bank_code_places() -> tuple[dict[str, int], dict[str, int]]:
    """Per country: where the bank code begins in an IBAN, and how long it is."""
    from schwifty import registry
    from schwifty.domain import Component

    positions = {
        country: registry.get_iban_spec(country).positions[Component.BANK_CODE]
        for country in iban_structures()
    }
    starts = {country: 4 + place.start for country, place in positions.items()}
    return starts, {country: place.end - place.start for country, place in positions.items()}


def _banks(ibans: pl.Series) -> pl.Series:
    """As much of every IBAN, without its check digits, as names its bank and branch."""
    country = ibans.str.head(2)
    char_counts = country.replace_strict(_bank_char_counts(), return_dtype=pl.UInt32)
    return pl.select(country + pl.lit(ibans).str.slice(4, pl.lit(char_counts))).to_series()


@cache
def _bank_char_counts() -> dict[str, int]:
    """Per country: how many characters after the check digits name the bank and the branch."""
    from schwifty import registry
    from schwifty.domain import Component

    ends = {}
    for country in iban_structures():
        positions = registry.get_iban_spec(country).positions
        ends[country] = max(positions[Component.BANK_CODE].end, positions[Component.BRANCH_CODE].end)
    return ends
