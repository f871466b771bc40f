"""Amounts as people write them: one reading, or none."""

from decimal import Decimal

import polars as pl
import pytest

from pipeline.rules.amounts import AMBIGUOUS, AMOUNT, read_amounts


def read(written):
    text, money, _ = read_amounts(pl.Series([written], dtype=pl.String))
    return text.item(), money.item()


ONE_READING = [
    ("5", "5"),
    ("0", "0"),
    ("0.5", "0.5"),
    ("0.500", "0.5"),
    ("0,500", "0.5"),
    ("0.123", "0.123"),
    ("000.500", "0.5"),
    ("1234.56", "1234.56"),
    ("1234,56", "1234.56"),
    ("1,234.5", "1234.5"),
    ("1,234.56", "1234.56"),
    ("1.234,56", "1234.56"),
    ("12.300,45", "12300.45"),
    ("1,234,567", "1234567"),
    ("1.234.567", "1234567"),
    ("1,234,567.89", "1234567.89"),
    ("1.234.567,89", "1234567.89"),
    ("1,00,000.00", "100000"),
    ("12,34,567.89", "1234567.89"),
    ("12,34,567", "1234567"),
    ("-1,00,00,000.5", "-10000000.5"),
    ("INR 1,00,000.00", "100000"),
    ("(1,00,000)", "-100000"),
    ("1 234.56", "1234.56"),
    ("1 234", "1234"),
    ("1\u00a0234,56", "1234.56"),
    ("1\u202f234\u202f567,89", "1234567.89"),
    ("1'234.56", "1234.56"),
    ("1\u2019234.56", "1234.56"),
    ("1234.567", "1234.567"),
    ("12345.678", "12345.678"),
    ("12.5000", "12.5"),
    ("\u00a31,234.56", "1234.56"),
    ("\u00a3 5", "5"),
    ("5 \u20ac", "5"),
    ("$5.00", "5"),
    ("'5.00", "5"),
    ("-5.00", "-5"),
    ("5-", "-5"),
    ("5.00-", "-5"),
    ("(5.00)", "-5"),
    ("(\u00a35)", "-5"),
    ("\u00a3(5)", "-5"),
    ("\u22125", "-5"),
    ("\u2013 5", "-5"),
    ("EUR 5", "5"),
    ("GBP5.00", "5"),
    ("5 gbp", "5"),
    ("-EUR 1,234.50", "-1234.5"),
    ("-\u00a35", "-5"),
    ("\u00a3-5", "-5"),
    ("0005", "5"),
    ("9" * 18 + ".999", "9" * 18 + ".999"),
]


def test_amount_with_one_reading_is_that_amount():
    written, amounts = zip(*ONE_READING, strict=True)
    read_as = read_amounts(pl.Series(written)).money.to_list()
    assert dict(zip(written, read_as, strict=True)) == dict(zip(written, map(Decimal, amounts), strict=True))


@pytest.mark.parametrize(
    "written", ["1.234", "1,234", "12.345", "999,999", "-1.234", "\u00a31,234", "001,234", "1.000"]
)
def test_three_digits_behind_one_separator_could_be_thousands_or_decimals(written):
    text, amount = read(written)
    assert amount is None
    assert pl.Series([text]).str.contains(AMBIGUOUS).item()


NO_READING = [
    "",
    " ",
    "-",
    ".",
    ",",
    "\u00a3",
    "1e5",
    "1E+05",
    "NaN",
    "inf",
    "None",
    "0x10",
    "1_000.00",
    "+5",
    "()",
    "5 - 3",
    "(-5)",
    "-(5)",
    "5.",
    "--5",
    "EUR",
    "EUR 5 EUR",
    "1\u00a350",
    "1'50",
    "12 34",
    "1 23",
    "1 2345",
    "0 500",
    "1,00,0000.00",
    "1,00,000,00.00",
    "1,000,00,000.00",
    "1,00,000,000.00",
    "1,00,00.00",
    "1.00.000,00",
    "1,00.000",
    "123,45,678.00",
    "1.000/-",
    "1,234.567.8",
    "1.234,5678",
    "1,234,56",
    "1,234.5678",
    "12.3456",
    "5\n6",
    "\u0665",
    "\uff15",
    "\u00bd",
    "9" * 19,
    "five",
]


def test_what_is_not_an_amount_is_no_amount_rather_than_a_guess():
    text, money, _ = read_amounts(pl.Series(NO_READING))
    taken = text.str.contains(f"{AMOUNT}|{AMBIGUOUS}") | money.is_not_null()
    assert pl.Series(NO_READING).filter(taken).to_list() == []


def test_absent_amount_stays_absent():
    assert read(None) == (None, None)


def test_reading_again_what_was_read_changes_nothing():
    for written in ("1,234.56", "12.300,45", "0.500", "1.234", "12 34", "1234.567"):
        text, _ = read(written)
        assert read(text)[0] == text


@pytest.mark.parametrize(
    ("written", "text", "mark"),
    [
        ("kr 1.250,50", "1250.50", "¤"),
        ("1.250,50 kr", "1250.50", "¤"),
        ("5 kr.", "5", "¤"),
        ("1 250,50 zł", "1250.50", "PLN"),
        ("1 250,50 Kč", "1250.50", "CZK"),
        ("Fr. 1250.50", "1250.50", "CHF"),
        ("EURO 5", "5", "EUR"),
        ("1250,50 Euro", "1250.50", "EUR"),
        ("1.250,-", "1250.00", None),
        ("1'250.--", "1250.00", None),
        ("1\u00b4234.56", "1234.56", None),
        ("1.250,\u2013 €", "1250.00", "€"),
        ("Rs.1,00,000/-", "100000.00", "¤"),
        ("50,000/-", "50000.00", None),
        ("500 /=", "500.00", None),
        (".50", "0.50", None),
        ("£.50", "0.50", "£"),
        ("-,5", "-0.5", None),
    ],
)
def test_words_of_currencies_and_dashes_for_decimals_are_read(written, text, mark):
    found = read_amounts(pl.Series([written]))
    assert (found.text[0], found.mark[0]) == (text, mark)
