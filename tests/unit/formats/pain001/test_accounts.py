"""Which accounts of a pain.001 are UK ones: by the same signs, in the same order, as in a table."""

from pathlib import Path

import pytest
from paymentfiles.pain001 import Batch, Payment, document
from refusals import refused

from pipeline.errors import InputError
from pipeline.rules.unasked import code_of
from pipeline.stages.read import read

CASES = Path(__file__).parents[3] / "cases"
BOTH = ("001122", "33445566")


def read_file(tmp_path, *payments, country=None, change=lambda data: data):
    path = tmp_path / "payments.xml"
    path.write_bytes(change(document((Batch(payments),))))
    return read(path, mapping={}, country=country)


def accounts(source):
    """Sort code, account number and code of the defect of each payment."""
    columns = source.payments.select("sort_code", "account_number", "defect").iter_rows()
    return [(code, number, defect and code_of(defect)) for code, number, defect in columns]


@pytest.mark.parametrize(
    ("payment", "found", "defect"),
    [
        (Payment(account="00112233445566", bic="BARCGB22"), BOTH, None),
        (Payment(account="00112233445566", currency="GBP"), BOTH, None),
        (Payment(account="00112233445566", sort_code="001122"), BOTH, None),
        (
            Payment(account="00112233445566", sort_code="001123"),
            ("001123", "00112233445566"),
            "SORT_CODES_DIFFER",
        ),
        (Payment(account="00112233445566", bic="HANDSESS"), (None, "00112233445566"), "ACCOUNT_ELSEWHERE"),
        (
            Payment(account="00112233", currency="GBP", bic="HANDSESS"),
            (None, "00112233"),
            "ACCOUNT_ELSEWHERE",
        ),
        (
            Payment(account="33445566", sort_code="001122", bic="HANDSESS"),
            BOTH,
            "ACCOUNT_SIGNS_DIFFER",
        ),
        (Payment(account="112233", currency="GBP"), (None, "112233"), None),
        (
            Payment(account="1234", sort_code="5050", clearing_system="SESBA"),
            (None, "1234"),
            "ACCOUNT_ELSEWHERE",
        ),
        (
            Payment(account="33445566", sort_code="901122", clearing_system="IENCC"),
            (None, "33445566"),
            "ACCOUNT_ELSEWHERE",
        ),
        (Payment(account="00112233445566", currency="DKK"), (None, "00112233445566"), "ACCOUNT_ELSEWHERE"),
        (Payment(proxy="+447700900123"), (None, None), "PROXY"),
        (Payment(proxy="+447700900123", iban="NL91ABNA0417164300"), (None, None), None),
        (Payment(iban="NL91ABNA0417164300", account="12345678"), (None, None), "ELEMENT_TWICE"),
        (Payment(), (None, None), None),
    ],
)
def test_accounts_that_can_be_checked_are_told_from_those_that_cannot(tmp_path, payment, found, defect):
    assert accounts(read_file(tmp_path, payment)) == [(*found, defect)]


@pytest.mark.parametrize(
    ("country", "bic", "defect"),
    [
        ("DK", None, "ACCOUNT_ELSEWHERE"),
        ("dk", None, "ACCOUNT_ELSEWHERE"),
        ("GB", None, None),
        ("JE", "BARCJESH", None),
        ("DK", "BARCGB22", "ACCOUNT_ELSEWHERE"),
        ("GB", "DABADKKK", "ACCOUNT_ELSEWHERE"),
    ],
)
def test_the_country_of_the_bank_counts(tmp_path, country, bic, defect):
    def with_address(data):
        end = data.index(b"</FinInstnId>", data.index(b"<CdtrAgt>"))
        address = b"<PstlAdr><Ctry>" + country.encode() + b"</Ctry></PstlAdr>"
        return data[:end] + address + data[end:]

    payment = Payment(account="30000001234567", currency="GBP", bic=bic or "NOTPROVIDED")
    [(*_, found)] = accounts(read_file(tmp_path, payment, change=with_address))
    assert found == defect


def test_a_uk_account_beside_other_signs():
    assert [defect for *_, defect in accounts(read(CASES / "gb.xml", mapping={}))] == [
        "SORT_CODES_DIFFER",
        "ACCOUNT_ELSEWHERE",
    ]


def test_digits_alone_are_refused_once_and_the_users_word_goes_before_every_sign(tmp_path):
    payment = Payment(account="00112233445566", currency="USD")
    with refused(InputError, "stages.account_country_unknown", "advice.say_accounts_are_uk"):
        read_file(tmp_path, payment, payment)
    assert accounts(read_file(tmp_path, payment, country="GB")) == [(*BOTH, None)]
    assert accounts(read_file(tmp_path, payment, country="DK"))[0][-1] == "ACCOUNT_ELSEWHERE"
