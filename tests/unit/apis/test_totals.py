"""Control totals."""

from decimal import Decimal

import pytest

from pipeline.rules.totals import added, currency_shown, totals, with_money


@pytest.fixture
def totals_of(payments_of):
    def build(*rows):
        found = totals(with_money(payments_of(*({"amount": a, "currency": c} for a, c in rows))))
        return [(total.currency, total.row_count, total.amount) for total in found]

    return build


def test_money_is_added_by_currency_and_rows_without_an_amount_are_in_no_total(totals_of):
    rows = [("0.10", "GBP"), ("0.20", "gbp "), ("1.005", "EUR"), ("x", "EUR"), (None, "EUR"), ("5", None)]
    assert totals_of(*rows) == [
        ("GBP", 2, Decimal("0.30")),
        (None, 1, Decimal("5.00")),
    ]


def test_what_is_no_code_of_a_currency_is_in_no_document(totals_of):
    rows = [("1", "Marrow 20-04-15 31926819"), ("2", "£"), ("3", "Pounds"), ("4", " eur")]
    assert totals_of(*rows) == [
        ("EUR", 1, Decimal("4.00")),
        ("GBP", 1, Decimal("2.00")),
        (None, 2, Decimal("4.00")),
    ]


def test_a_currency_that_is_contradicted_or_cannot_be_read_is_in_no_sum_of_that_currency(payments_of):
    uk = {"sort_code": "112233"}
    rows = [
        {**uk, "amount": "\u20ac1", "currency": "GBP"},
        {**uk, "amount": "2", "currency": "Pounds"},
        {**uk, "amount": "\u00a34", "currency": "GBP"},
        {**uk, "amount": "8"},
    ]
    payments = payments_of(*rows)
    found = totals(with_money(payments))
    assert [(total.currency, total.amount) for total in found] == [
        ("GBP", Decimal("12.00")),
        (None, Decimal("3.00")),
    ]
    shown = currency_shown(payments)
    assert shown.to_list() == ["GBP", "Pounds", "GBP", "GBP"], "as the file says it where it is not known"


def test_totals_of_parts_add_up_to_those_of_the_whole(payments_of):
    rows = [{"amount": f"{n}.07", "currency": ("GBP", "EUR", None)[n % 3]} for n in range(20)]
    whole = totals(with_money(payments_of(*rows)))
    parts = [totals(with_money(payments_of(*rows[start:stop]))) for start, stop in ((0, 7), (7, 20))]
    assert added(parts) == whole
    assert added([*parts, []]) == whole


def test_money_without_a_word_about_its_currency_is_in_pounds_where_the_account_is_a_uk_one(payments_of):
    uk, iban = {"sort_code": "112233"}, {"iban": "DE89370400440532013000"}
    rows = [
        {**uk, "amount": "1"},
        {**iban, "amount": "2"},
        {**iban, "amount": "4 \u20ac"},
        {**uk, "amount": "8 USD"},
    ]
    found = totals(with_money(payments_of(*rows)))
    assert [(total.currency, total.amount) for total in found] == [
        ("EUR", Decimal("4.00")),
        ("GBP", Decimal("1.00")),
        ("USD", Decimal("8.00")),
        (None, Decimal("2.00")),
    ]
