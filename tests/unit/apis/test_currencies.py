"""Which currency an amount is in, how that is known, and what no payment can be in."""

import polars as pl
import pycountry
import pytest

from pipeline.rules.amounts import read_amounts
from pipeline.rules.currencies import (
    DECIMALS,
    THREE_DECIMALS,
    WHOLE,
    amount_faults,
    currencies,
    currency_faults,
    currency_sources,
)
from schemas.summary import CurrencySources

UK = {"sort_code": "112233", "account_number": "12345678"}
IBAN = {"iban": "DE89370400440532013000"}


def fault(written, given):
    amounts = read_amounts(pl.Series([written], dtype=pl.String))
    codes = pl.Series([given], dtype=pl.String)
    return amount_faults(amounts.money, amounts.mark, codes, codes).item()


@pytest.mark.parametrize(
    ("currency", "finest", "too_fine"),
    [
        ("JPY", "1", "1.1"),
        ("XOF", "1.00", "1.01"),
        ("GBP", "0.01", "0.001"),
        ("CHF", "1.10", "1.1050"),
        ("KWD", "0.001", None),
        ("BHD", "1.2340", None),
        (None, "1.2340", None),
    ],
)
def test_an_amount_has_no_more_decimals_than_its_currency(currency, finest, too_fine):
    assert fault(finest, currency) is None
    if too_fine is not None:
        assert fault(too_fine, currency) == DECIMALS


def test_every_currency_with_other_decimals_exists():
    assert {*WHOLE, *THREE_DECIMALS} <= currencies()


def test_codes_that_nobody_pays_in_are_unknown_and_all_others_of_the_list_are_known():
    codes = pl.Series([currency.alpha_3 for currency in pycountry.currencies])
    unknown = set(codes.filter(currency_faults(codes).is_not_null()))
    assert unknown == {"XTS", "XXX", "XAG", "XAU", "XPD", "XPT", "XBA", "XBB", "XBC", "XBD"}


def test_what_is_no_code_of_three_letters_is_a_matter_of_its_form_alone():
    assert currency_faults(pl.Series(["pounds", "", None, "GB"])).to_list() == [None] * 4


@pytest.mark.parametrize(
    ("row", "source"),
    [
        ({**UK, "amount": "5", "currency": "GBP"}, "given"),
        ({**UK, "amount": "5 EUR"}, "beside_amount"),
        ({**IBAN, "amount": "\u20ac5"}, "beside_amount"),
        ({**UK, "amount": "5"}, "uk_account"),
        ({**UK, "amount": "$5"}, "uk_account"),
        ({**IBAN, "amount": "$5"}, "unknown"),
        ({**IBAN, "amount": "5"}, "unknown"),
    ],
)
def test_it_is_counted_how_each_currency_is_known(payments_of, row, source):
    other = {**UK, "amount": "1", "currency": "EUR"}
    counted = currency_sources(payments_of(row, other, {**UK, "currency": "GBP"})).model_dump()
    expected = CurrencySources(given=1).model_dump()
    expected[source] += 1
    assert counted == expected
