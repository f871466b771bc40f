"""From a file to payments."""

import hashlib
import os
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from time import process_time

import openpyxl
import polars as pl
import pytest
from refusals import refused, said
from tables import for_each

from pipeline.errors import InputError
from pipeline.frames import PAYMENTS
from pipeline.rules.amounts import read_amounts
from pipeline.rules.currencies import of_hundredths
from pipeline.stages.read import read
from pipeline.stages.validate import Routes, validate
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

GERMAN = "DE89370400440532013000"


def source_of(folder, text, name="payroll.csv", mapping=None, encoding=None):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path, mapping=mapping or {}, encoding=encoding)


def parquet_of(folder, columns, schema=None):
    path = folder / "payroll.parquet"
    pl.DataFrame(columns, schema_overrides=schema).write_parquet(path)
    return read(path, mapping={})


def values(source, *fields):
    return source.payments.select(fields).rows()


def test_file_that_is_no_text_is_not_sent_back_for_its_encoding(tmp_path):
    with refused(InputError, "csv.not_a_text_file") as raised:
        source_of(tmp_path, b"\x93\x00\xff\x07name,iban\n")
    assert "cp1252" not in str(raised.value)


def test_cells_of_rows_that_are_too_long_are_no_headers_of_the_file(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("colour,amount\nred,1,2\n")
    with pytest.raises(InputError) as refused:
        read(path, mapping={})
    assert "extra_1" not in str(refused.value)


def test_hidden_rows_are_read_like_the_others_with_a_note(tmp_path):
    book = openpyxl.Workbook()
    for row in (["Payee", "IBAN"], ["Ada", GERMAN], ["Ben", GERMAN], ["Cy", GERMAN], [], ["Prepared by"]):
        book.active.append(row)
    for row in (1, 3, 6):  # neither headers nor footers are payments
        book.active.row_dimensions[row].hidden = True
    book.save(tmp_path / "filtered.xlsx")
    source = read(tmp_path / "filtered.xlsx", mapping={})
    assert source.payments["name"].to_list() == ["Ada", "Ben", "Cy"]
    assert [*source.notes] == [Sentence("stages.rows_hidden", count=1)]


def test_hundredths_that_are_not_read_are_noted(tmp_path):
    beside = source_of(tmp_path, f"Payee,IBAN,Amount (pence),Amount\nAda,{GERMAN},1050,10.50\n")
    assert values(beside, "amount") == [("10.50",)]
    assert [*beside.notes] == [Sentence("stages.hundredths_unread", columns=['"Amount (pence)"'])]
    rows = "".join(
        f"{name},{GERMAN},{rest}\n"
        for name, rest in (("Ada", "1050,JPY"), ("Ben", "2000,EUR"), ("Cy", ",JPY"))
    )
    source = source_of(tmp_path, f"Payee,IBAN,Amount (cents),Currency\n{rows}")
    assert values(source, "amount") == [(None,), ("20.00",), (None,)]
    assert [*source.notes] == [
        Sentence("headers.amount_in_hundredths", column='"Amount (cents)"'),
        Sentence("stages.hundredths_of_others", count=1),
    ]


def test_headers_too_far_down_to_be_found_are_named_by_their_row(tmp_path):
    text = "A line of a letter,\n" * 30 + f"Payee,IBAN\nAda,{GERMAN}\n"
    with refused(InputError, "stages.second_header_differs", row=30):
        source_of(tmp_path, text)
    assert values(source_of(tmp_path, text.split("\n", 30)[30]), "name") == [("Ada",)]


def test_zeros_of_number_formats_are_read_with_a_note(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["Payee", "Sort code", "Account number", "Reference"])
    book.active.append(["Ada Quillon", 40127, 2345678, 7])
    for cell, number_format in {"B2": "00-00-00", "C2": "00000000", "D2": "000"}.items():
        book.active[cell].number_format = number_format
    book.save(tmp_path / "payroll.xlsx")
    source = read(tmp_path / "payroll.xlsx", mapping={})
    assert values(source, "sort_code", "account_number", "reference") == [("04-01-27", "02345678", "007")]
    fields = [Sentence("field.sort_code"), Sentence("field.account_number")]
    assert [*source.notes] == [Sentence("stages.zeros_by_number_format", fields=fields)]


def test_payments_have_the_schema_of_the_contract(tmp_path):
    source = source_of(tmp_path, "Payee,Sort Code,Account No,Note\nQuillon,00-11-22,00012345,x\n")
    assert dict(source.payments.schema) == PAYMENTS
    assert values(source, "row", "defect", "name", "sort_code", "account_number", "iban") == [
        (1, None, "Quillon", "00-11-22", "00012345", None)
    ]


def test_cells_are_stripped_and_blank_is_absent_in_payments_only(tmp_path):
    source = source_of(tmp_path, "name,iban,bic\n Quillon\u00a0,\t, \n")
    assert values(source, "name", "iban", "bic") == [("Quillon", None, None)]
    assert source.original.rows() == [(" Quillon\u00a0", "\t", " ")]


def test_what_was_read_is_identified_by_its_bytes(tmp_path):
    text = "\ufeffname;iban\r\nGrünwald;GB1\r\n"
    source = source_of(tmp_path, text)
    assert source.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert source.byte_count == len(text.encode())
    assert (source.format, source.dialect.delimiter, source.dialect.encoding) == ("csv", ";", "utf-8")


def test_columns_tell_how_each_header_was_read(tmp_path):
    source = source_of(tmp_path, "Who,IBAN,Note\na,b,c\n", mapping={"name": "Who"})
    own, none = (
        Sentence("column.the_fields_name"),
        Sentence("column.none_in_cells", field=Sentence("field.iban")),
    )
    assert [reading[:3] for reading in source.columns] == [
        ("Who", "name", Sentence("column.map")),
        ("IBAN", "iban", Sentence("column.both", one=own, other=none)),
        ("Note", None, Sentence("column.header_not_known")),
    ]
    assert source.decision == {"name": "#1", "iban": "#2"}


def test_bank_column_that_holds_words_is_told_and_not_read_unless_the_user_insists(tmp_path):
    text = "name,iban,BIC\na,GB1,ACCEPTED\nb,GB2,ACCEPTED\n"
    source = source_of(tmp_path, text)
    no_bic = Sentence("column.none_in_cells", field=Sentence("field.bic"))
    assert source.columns[2][1:3] == (None, no_bic)
    assert source.notes[-1] == Sentence("stages.no_bic_in_column")
    assert values(source, "bic") == [(None,), (None,)]
    assert source.original["BIC"].to_list() == ["ACCEPTED", "ACCEPTED"]
    insisted = source_of(tmp_path, text, mapping={"bic": "BIC"})
    assert values(insisted, "bic") == [("ACCEPTED",), ("ACCEPTED",)]


def test_account_types_by_number_are_read_where_the_header_says_what_they_mean(tmp_path):
    header = "Account type (1=Personal 2=Business)"
    text = f"name,iban,{header}\na,GB1,1\nb,GB2,2\nc,GB3,3\nd,GB4,business\n"
    source = source_of(tmp_path, text, mapping={"account_type": header})
    assert values(source, "account_type") == [("Personal",), ("Business",), ("3",), ("business",)]
    plain = source_of(tmp_path, text.replace(header, "Account type"))
    assert values(plain, "account_type") == [("1",), ("2",), ("3",), ("business",)]


def test_outcome_columns_of_an_earlier_run_are_left_out(tmp_path):
    source = source_of(tmp_path, "name,check_outcome,iban,check_time,check_mine\na,match,b,then,c\n")
    assert source.original.columns == ["name", "iban", "check_mine"]
    assert [reading.header for reading in source.columns] == ["name", "iban", "check_mine"]


@pytest.mark.parametrize("own", ["name,iban,check_id\na,b,7\n", "name,iban,check_outcome\na,b,no\n"])
def test_a_users_own_column_is_never_taken_for_an_outcome(tmp_path, own):
    with refused(InputError, "stages.columns_named_as_ours"):
        source_of(tmp_path, own)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('="00123456"', "00123456"),
        ('"=""00123456"""', "00123456"),
        ("'00123456", "00123456"),
        ("' 00123456 ", "00123456"),
        ('=""', None),
        ("=1+1", "=1+1"),
    ],
)
def test_text_guards_of_spreadsheets_are_unwrapped_in_identifiers(tmp_path, cell, text):
    source = source_of(tmp_path, f"name,sort_code,account_number\n'Quillon,112233,{cell}\n")
    assert values(source, "name", "account_number") == [("'Quillon", text)]


def test_text_guards_stay_in_the_original(tmp_path):
    source = source_of(tmp_path, 'name,iban\na,="GB1"\n')
    assert source.original["iban"][0] == '="GB1"'


@pytest.mark.parametrize(
    "account",
    ["00112200012345", "001122-00012345", "00-11-22 00012345", "00 11 22 00012345", "'00112200012345"],
)
def test_sort_code_and_account_in_one_cell_are_split(tmp_path, account):
    source = source_of(tmp_path, f"name,UK Bank Account Number\na,{account}\nb,12345678\n")
    assert values(source, "sort_code", "account_number") == [("001122", "00012345"), (None, "12345678")]


def test_a_row_with_a_sort_code_of_its_own_is_not_split(tmp_path):
    source = source_of(
        tmp_path, "name,sort_code,account_number\na,112233,00112200012345\nb,,00112200012345\n"
    )
    assert values(source, "sort_code", "account_number") == [
        ("112233", "00112200012345"),
        ("001122", "00012345"),
    ]


def test_digits_of_other_scripts_are_not_split(tmp_path):
    account = "0011220001234\u0665"
    assert values(source_of(tmp_path, f"name,account_number\na,{account}\n"), "account_number") == [
        (account,)
    ]


def test_a_name_in_parts_is_joined_and_a_company_fills_in(tmp_path):
    text = "Last Name,First Name,Company Name,iban\nMarrow, Quillon,,1\n,Quillon,,2\n,,Ostrava Ltd,3\n,, ,4\n"
    assert values(source_of(tmp_path, text), "name") == [
        ("Quillon Marrow",),
        ("Quillon",),
        ("Ostrava Ltd",),
        (None,),
    ]


def test_rows_that_are_not_whole_are_payments_with_a_defect(tmp_path):
    text = "name,iban,note\na,1,x\nb,2\nc,3,x,y\n\n,, \n,,x\n"
    source = source_of(tmp_path, text)
    assert values(source, "row", "defect") == [
        (1, None),
        (2, None),
        (3, "ROW_TOO_LONG"),
        (4, "ROW_BLANK"),
        (5, "ROW_BLANK"),
        (6, None),
    ]
    assert source.original.columns == ["name", "iban", "note", "extra_1"]
    assert source.original.height == 6


def test_blank_rows_are_found_in_a_regular_file_too(tmp_path):
    source = source_of(tmp_path, "name,iban,note\na,1,x\n, ,\nb,2,x\n")
    assert values(source, "defect") == [(None,), ("ROW_BLANK",), (None,)]


def test_blank_rows_at_the_end_are_ignored_with_a_note(tmp_path):
    source = source_of(tmp_path, "name,iban,note\na,1,x\n" + ", ,\n" * 30)
    assert (source.original.height, values(source, "name")) == (1, [("a",)])
    assert Sentence("stages.rows_blank", count=30) in source.notes


@pytest.mark.parametrize(
    "row", ["-----,---,---", "=====", "Name, IBAN ,note", "NAME,iban,", "\ufeffName,IBAN,note", "-,-,-"]
)
def test_separators_and_repeated_headers_between_payments_are_no_payments(tmp_path, row):
    source = source_of(tmp_path, f"Name,IBAN,note\na,1,x\n{row}\nb,2,x\n")
    assert values(source, "row", "defect") == [(1, None), (2, "ROW_BLANK"), (3, None)]


def test_subtotals_are_left_out_and_the_payments_keep_their_lines(tmp_path):
    """Also the note on short rows counts payments only."""
    rows = ["a,1,10.00", "b,2,5.00,", ",Subtotal,15.00,", "", "c,3,7", "IT total,,7.00", "Total,,22.00"]
    source = source_of(tmp_path, "\n".join(["name,iban,amount,note", *rows, ""]))
    assert values(source, "row", "name", "amount", "defect") == [
        (1, "a", "10.00", None),
        (2, "b", "5.00", None),
        (3, None, None, "ROW_BLANK"),
        (4, "c", "7", None),
    ]
    assert [source.positions.text(row) for row in (1, 2, 3, 4)] == ["line 2", "line 3", "line 5", "line 6"]
    assert [(row.place, row.kind, row.agrees) for row in source.not_payments] == [
        (4, "subtotal", True),
        (7, "subtotal", True),
        (8, "total", True),
    ]
    assert source.original["name"].to_list() == ["a", "b", None, "c"]
    assert Sentence("stages.cells_missing", count=2) in source.notes


def test_a_firm_named_total_whose_account_is_missing_is_no_subtotal_of_one_payment(tmp_path):
    source = source_of(tmp_path, "name,iban,amount\na,1,10.00\nTotal Fuels Ltd,,10.00\nb,2,5.00\n")
    assert values(source, "name") == [("a",), ("Total Fuels Ltd",), ("b",)]
    assert source.not_payments == []


def test_rows_like_headers_or_separators_that_name_something_are_payments(tmp_path):
    rows = ["Name,,", "Name,IBAN,x", "Name,DE89,note", "-----,1,", "---,---,x", ",,Ada"]
    source = source_of(tmp_path, "\n".join(["Payee,IBAN,note", "a,1,x", *rows, "b,2,x"]))
    assert set(values(source, "defect")) == {(None,)}


def test_repeated_headers_are_found_where_headers_are_blank_or_stand_twice(tmp_path):
    source = source_of(tmp_path, "Name,IBAN,,Note,Note\na,1,,x,y\nName,IBAN,,Note,Note\nb,2,,x,y\n")
    assert values(source, "defect") == [(None,), ("ROW_BLANK",), (None,)]


def test_parquet_cells_keep_their_types_and_payments_are_text(tmp_path):
    source = parquet_of(
        tmp_path,
        {"Payee": ["Quillon", ""], "IBAN": ["GB1", None], "Amount": [Decimal("1.50"), None], "n": [1, 2]},
        {"Amount": pl.Decimal(12, 2), "Payee": pl.Categorical()},
    )
    assert values(source, "name", "iban", "amount") == [("Quillon", "GB1", "1.50"), (None, None, None)]
    assert source.original.schema["n"] == pl.Int64()
    assert (source.format, source.dialect.delimiter) == ("parquet", None)


def test_exact_amount_with_three_decimals_is_not_taken_for_thousands(tmp_path):
    columns = {"name": ["a"], "iban": ["1"], "amount": [Decimal("12.500")]}
    source = parquet_of(tmp_path, columns, {"amount": pl.Decimal(12, 3)})
    assert values(source, "amount") == [("12.5000",)]


def test_whole_numbers_are_amounts_and_blank_rows_are_found_in_parquet(tmp_path):
    source = parquet_of(
        tmp_path,
        {"name": ["a", None, "b"], "iban": ["1", " ", "2"], "amount": [1250, None, 1], "n": [1, None, 1]},
    )
    assert values(source, "amount", "defect") == [("1250", None), (None, "ROW_BLANK"), ("1", None)]


def test_amounts_in_pence_are_read_in_pounds_exactly(tmp_path):
    columns = {"name": ["a"] * 5, "iban": ["1"] * 5, "currency": [None, "GBP", "EUR", "JPY", "BHD"]}
    source = parquet_of(tmp_path, {**columns, "Total (pence)": [48250, 7, -99, 500, 500]})
    assert values(source, "amount") == [("482.50",), ("0.07",), ("-0.99",), (None,), (None,)]
    assert source.original["Total (pence)"].to_list() == [48250, 7, -99, 500, 500], "kept as it is"


def test_a_cell_that_is_no_whole_number_of_pence_is_no_amount():
    amounts = pl.Series(["1250.00", "12.50", "1,250", "£5", None])
    assert read_amounts(of_hundredths(amounts, None)).money.to_list() == [Decimal("12.5"), *[None] * 4]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"account_number": [12345678]},
            Sentence("stages.column_type_unfit", column="account_number", advice="stages.column_of_numbers"),
        ),
        (
            {"iban": ["x"], "Sort Code": [1.0]},
            Sentence("stages.column_type_unfit", column="Sort Code", advice="stages.column_of_numbers"),
        ),
        ({"iban": ["x"], "amount": [1.5]}, "stages.column_of_floats"),
        ({"iban": ["x"], "bic": [True]}, Sentence("stages.column_of_type", type="Boolean")),
        ({"iban": [["x"]]}, Sentence("stages.column_of_type", type="List")),
    ],
)
def test_parquet_types_that_cannot_hold_a_field_are_refused(tmp_path, columns, sentence):
    with refused(InputError, sentence, where="payroll.parquet"):
        parquet_of(tmp_path, {"name": ["a"], **columns})


def test_what_loses_nothing_as_a_number_is_text_and_a_damaged_name_is_one_of_its_row(tmp_path):
    columns = {"name": [b"Ada", b"\xff", None], "iban": ["1"] * 3, "payment_id": [7, None, 9]}
    source = parquet_of(tmp_path, {**columns, "reference": [date(2026, 11, 29), None, None]})
    assert values(source, "name", "payment_id", "reference") == [
        ("Ada", "7", "2026-11-29"),
        ("\ufffd", None, None),
        (None, "9", None),
    ]
    assert source.original["payment_id"].to_list() == [7, None, 9], "kept as it is"


def test_a_column_of_nothing_is_absent(tmp_path):
    source = parquet_of(tmp_path, {"name": ["a"], "iban": ["1"], "sort_code": [None]})
    assert values(source, "sort_code") == [(None,)]


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [("iban,reference,name", True), ("reference,iban,name", True), ("Payee,IBAN,Reference", False)],
)
def test_a_table_of_other_columns_below_another_is_refused(tmp_path, headers, is_refused):
    rows = ["Ada Quillon,DE62370400440532013001,one", headers, "salary,DE35370400440532013002,Bo Marrow"]
    text = "\n".join(["name,iban,reference", *rows])
    if is_refused:
        with refused(InputError, "stages.second_header_differs", row=2):
            source_of(tmp_path, text)
    else:
        assert source_of(tmp_path, text).payments.height == 3


def test_characters_of_a_glob_in_a_file_name_are_just_characters(tmp_path):
    source_of(tmp_path, "name,iban\nother,2\n", name="pay1.csv")
    assert values(source_of(tmp_path, "name,iban\nthis,1\n", name="pay[1]*?.csv"), "name") == [("this",)]


def test_a_missing_file_is_refused(tmp_path):
    with refused(InputError, "stages.file_unreadable", "system.enoent", path="payroll.csv"):
        read(tmp_path / "payroll.csv", mapping={})


@pytest.mark.parametrize("name", ["payroll.csv", "payroll", "payroll.xlsx"])
def test_a_folder_is_refused_whatever_its_name(tmp_path, name):
    (tmp_path / name).mkdir()
    with refused(InputError, "stages.folder_not_file", path=name):
        read(tmp_path / name, mapping={})


def test_the_folder_that_the_command_stands_in_is_named():
    with refused(InputError, "stages.folder_not_file", path="."):
        read(Path(), mapping={})


@pytest.mark.parametrize("name", ["payroll.csv", "payroll", "payroll.parquet"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with refused(InputError, "stages.pipe_or_device", path=name):
        read(tmp_path / name, mapping={})


def test_a_device_is_refused():
    with refused(InputError, "stages.pipe_or_device", path="/dev/null"):
        read(Path("/dev/null"), mapping={})


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    with refused(InputError, "stages.file_unreadable"):
        read(tmp_path / "pay\0roll.csv", mapping={})


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "payroll.csv").symlink_to("payroll.csv")
    with refused(InputError, "stages.file_unreadable", "system.eloop"):
        read(tmp_path / "payroll.csv", mapping={})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    path = tmp_path / "payroll.csv"
    path.write_text("name,iban\na,1\n")
    path.chmod(0)
    with refused(InputError, "stages.file_unreadable", "system.eacces"):
        read(path, mapping={})


def test_the_header_of_the_amount_gives_a_currency_to_rows_without_one(tmp_path):
    source = source_of(tmp_path, "name,iban,Amount (GBP),currency\na,1,1.00,\nb,2,2.00,EUR\nc,3,,\n")
    assert values(source, "currency") == [("GBP",), ("EUR",), (None,)]


def test_a_column_that_mixes_accounts_is_read_cell_by_cell(tmp_path):
    text = "Payee,Account,Sort code\na,DE89370400440532013000,\nb,12345678,112233\nc,11223312345678,\n"
    assert values(source_of(tmp_path, text), "iban", "sort_code", "account_number") == [
        ("DE89370400440532013000", None, None),
        (None, "112233", "12345678"),
        (None, "112233", "12345678"),
    ]


def test_fewer_rows_are_read_as_the_whole_file_was(tmp_path):
    text = "Supplier,Company,iban\nAda,Own Works,1\nBo,Own Works,2\n"
    whole = source_of(tmp_path, text)
    path = tmp_path / "half.csv"
    path.write_text("Supplier,Company,iban\nAda,Own Works,1\n")
    with refused(InputError, "headers.either_could_be"):
        read(path, mapping={})
    assert read(path, mapping={}, decided=whole.decision).payments["name"].to_list() == ["Ada"]


@for_each("header", ["^n.*$", "*"])
def test_a_header_that_looks_like_a_pattern_of_headers_is_refused(header, tmp_path):
    with refused(InputError, "stages.header_is_pattern", position=3):
        source_of(tmp_path, f"name,iban,{header}\na,1,2\n")


@for_each("bank", [["GB"], {"code": "GB"}])
def test_lists_and_structs_under_a_header_of_bank_countries_state_no_country(bank, tmp_path):
    source = parquet_of(tmp_path, {"name": ["Ada"], "iban": [GERMAN], "bank country": [bank]})
    assert source.payments["iban"].to_list() == [GERMAN]


def test_a_position_of_thousands_of_digits_is_no_column(tmp_path):
    with pytest.raises(InputError):
        source_of(tmp_path, "who,iban\nAda,GB1\n", mapping={"name": "#" + 5000 * "1"})


def long_of(start, part, end):
    return start + part * (30_000 // len(part)) + end


@for_each(
    "line",
    [
        long_of("Run", " ", "of November"),
        long_of("", "1 ", "A"),
        f"name,iban,{long_of('Due', '(', '')}",
        f"name,iban,{long_of('Due', 'x', '')}",
        f"name,iban,{long_of('a', chr(0x301) + chr(0x316), '')}",
        f"{long_of('', 'a ', '1')},12345678,12.00",
    ],
)
def test_a_long_cell_is_read_within_seconds(line, tmp_path):
    began = process_time()
    with suppress(InputError):
        source_of(tmp_path, f"{line}\nname,iban,note\nAda,GB1,x\n")
    assert process_time() - began < 4


def test_totals_below_the_payments_are_in_no_frame(tmp_path):
    payments = "Ada,GB1,100.00\nBo,GB2,50.00\n"
    alone = source_of(tmp_path, f"name,iban,amount\n{payments}")
    source = source_of(tmp_path, f"name,iban,amount\n{payments}\nTotal,,150.00,too,many\nPrepared by,Zoe\n")
    assert source.payments.equals(alone.payments)
    assert source.original.equals(alone.original)
    assert source.extra_column_count == 0
    assert [(row.place, row.kind, row.agrees) for row in source.not_payments] == [
        (5, "total", True),
        (6, "note", None),
    ]


def test_totals_of_a_parquet_file_are_told_by_their_row(tmp_path):
    amounts = pl.Series([Decimal("100.00"), Decimal("50.00"), Decimal("151.00")], dtype=pl.Decimal(12, 2))
    source = parquet_of(
        tmp_path, {"name": ["Ada", "Bo", "Total"], "iban": ["GB1", "GB2", None], "amount": amounts}
    )
    assert (source.payments.height, source.positions) == (2, None)
    [total] = source.not_payments
    assert (total.place, total.row, total.agrees) == (None, 3, False)
    assert total.sentence.startswith(said("footer.not_a_payment", place=Sentence("footer.row", number=3)))


def test_a_file_of_totals_alone_is_refused(tmp_path):
    with refused(InputError, "stages.no_payment_rows"):
        source_of(tmp_path, "name,iban,amount\nTotal,,0.00\n")


def test_every_row_of_a_file_of_this_program_is_a_payment(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text("name,iban,amount\nAda,GB1,100.00\nBo,GB2,50.00\nTotal,,150.00\n")
    told = read(path, mapping={})
    again = read(path, mapping={}, decided=told.decision)
    assert (told.payments.height, again.payments.height) == (2, 3)


def test_who_is_asked_is_not_decided_by_a_total(tmp_path):
    """The same name in every payment is the payer's; the label of the total is no other name."""
    rows = "Quillon Mills,Ada,GB1\nQuillon Mills,Bo,GB2\n"
    source = source_of(tmp_path, f"Company,Employee,IBAN\n{rows}Total,,\n")
    assert values(source, "name") == [("Ada",), ("Bo",)]


def test_the_place_columns_of_attention_are_left_out(tmp_path):
    source = source_of(tmp_path, "name,iban,check_row,check_place,check_outcome\na,b,7,line 8,no_match\n")
    assert source.original.columns == ["name", "iban"]


CASES = Path(__file__).parents[2] / "cases"


def test_a_number_of_a_workbook_has_the_decimals_of_its_currency(tmp_path):
    path = tmp_path / "pay.xlsx"
    workbook = openpyxl.Workbook()
    for cells in [
        ("IBAN", "Amount", "Currency", "Name"),
        (GERMAN, 1.234, "BHD", "Ada"),
        (GERMAN, "1.234", "BHD", "Bo"),
        (GERMAN, 1.234, "EUR", "Cy"),
        (GERMAN, 1234.5, "EUR", 1.234),
    ]:
        workbook.active.append(cells)
    workbook.save(path)
    source = read(path, mapping={})
    assert values(source, "amount", "name") == [
        ("1.2340", "Ada"),
        ("1.2340", "Bo"),
        ("1.2340", "Cy"),
        ("1234.5", "1.234"),
    ]
    assert source.original["Amount"].to_list() == ["1.234", "1.234", "1.234", "1234.5"]
    rejects = validate(source.payments, Routes([ApiName.VOP_GATEWAY])).rejects
    codes = rejects.filter(pl.col("field") == "amount").select("row", "code").rows()
    assert codes == [(3, "AMOUNT_DECIMALS")]


@pytest.mark.parametrize(
    ("header", "written", "amounts"),
    [
        ("Amount (KWD)", ["87.400", "1250.000"], ["87.4000", "1250.000"]),
        ("Amount", ["KWD 87.400", "87.400"], ["KWD 87.4000", "87.400"]),
        ("Amount (IQD)", ["250.000", "1"], ["250.000", "1"]),
        ("Amount (KWD)", ["87.400", '"1.250,500"'], ["87.400", "1.250,500"]),
        ("Amount (EUR)", ["87.400", "1"], ["87.400", "1"]),
    ],
)
def test_three_digits_behind_a_point_are_decimals_where_the_currency_has_three(
    tmp_path, header, written, amounts
):
    rows = "".join(f"Ada,{GERMAN},{amount}\n" for amount in written)
    source = source_of(tmp_path, f"name,iban,{header}\n{rows}")
    assert [amount for (amount,) in values(source, "amount")] == amounts


def test_numbers_with_three_decimals_in_many_rows_of_a_workbook():
    source = read(CASES / "x01_numeric_amounts.xlsx", mapping={})
    rejects = validate(source.payments, Routes([ApiName.VOP_GATEWAY])).rejects
    assert rejects.select("row", "code").rows() == [
        (3, "AMOUNT_DECIMALS"),
        (10, "AMOUNT_FORMAT"),
        (11, "AMOUNT_NEGATIVE"),
        (14, "AMOUNT_DECIMALS"),
        (15, "AMOUNT_DECIMALS"),
    ]
