"""Where the headers of a table stand, and what may stand above them."""

from io import BytesIO

import pytest
import xlsxwriter
from refusals import refused

from pipeline.errors import InputError
from pipeline.formats import csv as delimited
from pipeline.formats import excel
from pipeline.formats.table import ReadingOptions
from pipeline.headers.heading import LINES_BEFORE_HEADER_MAX, heading_of
from pipeline.headers.meaning import meaning

HEADERS = "Name,Sort code,Account number,Amount"
PAYMENT = "Ada Quillon,12-34-56,12345678,10.00"


def read(text):
    return delimited.read(text.encode(), ReadingOptions({}), where="pay.csv")


def heading(*lines):
    return heading_of([line.split(",") for line in lines], {})


@pytest.mark.parametrize("count", [0, 1, 5, LINES_BEFORE_HEADER_MAX])
def test_up_to_twenty_lines_may_stand_above_the_header_line(count):
    table = read("Payroll, June\n" * count + f"{HEADERS}\n{PAYMENT}\n")
    assert table.cells.columns == HEADERS.split(",")
    assert table.positions.of(1) == count + 2


def test_a_header_line_further_down_is_none():
    table = read("Payroll, June\n" * (LINES_BEFORE_HEADER_MAX + 1) + f"{HEADERS}\n{PAYMENT}\n")
    assert table.cells.columns != HEADERS.split(",")


def test_a_title_that_says_direct_debits_refuses_the_file_unless_the_user_insists():
    text = f"SEPA-Lastschriften Juni,,,\n{HEADERS}\n{PAYMENT}\n"
    for headers in (HEADERS, HEADERS.replace("Name", "Wer")):  # also before a column is asked for
        with refused(InputError, "headers.direct_debits", columns=['"SEPA-Lastschriften Juni"']) as said:
            read(text.replace(HEADERS, headers))
        [advice] = said.value.advice
        assert [pair.column for pair in advice.values["columns"]] == [
            header for header in HEADERS.split(",")[:3] if header in headers
        ]
    insisting = ReadingOptions({"name": "Name"})
    assert delimited.read(text.encode(), insisting, where="pay.csv").cells.columns == HEADERS.split(",")
    assert read(text.replace("Lastschriften", "Überweisungen")).cells.columns == HEADERS.split(",")


def test_a_sheet_whose_name_says_direct_debits_is_refused_as_with_such_a_title():
    def cells_of(name):
        with xlsxwriter.Workbook(file := BytesIO(), {"in_memory": True}) as book:
            sheet = book.add_worksheet(name)
            for row, line in enumerate((HEADERS, PAYMENT)):
                sheet.write_row(row, 0, line.split(","))
        return excel.read(file.getvalue(), ReadingOptions({}), where="pay.xlsx").cells

    assert cells_of("Payments").height == 1
    with refused(InputError, "headers.direct_debits", columns=['"Direct Debits"']):
        cells_of("Direct Debits")


def test_a_line_of_groups_above_the_headers_is_not_the_header_line():
    found = heading("Payee,,,Bank,", f"{HEADERS},Currency", f"{PAYMENT},GBP")
    assert (found.start, found.end) == (1, 2)
    # Also where the groups alone would do.
    found = heading(
        "Payee,,Account,,", "Name,City,Sort code,Account number,Amount", f"Ada,Wells,{PAYMENT[12:]}"
    )
    assert (found.start, found.end) == (1, 2)


def test_labels_over_two_rows_are_one_header_line():
    found = heading("Payee,Sort,Account,", "name,code,number,Amount", PAYMENT)
    assert found.cells == ("Payee name", "Sort code", "Account number", "Amount")
    assert (found.start, found.end) == (0, 2)


def test_labels_over_three_rows_are_one_header_line():
    three = ("Payee,Payee,Beneficiary,Payment", "sort,account,full,in", "code,number,name,GBP")
    table = read("\n".join(("Payroll, June", *three, "12-34-56,12345678,Ada Quillon,10.00", "")))
    assert table.cells.columns == [
        "Payee sort code",
        "Payee account number",
        "Beneficiary full name",
        "Payment in GBP",
    ]
    assert table.positions.of(1) == 5


@pytest.mark.parametrize("first", ["Ada Quillon,,,", "Ada,unknown,unknown,later", "Name,,,"])
def test_a_payment_without_any_number_below_two_rows_of_labels_is_no_third(first):
    found = heading("Payee,Sort,Account,", "name,code,number,Amount", first, PAYMENT)
    assert (found.cells[0], found.end) == ("Payee name", 2)


@pytest.mark.parametrize(
    "again", ["Nm,SortCd,Account,InstdAmt", "name,sort_code,account_number,amount", HEADERS]
)
def test_headers_again_below_the_header_line_are_no_payment_and_told(again):
    table = read(f"{HEADERS}\n{again}\n{PAYMENT}\n")
    assert table.cells.columns == HEADERS.split(",")
    assert table.cells.rows() == [tuple(PAYMENT.split(","))]
    assert (table.repeated_headers, table.positions.of(1)) == ((2,), 3)


@pytest.mark.parametrize(
    "rule", ["----,---------,--------------,------", "=====", "+----+----+", "____;____", "|:---|---:|"]
)
def test_a_separator_below_the_header_line_is_no_payment_and_told(rule):
    table = read(f"{HEADERS}\n{rule}\n{PAYMENT}\n")
    assert table.cells.rows() == [tuple(PAYMENT.split(","))]
    assert (table.repeated_headers, table.positions.of(1)) == ((2,), 3)


def test_headers_between_separators_and_a_title_are_the_headers():
    assert heading("Payroll", "=====", "-----,-----", HEADERS, "-----,-----", PAYMENT).end == 5


def test_a_line_with_an_iban_is_a_payment_whatever_words_are_in_it():
    rows = ("customer_001,DE89370400440532013000,iban", "customer_002,NL91ABNA0417164300,iban")
    assert heading("partner_id/id,acc_number,acc_type", *rows).start == 0


def test_technical_names_that_show_direct_debits_are_the_headers():
    found = heading(
        "Holder,IBAN,Ref", "account_holder,iban,sepa_mandate_reference", "Ada,DE89370400440532013000,M"
    )
    assert (found.start, found.end) == (1, 2)


def test_of_lines_that_name_no_payee_the_one_with_most_headers_is_the_header_line():
    statement = "Nr,Kontonummer,Valuta,Bokföringsdag,Referens,Belopp,Bokfört saldo"
    assert heading("Kontoutdrag", "Skapat,2026-11-02", statement, "1,8327,SEK,2026-11-05,,-1,5").start == 2


@pytest.mark.parametrize(
    "row",
    [
        PAYMENT,
        "Name,Sort code,12345678,Amount",
        "Ada Quillon,,,10.00",
        "Name,,,",
        "Account Ltd,x,y,z",
        "-,-,-,-",
    ],
)
def test_a_row_with_a_number_or_without_headers_is_a_row(row):
    table = read(f"{HEADERS}\n{row}\n{PAYMENT}\n")
    assert table.cells.height == 2
    assert table.repeated_headers == ()


@pytest.mark.parametrize(
    "above",
    [
        "Account,12 34 56,12345678",
        "IBAN: DE89 3704 0044 0532 0130 00",
        "Payee account: 12-34-56 12345678",
        "Debit account: 12-34-56 12345678,Account: 12-34-56 87654321",
        "12345612345678",
        "Paid from,DE89 3704 0044 0532 0130 00",
        "from DE89-3704-0044-0532-0130-00 in June",
        PAYMENT,
    ],
)
def test_an_account_above_the_header_line_refuses_the_file_and_says_which_line(above):
    with refused(InputError, "headers.account_above_header", where="pay.csv", number=2, header=4) as raised:
        read(f"Payroll\n{above}\n\n{HEADERS}\n{PAYMENT}\n")
    assert "12345678" not in str(raised.value)


@pytest.mark.parametrize(
    "above",
    [
        "Debit account 12-34-56 12345678",
        "Our account,12 34 56,12345678",
        "From account:,DE89370400440532013000",
        "Auftraggeberkonto: DE89 3704 0044 0532 0130 00",
        "# Compte débiteur IBAN,FR14 2004 1010 0505 0001 3M02 606",
        "Debit sort code,12-34-56,Debit account number,12345678",
        "Date:,1 June,Account to be debited:,12-34-56 12345678",
    ],
)
def test_an_account_above_the_header_line_that_is_labelled_as_ours_is_read_past(above):
    assert read(f"Payroll\n{above}\n\n{HEADERS}\n{PAYMENT}\n").cells.height == 1


@pytest.mark.parametrize(
    "above",
    [
        "Payroll 2026-11-22",
        "Batch 202611 of 20261122",
        "Reference DE89 3704 0044 0532 0130 01",  # its check digits do not fit
        "Telephone 020 7946 0123",
        "Total 12345678.00",
    ],
)
def test_dates_and_numbers_above_the_header_line_are_no_account(above):
    assert read(f"{above}\n{HEADERS}\n{PAYMENT}\n").cells.height == 1


def test_a_file_of_this_program_is_read_as_it_stands():
    table = delimited.read(f"{HEADERS}\n{HEADERS}\n".encode(), ReadingOptions(None), where="o.csv")
    assert table.cells.rows() == [tuple(HEADERS.split(","))]


def test_no_payment_is_tried_as_a_header():
    read(f"{HEADERS}\n{PAYMENT}\n")
    before = meaning.cache_info().misses
    read(f"{HEADERS}\nBea Quillon,12-34-56,87654321,11.00\nCid Quillon,12-34-56,87654322,12.00\n")
    assert meaning.cache_info().misses == before


def test_the_payers_own_line_with_headers_of_its_own_may_stand_above():
    own = "Employer EID,Payer IBAN,Total\n1001,DE89370400440532013000,10.00\n"
    assert read(f"{own}{HEADERS}\n{PAYMENT}\n").cells.columns == HEADERS.split(",")
    with refused(InputError, "headers.account_above_header"):
        read(f"{own.replace('Payer IBAN', 'IBAN')}{HEADERS}\n{PAYMENT}\n")
