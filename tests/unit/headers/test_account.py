"""Whose account, and which kind: sides first, then the cell."""

import subprocess
import sys

import polars as pl
import pytest
from refusals import refused

from pipeline.errors import InputError
from pipeline.headers.account_patterns import IBAN_LENGTHS, by_cell, holds_account, is_iban
from pipeline.headers.columns import read_columns
from pipeline.rules.identifiers import iban_structures
from pipeline.stages.read import read

OURS, ONE, TWO = "GB33BUKB20201555555555", "DE89370400440532013000", "FR1420041010050500013M02606"


def sources_of(columns):
    cells = pl.DataFrame({**columns, "Payee": ["Ada Quillon", "Bo Marrow"]})
    sources = read_columns(cells, {}, where="x.csv").sources
    return {field: sources[field] for field in ("iban", "account_number", "sort_code") if field in sources}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"Debit IBAN": [OURS, OURS], "IBAN": [ONE, TWO]}, {"iban": "IBAN"}),
        ({"IBAN": [ONE, TWO], "btw_id": ["NL001234567B01", None]}, {"iban": "IBAN"}),
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
        # The same in every row where the other differs: it may be ours, and no header says so.
        {"IBAN": [OURS, OURS], "Sort code": ["112233", "445566"], "Account number": ["12345678", "87654321"]},
        {"IBAN": [ONE, TWO], "Sort code": ["112233", "112233"], "Account number": ["12345678", "12345678"]},
        {"IBAN": [OURS, OURS], "Account number": ["12345678", "87654321"]},
    ],
)
def test_two_accounts_of_one_rank_are_refused_without_their_numbers(columns):
    with refused(
        InputError, "headers.choose_one", {"headers.the_payees_iban", "headers.the_payees_account"}
    ) as refusal:
        sources_of(columns)
    assert not any(value in str(refusal.value) for values in columns.values() for value in values)


@pytest.mark.parametrize("header", ["Supplier IBAN", "Employee bank account", "IBAN Lieferant"])
def test_an_account_that_is_the_same_in_every_row_gives_way_to_a_suppliers_or_employees(header):
    assert sources_of({"Bank account": [OURS, OURS], header: [ONE, TWO]}) == {"iban": ((header,),)}
    with refused(InputError, "headers.either_could_be", "headers.the_payees_iban"):
        sources_of({"Bank account": [OURS, TWO], header: [ONE, TWO]})


def test_a_counter_account_of_ibans_is_the_payees_where_the_other_is_the_same_in_every_row():
    columns = {"IBAN": [OURS, OURS], "BIC": ["MARKDEF1100"] * 2, "Gegenkonto": [ONE, TWO]}
    assert sources_of(columns) == {"iban": (("Gegenkonto",),)}
    assert sources_of({"IBAN": [ONE, TWO], "Gegenkonto": ["4400", "4410"]}) == {"iban": (("IBAN",),)}
    assert sources_of({"IBAN": [ONE, TWO], "Gegenkonto": [OURS, OURS]}) == {"iban": (("IBAN",),)}
    with refused(InputError, "headers.either_could_be", "headers.the_payees_iban"):
        sources_of({"IBAN": [OURS, TWO], "Gegenkonto": [ONE, TWO]})


def test_an_id_of_an_account_is_an_account_where_its_side_is_said_and_no_number_stands_beside_it():
    columns = {"sortcode": CODES, "debitAccountId": ["11112222"] * 2, "creditAccountId": NUMBERS}
    assert sources_of(columns)["account_number"] == (("creditAccountId",),)
    beside = {"Sort code": CODES, "Beneficiary account id": ["10000001", "10000002"], "Account": NUMBERS}
    assert sources_of(beside)["account_number"] == (("Account",),)
    with refused(InputError, "headers.no_account"):
        sources_of({"Account id": NUMBERS, "Sort code": CODES})


def test_accounts_in_books_beside_an_iban_of_each_row_are_not_read():
    columns = {"IBAN": [ONE, TWO], "Account": ["70010", "70011"], "Account number": ["6300", "6310"]}
    assert sources_of(columns) == {"iban": (("IBAN",),)}
    with refused(InputError, "headers.either_could_be"):
        sources_of({**columns, "IBAN": [ONE, ONE]})


@pytest.mark.parametrize("header", ["Supplier account", "Employee account", "Beneficiary account id"])
def test_an_iban_is_no_number_in_books_whatever_its_header(header):
    with refused(InputError, "headers.either_could_be", "headers.the_payees_iban"):
        sources_of({header: [ONE, TWO], "IBAN": [TWO, OURS]})
    # The numbers of suppliers in our own books give way, as before.
    beside = {header: ["10000001", "10000002"], "Sort code": CODES, "Account number": NUMBERS}
    assert sources_of(beside)["account_number"] == (("Account number",),)


def test_a_ledger_account_of_a_creditor_is_no_account_to_ask_about():
    columns = {
        "Creditor account": ["40001001", "40001002"],
        "Account number": ["12345678", "87654321"],
        "Sort code": ["112233", "445566"],
    }
    with refused(InputError, "headers.either_could_be", "headers.the_payees_account"):
        sources_of(columns)


def test_our_sort_code_is_not_asked_with_the_payees_account_number():
    columns = {
        "Sort code": ["112233", "112233"],
        "Account": ["12345678", "12345678"],
        "Beneficiary account": ["87654321", "11223344"],
    }
    assert sources_of(columns) == {"account_number": (("Beneficiary account",),)}


@pytest.mark.parametrize(
    ("mapping", "read"),
    [
        ({"iban": "IBAN"}, {"iban": "IBAN"}),
        (
            {"account_number": "Account number"},
            {"account_number": "Account number", "sort_code": "Sort code"},
        ),
    ],
)
def test_what_the_refusal_of_an_account_that_may_be_ours_advises_is_enough(mapping, read):
    columns = {
        "Payee": ["Ada Quillon", "Bo Marrow"],
        "IBAN": [OURS, OURS],
        "Sort code": ["112233", "445566"],
        "Account number": ["12345678", "87654321"],
    }
    with refused(
        InputError, "headers.choose_one", pairs=[("iban", "IBAN"), ("account_number", "Account number")]
    ):
        read_columns(pl.DataFrame(columns), {}, where="x.csv")
    sources = read_columns(pl.DataFrame(columns), mapping, where="x.csv").sources
    assert sources == {"name": (("Payee",),), **{field: ((header,),) for field, header in read.items()}}


@pytest.mark.parametrize(
    "columns",
    [
        # One payee with one account, and its numbers for us.
        {"Payee": ["Acme Joinery Ltd"] * 2, "IBAN": [ONE, ONE], "Account number": ["12345678", "87654321"]},
        # IBANs in some rows, UK accounts in the others.
        {
            "Payee": ["Ada Quillon", "Bo Marrow"],
            "IBAN": [ONE, None],
            "Sort code": [None, "112233"],
            "Account number": [None, "12345678"],
        },
    ],
)
def test_an_iban_beside_numbers_that_are_no_second_account_is_read(columns):
    assert read_columns(pl.DataFrame(columns), {}, where="x.csv").sources["iban"] == (("IBAN",),)


NUMBERS, CODES = ["12345678", "87654321"], ["112233", "44-55-66"]


@pytest.mark.parametrize(
    "header",
    ["Bank code", "Beneficiary bank code", "Branch code", "Payee's Bank Code:", "NATIONAL_BANK_CODE"],
)
def test_a_banks_code_is_a_sort_code_where_its_cells_and_the_accounts_are_uk_ones(header):
    assert sources_of({header: CODES, "Account number": NUMBERS}) == {
        "account_number": (("Account number",),),
        "sort_code": ((header,),),
    }


def test_a_banks_code_beside_british_ibans_is_their_sort_code_so_that_two_accounts_are_seen():
    ibans = ["GB33BUKB20201555555555", None]
    read = sources_of({"Bank Branch No.": CODES, "Bank Account No.": NUMBERS, "IBAN": ibans})
    assert read["sort_code"] == (("Bank Branch No.",),)


@pytest.mark.parametrize(
    "columns",
    [
        {"Bank code": ["37040044", "20041"], "Account number": NUMBERS},
        {"Bank code": ["112233", "BUKB"], "Account number": NUMBERS},
        {"Bank code": CODES, "Account number": ["12345678", "0532013000"]},
        {"Bank code": CODES, "Sort code": ["201918", "201917"], "Account number": NUMBERS},
        {"Bank code": CODES, "IBAN": [ONE, TWO], "Account number": NUMBERS},
        {"Debit bank code": CODES, "Account number": NUMBERS},
        {"Bank name": CODES, "Account number": NUMBERS},
    ],
)
def test_another_code_of_a_bank_is_no_sort_code(columns):
    assert sources_of(columns).get("sort_code") in (None, (("Sort code",),))


def test_two_codes_of_banks_that_could_be_sort_codes_are_refused():
    with refused(InputError, "headers.either_could_be", "headers.the_payees_sort_code"):
        sources_of({"Bank code": CODES, "Branch code": CODES[::-1], "Account number": NUMBERS})


def test_a_banks_code_belongs_to_a_mapped_account_number():
    cells = pl.DataFrame({"Payee": ["Ada Quillon", "Bo Marrow"], "Zorblex": NUMBERS, "Bank code": CODES})
    sources = read_columns(cells, {"account_number": "Zorblex"}, where="x.csv").sources
    assert sources["sort_code"] == (("Bank code",),)


def test_the_lengths_of_ibans_are_those_of_the_registry():
    assert {country: length for country, (length, _) in iban_structures().items()} == IBAN_LENGTHS


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Debit account DE89 3704 0044 0532 0130 00, November", True),
        ("paid from de89370400440532013000EUR", True),
        ("DE88 3704 0044 0532 0130 00", False),
        ("RF18 5390 0754 7034 4712 21", False),
        ("AB12 payments of November", False),
    ],
)
def test_a_line_holds_an_iban_where_length_and_check_digits_fit(text, holds):
    assert holds_account(text) is holds


def test_reading_a_small_file_loads_no_registry_of_ibans(tmp_path):
    path = tmp_path / "payments.csv"
    path.write_text(f"Payee,IBAN,Amount\nAda Quillon,{ONE},1.00\nBo Marrow,{TWO},2.00\n", encoding="utf-8")
    program = (
        "import sys; from pathlib import Path; from pipeline.stages.read import read; "
        "read(Path(sys.argv[1]), mapping={}); print('schwifty' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


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
        # Fourteen digits show no country: rules/account_country decides whether they are split.
        ({"account_number": "11223387654321"}, {"account_number": "11223387654321"}),
        ({"iban": "11-22-33 87654321"}, {"account_number": "11-22-33 87654321"}),
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
        (
            {"iban": OURS, "sort_code": "202015", "account_number": "55555556"},
            {"iban": OURS, "sort_code": "202015", "account_number": "55555556"},
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


def test_a_code_is_a_sort_code_where_another_column_says_so_row_by_row():
    columns = {
        "Account no": ["12345678", "DE89370400440532013000", "123456789"],
        "Payee": ["Ada Quillon", "Bo Marrow", "Cy Marrow"],
        "routing_code_type_1": ["sort_code", None, "aba"],
        "routing_code_value_1": ["112233", None, "021000021"],
    }
    sources = read_columns(pl.DataFrame(columns), {}, where="x.csv").sources
    assert sources["sort_code"] == (("routing_code_value_1",),)
    others = pl.DataFrame(columns).with_columns(routing_code_type_1=pl.lit("bsb"))
    assert "sort_code" not in read_columns(others, {}, where="x.csv").sources


def test_numbers_of_eight_digits_beside_sort_codes_are_account_numbers():
    codes = {"Sort code": ["112233", "445566"]}
    assert sources_of({**codes, "No.": ["12345678", "23456789"]})["account_number"] == (("No.",),)
    with refused(InputError, "headers.no_account"):
        sources_of({**codes, "No.": ["1", "2"]})


@pytest.mark.parametrize("letter", ["â", "²", "٣", "Ж"])
def test_a_text_that_begins_and_ends_like_an_iban_of_any_country_is_none(letter):
    assert is_iban(OURS)
    assert not any(is_iban(code + letter * (length - 2)) for code, length in IBAN_LENGTHS.items())


def test_money_under_a_header_of_accounts_is_no_account():
    columns = {"Credit on Account": ["12.50", "1,012.00"], "Payee IBAN": [ONE, TWO]}
    assert sources_of(columns) == {"iban": (("Payee IBAN",),)}
    columns = {"Account": ["12.50", "112.30"], "Sort code": ["112233", "112234"]}
    columns |= {"Account number": ["12345678", "12345679"]}
    assert sources_of(columns)["account_number"] == (("Account number",),)


def test_a_row_with_an_account_is_never_another_line_of_headers(tmp_path):
    path = tmp_path / "partners.csv"
    rows = [("Cliente", ONE, "conto personale"), ("Fornitore", TWO, "")]
    path.write_text("Invoices to;IBAN;Notes\n" + "".join(";".join(row) + "\n" for row in rows), "utf-8")
    with refused(InputError, "headers.customers_and_suppliers"):
        read(path, mapping={})
