"""A domestic account is British only by a sign; the order of signs is the same for every format."""

from pathlib import Path

import pytest
from refusals import refused, said

from pipeline.errors import InputError
from pipeline.headers.account_signs import says_sort_code
from pipeline.rules.unasked import SENTENCES
from pipeline.stages.read import read
from pipeline.stages.validate import Routes, validate
from schemas.outcomes import ApiName

CASES = Path(__file__).parents[2] / "cases"
BOTH = Routes([ApiName.COP, ApiName.VOP_GATEWAY])


def judged(path, *, mapping=None, country=None):
    """Of each row the account that is asked about, or the code of its first broken rule; and its warnings."""
    source = read(path, mapping=mapping or {}, country=country)
    valid = validate(source.payments, BOTH, source.positions)
    asked = dict(valid.accepted.select("row", "account").iter_rows())
    broken = dict(valid.rejects.select("row", "code").reverse().iter_rows())
    warned = [code for code in valid.warnings["code"] if code.startswith(("UK_", "BIC_"))]
    return [asked.get(row) or broken[row] for row in source.payments["row"]], warned


def judged_text(tmp_path, text, **said):
    path = tmp_path / "pay.csv"
    path.write_text(text, encoding="utf-8")
    return judged(path, **said)


ELSEWHERE = "ACCOUNT_ELSEWHERE"


@pytest.mark.parametrize(
    ("name", "rows", "warned"),
    [
        ("f01_india.csv", [ELSEWHERE] * 2, []),
        ("f02_denmark.csv", [ELSEWHERE] * 2, []),
        ("f07_mixed_world.csv", ["01020312345678", ELSEWHERE, "DE62370400440532013001", ELSEWHERE], []),
        ("f09_za_branch.csv", [ELSEWHERE] * 2, []),
        (
            "f13_usd_sort.csv",
            ["01020312345678", "01020312345679", "01020312345670"],
            ["UK_ACCOUNT_CURRENCY"] * 2,
        ),
        ("h27_polish.csv", ["PL74109024020000000123456789", ELSEWHERE], []),
    ],
)
def test_domestic_accounts_of_real_files(name, rows, warned):
    assert judged(CASES / name) == (rows, warned)


@pytest.mark.parametrize(
    ("headers", "row", "found"),
    [
        # Signs for the UK.
        ("Account,Currency", "01020312345678,GBP", "01020312345678"),
        ("Account,BIC", "01020312345678,NWBKGB2L", "01020312345678"),
        ("Account,BIC", "01020312345678,BARCJESH", "01020312345678"),
        ("Account,Bank country", "01020312345678,United Kingdom", "01020312345678"),
        ("UK account number,Note", "01020312345678,x", "01020312345678"),
        ("Sort code,Account", "010203,12345678", "01020312345678"),
        ("Account,Amount", "01020312345678,£10.00", "01020312345678"),
        ("Account,Amount (GBP)", "01020312345678,10.00", "01020312345678"),
        ("Account,Note", "01-02-03 12345678,x", "01020312345678"),
        ("Branch code,Account,Currency", "010203,12345678,GBP", "01020312345678"),
        # Signs against it, which go first.
        ("Account,BIC,Currency", "01020312345678,HANDSESS,GBP", ELSEWHERE),
        ("Account,Bank country,Currency", "01020312345678,HK,GBP", ELSEWHERE),
        ("Account,IFSC,Currency", "50100012345678,HDFC0000123,GBP", ELSEWHERE),
        ("BSB,Account,Currency", "062-000,12345678,AUD", ELSEWHERE),
        ("BSB,Account,Currency", "062-000,12345678,", ELSEWHERE),
        ("Routing number,Account number,Currency", "021000021,12345678,USD", ELSEWHERE),
        ("BLZ,Konto,Currency", "37040044,532013000,EUR", ELSEWHERE),
        ("NSC,Account,Currency", "931152,12345678,EUR", ELSEWHERE),
        ("Sort code,Account,Currency", "931152,12345678,EUR", ELSEWHERE),
        ("Sort code,Account,Currency", "010203,12345678,NGN", ELSEWHERE),
        ("Account,Currency", "01020312345678,MYR", ELSEWHERE),
        ("Account,Amount", "01020312345678,SEK 10.00", ELSEWHERE),
        ("Sort code,Account,Amount", "010203,12345678,10.00 kr", ELSEWHERE),
        ("Sort code,Account,Amount", "010203,12345678,$10.00", "01020312345678"),
        ("Account,Account currency", "01020312345678,GBP", "01020312345678"),
        # A UK header beside a foreign bank.
        ("Sort code,Account,BIC", "010203,12345678,DABADKKK", "ACCOUNT_SIGNS_DIFFER"),
        ("Sort code,Account,BIC", "931152,12345678,AIBKGB2L", "93115212345678"),
        # Accounts that cannot be UK ones.
        ("Konto,Note", "12345678903,x", ELSEWHERE),
        ("Bankszámlaszám,Note", "11773016-11111018-00000000,x", ELSEWHERE),
        ("Číslo účtu,Note", "19-2000145399/0800,x", ELSEWHERE),
        ("IBAN,Note", "04109024020000000123456788,x", ELSEWHERE),
        # Without any sign, and no fourteen digits: what is missing is said as ever.
        ("Account,Note", "12345678,x", "SORT_CODE_MISSING"),
        # The code of another country's banks is never proposed as a sort code.
        ("BSB,Account,Note", "062000,12345678,x", ELSEWHERE),
        ("BSB,Account,Amount (AUD)", "062000,12345678,10.00", ELSEWHERE),
        ("Bankcode,Account,Amount (AUD)", "062000,12345678,10.00", ELSEWHERE),
    ],
)
def test_the_signs_of_the_country_go_in_their_order(tmp_path, headers, row, found):
    rows, _ = judged_text(tmp_path, f"Name,{headers}\nAda Quillon,{row}\n")
    assert rows == [found]


def test_the_sentence_says_how_the_account_can_be_checked(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("Name,Account,Currency\nAda Quillon,04109024020000000123456788,PLN\n")
    [found] = validate(read(path, mapping={}).payments, BOTH).rejects.to_dicts()
    assert found["message"] == str(SENTENCES["ACCOUNT_ELSEWHERE/PL"])
    assert found["message"] == said("rule.account_in_pl")


def test_an_account_number_of_other_digits_may_be_one_elsewhere(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("Name,Account\nAda Quillon,123456789012\n")
    found = validate(read(path, mapping={}).payments, BOTH).rejects["message"]
    assert {*found} == {said("rule.account_number_format"), said("rule.sort_code_missing")}


OPEN = "Name,Account\nAda Quillon,01020312345678\nBo Marrow,01020387654321\n"


def test_a_whole_file_of_fourteen_digits_without_a_sign_is_refused_once(tmp_path):
    with refused(InputError, "stages.account_country_unknown", "advice.say_accounts_are_uk"):
        judged_text(tmp_path, OPEN)


@pytest.mark.parametrize("code", ["Branch code", "Bank Branch No."])
def test_a_whole_file_of_branch_codes_without_a_sign_is_refused_too(tmp_path, code):
    with refused(InputError, "stages.account_country_unknown", "advice.say_accounts_are_uk"):
        judged_text(
            tmp_path, f"Name,{code},Account number\nAda Quillon,632005,12345678\nBo,250655,87654321\n"
        )


def test_one_row_without_a_sign_beside_others_is_rejected(tmp_path):
    rows, _ = judged_text(tmp_path, f"{OPEN}Cy Tern,DE62370400440532013001\n")
    assert rows == [ELSEWHERE, ELSEWHERE, "DE62370400440532013001"]


def test_the_users_word_goes_before_every_sign(tmp_path):
    rows, warned = judged_text(tmp_path, OPEN, country="GB")
    assert (rows, warned) == (["01020312345678", "01020387654321"], [])
    danish = "Name,Sort code,Account,BIC,Currency\nAda,010203,12345678,DABADKKK,DKK\n"
    assert judged_text(tmp_path, danish, country="GB") == (
        ["01020312345678"],
        ["BIC_OTHER_COUNTRY", "UK_ACCOUNT_CURRENCY"],
    )
    mapped = {"sort_code": "Branch", "account_number": "Number", "name": "Name"}
    branches = "Name,Branch,Number,Currency\nAda,010203,12345678,ZAR\n"
    assert judged_text(tmp_path, branches, mapping=mapped)[0] == ["01020312345678"]
    irish = "Name,Sort code,Account,Currency\nAda,010203,12345678,GBP\n"
    assert judged_text(tmp_path, irish, country="IE")[0] == [ELSEWHERE]


def test_a_header_of_sort_codes_holds_for_rows_of_a_file_without_another_country(tmp_path):
    rows, _ = judged_text(tmp_path, "Name,Sort code,Account\nAda,010203,12345678\nBo,,01020387654321\n")
    assert rows == ["01020312345678", "01020387654321"]
    mixed = "Name,Sort code,Account,Currency\nAda,010203,12345678,GBP\nBo,,01020387654321,\n"
    assert judged_text(tmp_path, mixed)[0] == ["01020312345678", ELSEWHERE]


def test_a_header_that_has_the_codes_of_several_countries_is_no_sign():
    assert says_sort_code("Sort code or routing number")
    assert not any(map(says_sort_code, ("Sort code / BSB", "National sort code (NSC)", "Our account")))


@pytest.mark.parametrize(
    "code",
    [
        "01\u201002\u201003",
        "01\u201102\u201103",
        "01\u201302\u201303",
        "01\u221202\u221203",
        "01\u204302\u204303",
        "01\u02d702\u02d703",
        "GBDSC010203",
        "SC 01-02-03",
    ],
)
def test_hyphens_of_any_kind_and_the_name_of_the_clearing_system_are_read_in_sort_codes(tmp_path, code):
    assert judged_text(tmp_path, f"Name,Sort code,Account\nAda,{code},12345678\n")[0] == ["01020312345678"]


@pytest.mark.parametrize(
    ("name", "field", "found"),
    [
        ("h12_vendor_bc.csv", "sort_code", ["010203", "010203"]),
        ("h22_building_society.csv", "secondary_reference", ["A/12345678-9", None]),
    ],
)
def test_headers_of_branches_and_building_societies_are_read(name, field, found):
    assert read(CASES / name, mapping={}).payments[field].to_list() == found


def test_amounts_beside_words_for_their_currency_are_read():
    valid = validate(read(CASES / "c02_amount_words.csv", mapping={}).payments, BOTH)
    assert valid.rejects["row"].to_list() == [13]  # a currency without an amount
    assert valid.accepted["currency"].to_list()[2:5] == ["PLN", "CZK", "CHF"]


def test_sort_codes_are_read_with_the_hyphens_that_people_type():
    valid = validate(read(CASES / "a06_uk_shapes.csv", mapping={}).payments, BOTH)
    assert {1, 2, 3, 9, 27, 28, 32} <= set(valid.accepted["row"])


def test_a_column_of_account_types_without_any_type_is_not_read():
    source = read(CASES / "h29_bc_journal.csv", mapping={})
    assert source.payments["account_type"].null_count() == 3
    assert validate(source.payments, BOTH).rejects.is_empty()


@pytest.mark.parametrize("amount", ["Amount (ZAR)", "Net Pay (UGX)", "Betrag KES", "amount_ngn"])
def test_a_currency_in_the_header_of_the_amounts_speaks_against_the_uk_as_one_in_a_column_does(
    tmp_path, amount
):
    rows = "Thabo Ndou,250655,62012345,10.00\nSipho Zuma,632005,12345678,20.00\n"
    text = f"Name,Sort Code,Account Number,{amount}\n{rows}"
    assert judged_text(tmp_path, text) == ([ELSEWHERE] * 2, [])


@pytest.mark.parametrize("codes", ["Bankl", "BLZ", "Routing number", "Bank No", "Bankschlüssel"])
@pytest.mark.parametrize(
    "signs",
    [
        ("Bank country", "GB", "DE", "US"),
        ("BIC", "NWBKGB2L", "COBADEFF", "CHASUS33"),
    ],
)
def test_rows_of_the_uk_have_sort_codes_under_a_header_of_other_bank_codes(tmp_path, codes, signs):
    header, *of_rows = signs
    accounts = ("010203,12345678", "37040044,532013000", "123456,12345678")
    rows = [f"Ada Quillon,{account},{sign}" for account, sign in zip(accounts, of_rows, strict=True)]
    text = "\n".join([f"Name,{codes},Account,{header}", *rows])
    found, _ = judged_text(tmp_path, text)
    assert found == ["01020312345678", "ACCOUNT_ELSEWHERE", "ACCOUNT_ELSEWHERE"]


def test_a_bank_code_beside_an_iban_is_no_second_account(tmp_path):
    rows = [
        "Ada Quillon,,010203,12345678,GBP",
        "Ben Reed,DE62370400440532013001,37040044,0532013001,EUR",
        "Cy Marrow,,010203,12345678,USD",
    ]
    found, _ = judged_text(tmp_path, "\n".join(["Name,IBAN,BLZ,Konto,Currency", *rows]))
    assert found == ["01020312345678", "DE62370400440532013001", "ACCOUNT_ELSEWHERE"]
