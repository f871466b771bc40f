"""The responder's BIC for VoP Standard."""

import polars as pl
import pytest

from pipeline.apis.agents import directory_bics, registry_bics
from schemas.vop import FinancialInstitutionId

KNOWN = "DE89370400440532013000"
UNKNOWN = "DE36000000000000000000"


def directory_bic(directory, iban=KNOWN):
    return dict(directory_bics(pl.Series([iban]), directory).iter_rows())[iban]


def test_registry_knows_a_large_bank_and_pads_its_bic_to_eleven():
    found = dict(registry_bics(pl.Series([KNOWN, KNOWN, UNKNOWN])).iter_rows())
    assert found == {KNOWN: "COBADEFFXXX", UNKNOWN: None}


def test_every_bic_of_the_registry_can_stand_in_a_request():
    from schwifty import registry

    for bank in registry.get_all_banks():
        if bank.bic:
            FinancialInstitutionId(bicfi=str(bank.bic).ljust(11, "X"))


@pytest.mark.parametrize("ibans", [[], [None], [None, None]])
def test_nothing_is_looked_up_for_rows_without_an_iban(ibans):
    series = pl.Series(ibans, dtype=pl.String)
    assert registry_bics(series).height == 0
    assert directory_bics(series, {"DE3": "QUILDEFFXXX"}).height == 0


def test_longest_start_in_the_table_wins_whatever_its_order():
    table = {"DE3704": "QUILDEFFXXX", "DE37040044": "MARWDEFFXXX", "DE3": "THRNDEFFXXX"}
    assert directory_bic(table) == "MARWDEFFXXX"
    assert directory_bic(dict(reversed(table.items()))) == "MARWDEFFXXX"


@pytest.mark.parametrize("start", ["DE89", "FR3704", "3704", "DE0440"])
def test_start_is_compared_without_the_check_digits_and_from_the_country_on(start):
    assert directory_bic({start: "QUILDEFFXXX"}) is None
