"""Outcomes by responding bank: how a bank is known, and how the last run stands beside this one."""

import polars as pl
import pytest

from pipeline.rules.responder_bics import bank_identifiers
from schemas.changes import BankOutcomes


@pytest.mark.parametrize(
    ("iban", "sort_code", "account_number", "bank"),
    [
        ("DE89 3704 0044 0532 0130 00", None, None, "DE37040044"),
        ("fr1420041010050500013m02606", None, None, "FR20041"),
        ("GB29NWBK60161331926819", None, None, "601613"),
        (None, "20-04-15", "31926819", "200415"),
        (None, None, "20041531926819", "200415"),
        (None, "2004", "31926819", None),
        ("XX12", None, None, None),
        (None, None, None, None),
    ],
)
def test_a_bank_is_the_code_of_an_iban_or_the_sort_code(iban, sort_code, account_number, bank):
    row = {"iban": iban, "sort_code": sort_code, "account_number": account_number}
    assert bank_identifiers(pl.DataFrame(row, schema=dict.fromkeys(row, pl.String))).to_list() == [bank]


def test_the_share_of_matches_is_of_the_answers():
    counts = {"match_count": 2, "close_match_count": 1, "no_match_count": 0, "not_possible_count": 0}
    assert BankOutcomes(bank="200415", answered_count=3, **counts).match_percent == 67
