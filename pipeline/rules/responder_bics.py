"""Find the bank that answers for an IBAN: in VoP Standard, the requester names the responder.

Source of the built-in directory: schwifty's registry of bank codes. It is public, incomplete and older than
the scheme's own directory, so a BIC from the file or the user's table takes precedence.
"""

from collections.abc import Mapping
from functools import cache

import polars as pl

from pipeline.rules.identifiers import compact, iban_structures
from pipeline.rules.selected_values import replaced


def registry_bics(ibans: pl.Series) -> pl.Series:
    """Return the registry's BIC11 for every valid compact IBAN, or null."""
    from schwifty import IBAN

    # The bank and branch in every IBAN, without check digits.
    banks = _parts(ibans, {country: (0, end) for country, (_, end) in _bank_spans().items()})
    # A file has far fewer banks than accounts.
    examples = pl.DataFrame({"bank": banks, "iban": ibans}).drop_nulls().unique("bank")
    known = {}
    for bank, iban in examples.iter_rows():
        bic = IBAN(iban, allow_invalid=True).bic
        known[bank] = None if bic is None else str(bic).ljust(11, "X")
    return banks.replace_strict(known, default=None, return_dtype=pl.String)


def directory_bics(ibans: pl.Series, directory: Mapping[str, str]) -> pl.Series:
    """Return the BIC11 in the user's table for every valid compact IBAN, or null.

    The table has the start of an IBAN without its check digits, such as `DE10010010`; the longest start wins.
    """
    account = ibans.str.head(2) + ibans.str.slice(4)
    found = ibans.clear(ibans.len())
    for length in sorted({len(start) for start in directory}):
        known = {start: bic for start, bic in directory.items() if len(start) == length}
        bics = account.str.head(length).replace_strict(known, default=None, return_dtype=pl.String)
        found = bics.zip_with(bics.is_not_null(), found)
    return found


def bank_identifiers(payments: pl.DataFrame) -> pl.Series:
    """Return the bank of each payment: country and bank code of the IBAN, or a UK account's sort code."""
    codes = payments.select(bank=pl.coalesce("sort_code", "account_number")).to_series()
    codes = replaced(
        codes,
        where=~codes.str.contains(r"^[0-9]{6}$"),
        by=lambda some: some.str.replace_all(r"[\s-]", "").str.extract(r"^([0-9]{6})(?:[0-9]{8})?$"),
    )
    has_iban = payments["iban"].is_not_null()
    if not has_iban.any():
        return codes
    own = _banks_of(compact(payments["iban"].filter(has_iban)))
    return codes.clone().scatter(has_iban.arg_true(), own.zip_with(own.is_not_null(), codes.filter(has_iban)))


def _banks_of(ibans: pl.Series) -> pl.Series:
    banks = _parts(ibans, {country: bank for country, (bank, _) in _bank_spans().items()})
    is_uk = ibans.str.contains(r"^GB[0-9]{2}[A-Z]{4}[0-9]{14}$")
    return replaced(banks, where=is_uk, by=lambda _: ibans.filter(is_uk).str.slice(8, 6))


def _parts(ibans: pl.Series, spans: Mapping[str, tuple[int, int]]) -> pl.Series:
    """Return the country and a part of every IBAN; start and length count from behind the check digits."""
    country = ibans.str.head(2)
    start, length = (
        country.replace_strict(
            {each: span[part] for each, span in spans.items()}, default=None, return_dtype=pl.UInt32
        )
        for part in (0, 1)
    )
    return pl.select(country + pl.lit(ibans).str.slice(pl.lit(start) + 4, pl.lit(length))).to_series()


@cache
def _bank_spans() -> dict[str, tuple[tuple[int, int], int]]:
    """Return country -> start and length of its bank code, and the end of bank and branch code."""
    from schwifty import registry
    from schwifty.domain import Component

    spans = {}
    for country in iban_structures():
        positions = registry.get_iban_spec(country).positions
        bank, branch = positions[Component.BANK_CODE], positions[Component.BRANCH_CODE]
        spans[country] = (bank.start, bank.end - bank.start), max(bank.end, branch.end)
    return spans
