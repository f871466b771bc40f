"""Whose account, and which kind: sides first, then the cell."""

import polars as pl
import pytest

from pipeline.errors import InputError
from pipeline.headers.account import by_cell
from pipeline.headers.columns import read_columns

OURS, ONE, TWO = "GB33BUKB20201555555555", "DE89370400440532013000", "FR1420041010050500013M02606"


def sources_of(columns):
    cells = pl.DataFrame({**columns, "Payee": ["Ada Quillon", "Bo Marrow"]})
    sources = read_columns(cells, {}, where="x.csv").sources
    return {field: sources[field] for field in ("iban", "account_number", "sort_code") if field in sources}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"Debit IBAN": [OURS, OURS], "IBAN": [ONE, TWO]}, {"iban": "IBAN"}),
        ({"IBAN": [OURS, OURS], "Beneficiary IBAN": [ONE, TWO]}, {"iban": "Beneficiary IBAN"}),
        ({"IBAN": [OURS, TWO], "IBAN Empfänger": [ONE, TWO]}, {"iban": "IBAN Empfänger"}),
        ({"Konto": ["12345678", "12345678"], "IBAN": [ONE, TWO]}, {"iban": "IBAN"}),
        (
            {
                "Sort code": ["112233", "112233"],
                "Account number": ["12345678", "12345678"],
                "Beneficiary IBAN": [ONE, TWO],
            },
            {"iban": "Beneficiary IBAN"},
        ),
        (
            {
                "From account": ["12345678", "12345678"],
                "Sort code": ["112233", "445566"],
                "To account": ["87654321", "11223344"],
            },
            {"account_number": "To account", "sort_code": "Sort code"},
        ),
        (
            {
                "Supplier account": ["4000", "4001"],
                "Account number": ["87654321", "11223344"],
                "Sort code": ["112233", "445566"],
            },
            {"account_number": "Account number", "sort_code": "Sort code"},
        ),
        (
            {"IBAN": [None, None], "Beneficiary account": [ONE, TWO]},
            {"iban": "Beneficiary account"},
        ),
        ({"GL account": ["400000", "410000"], "IBAN": [ONE, TWO]}, {"iban": "IBAN"}),
    ],
)
def test_the_account_is_the_payees(columns, expected):
    assert sources_of(columns) == {field: ((header,),) for field, header in expected.items()}


@pytest.mark.parametrize(
    "columns",
    [
        {"Beneficiary IBAN": [ONE, TWO], "Recipient IBAN": [TWO, ONE]},
        {"Bank account": ["12345678", "87654321"], "Account number": ["11223344", "44332211"]},
        {"IBAN": [OURS, OURS], "Account": [ONE, TWO]},
        {"Customer IBAN": [OURS, TWO], "IBAN": [ONE, ONE]},
        {"IBAN": [OURS, OURS], "Bank details": [ONE, TWO]},
        {"IBAN": [ONE, TWO], "Corrected IBAN": [TWO, ONE]},
    ],
)
def test_two_accounts_of_one_rank_are_refused_without_their_numbers(columns):
    with pytest.raises(InputError, match=r"either could be the payee's .*--map") as refused:
        sources_of(columns)
    assert not any(value in str(refused.value) for values in columns.values() for value in values)


def test_a_ledger_account_of_a_creditor_is_no_account_to_ask_about():
    columns = {
        "Creditor account": ["40001001", "40001002"],
        "Account number": ["12345678", "87654321"],
        "Sort code": ["112233", "445566"],
    }
    with pytest.raises(InputError, match="either could be the payee's account"):
        sources_of(columns)


def test_our_sort_code_is_not_asked_with_the_payees_account_number():
    columns = {
        "Sort code": ["112233", "112233"],
        "Account": ["12345678", "12345678"],
        "Beneficiary account": ["87654321", "11223344"],
    }
    assert sources_of(columns) == {"account_number": (("Beneficiary account",),)}


def test_two_columns_of_one_account_are_one():
    assert sources_of(
        {"Beneficiary IBAN": [ONE, TWO], "Recipient IBAN": ["DE89 3704 0044 0532 0130 00", None]}
    ) == {"iban": (("Beneficiary IBAN",), ("Recipient IBAN",))}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # A cell is what it looks like, under whatever header.
        ({"account_number": ONE}, {"iban": ONE}),
        (
            {"account_number": "IBAN: DE89 3704 0044 0532 0130 00"},
            {"iban": "IBAN: DE89 3704 0044 0532 0130 00"},
        ),
        ({"account_number": "11223387654321"}, {"sort_code": "112233", "account_number": "87654321"}),
        ({"iban": "11-22-33 87654321"}, {"sort_code": "112233", "account_number": "87654321"}),
        ({"iban": "87654321", "sort_code": "112233"}, {"account_number": "87654321", "sort_code": "112233"}),
        ({"iban": "87654321"}, {"iban": "87654321"}),
        ({"iban": "DE89"}, {"iban": "DE89"}),
        ({"account_number": "x"}, {"account_number": "x"}),
        # No second account.
        ({"iban": ONE, "account_number": "532013000"}, {"iban": ONE}),
        ({"iban": ONE, "sort_code": "37040044"}, {"iban": ONE}),
        ({"iban": OURS, "sort_code": "20-20-15", "account_number": "55555555"}, {"iban": OURS}),
        (
            {"iban": "IE29AIBK93115212345678", "sort_code": "931152", "account_number": "12345678"},
            {"iban": "IE29AIBK93115212345678"},
        ),
        ({"iban": OURS, "sort_code": "202015"}, {"iban": OURS}),
        ({"iban": ONE, "account_number": TWO}, {"iban": ONE, "account_number": TWO}),
        # Two accounts, of which nobody knows which one the bank will pay.
        (
            {"iban": ONE, "sort_code": "112233", "account_number": "87654321"},
            {"iban": ONE, "sort_code": "112233", "account_number": "87654321"},
        ),
        (
            {"iban": OURS, "sort_code": "202016", "account_number": "55555555"},
            {"iban": OURS, "sort_code": "202016", "account_number": "55555555"},
        ),
        ({"iban": OURS, "sort_code": "202016"}, {"iban": OURS, "sort_code": "202016"}),
    ],
)
def test_a_cell_decides_which_kind_of_account_it_holds(given, expected):
    fields = ("sort_code", "account_number", "iban")
    rows = pl.DataFrame(
        {field: [given.get(field), None] for field in fields}, schema=dict.fromkeys(fields, pl.String)
    )
    assert by_cell(rows).row(0, named=True) == {field: expected.get(field) for field in fields}
    assert by_cell(rows).row(1) == (None, None, None)
