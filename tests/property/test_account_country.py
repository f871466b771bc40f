"""The country of an account: what is plain needs no closer look."""

from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.rules.account_country import AccountSigns, located
from schemas.payments import FIELDS

CELLS = {
    "sort_code": st.sampled_from([None, "112233", "11-22-33", "912345", "1122", "BLZ 5"]),
    "account_number": st.sampled_from([None, "12345678", "11223312345678", "1234 5678", "PL1", "12/3456"]),
    "iban": st.sampled_from([None, None, "NL27RABO0384210070"]),
    "bic": st.sampled_from([None, None, "RABONL2U", "MIDLGB22", "DEUTDEFF"]),
    "currency": st.sampled_from([None, "GBP", "EUR", "USD", "PLN", "£"]),
    "amount": st.sampled_from(["1.00", "£1.00", "1 zł"]),
}
SIGNS = {
    "bank_country": st.sampled_from([None, None, "GB", "DE"]),
    "says_sort_code": st.booleans(),
    "is_said": st.booleans(),
}
ROW = st.fixed_dictionaries({**CELLS, **SIGNS})


def judged(rows, country):
    """What is found about rows: their codes and numbers, and why they are not asked about."""
    frame = pl.DataFrame(
        rows,
        schema={
            **dict.fromkeys(CELLS, pl.String),
            "bank_country": pl.String,
            "says_sort_code": pl.Boolean,
            "is_said": pl.Boolean,
        },
    )
    payments = frame.select(
        *(pl.col(field) if field in CELLS else pl.lit(None, pl.String).alias(field) for field in FIELDS)
    )
    found = located(
        payments, AccountSigns(frame["bank_country"], frame["says_sort_code"], frame["is_said"], country)
    )
    return found.payments.select("sort_code", "account_number").rows(), found.defects.to_list()


@given(st.lists(ROW, min_size=1, max_size=6), st.sampled_from([None, "GB", "DE"]))
def test_a_row_is_judged_alike_alone_and_beside_others(rows, country):
    whole, defects = judged(rows, country)
    for at, row in enumerate(rows):
        [alone], [defect] = judged([row], country)
        assert (alone, defect) == (whole[at], defects[at])


EACH = {
    "sort_code": [None, "112233", "11-22-33", "912345", "1122", "BLZ 5"],
    "account_number": [None, "12345678", "11223312345678", "1234 5678", "PL1", "12/3456"],
    "iban": [None, "NL27RABO0384210070"],
    "bic": [None, "MIDLGB22", "DEUTDEFF"],
    "amount": ["1.00"],
    "bank_country": [None, "GB", "DE"],
    "says_sort_code": [False, True],
    "is_said": [False, True],
}


@pytest.mark.parametrize("country", [None, "GB", "DE"])
def test_pounds_are_pounds_however_they_are_written(country):
    rows = [dict(zip(EACH, cells, strict=True)) for cells in product(*EACH.values())]
    found = [judged([{**row, "currency": code} for row in rows], country) for code in ("GBP", "gbp")]
    assert found[0] == found[1]
