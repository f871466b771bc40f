"""The responder's BIC for VoP Standard."""

from random import Random

import polars as pl
import pytest
from schwifty import IBAN

from pipeline.rules.identifiers import iban_structures
from pipeline.rules.responder_bics import directory_bics, registry_bics
from schemas.vop import FinancialInstitutionId

KNOWN = "DE89370400440532013000"
UNKNOWN = "DE36000000000000000000"


def directory_bic(directory, iban=KNOWN):
    return directory_bics(pl.Series([iban]), directory).item()


def test_registry_knows_a_large_bank_and_pads_its_bic_to_eleven():
    found = registry_bics(pl.Series([KNOWN, UNKNOWN, None, KNOWN]))
    assert found.to_list() == ["COBADEFFXXX", None, None, "COBADEFFXXX"]


@pytest.mark.nightly
def test_one_lookup_for_every_bank_finds_what_a_lookup_for_every_iban_finds():
    random = Random(20)
    ibans = [
        str(IBAN.random(country_code=country, random=random))
        for country in iban_structures()
        for _ in range(12)
    ]
    bics = [None if IBAN(iban).bic is None else str(IBAN(iban).bic).ljust(11, "X") for iban in ibans]
    assert registry_bics(pl.Series(ibans)).to_list() == bics
    assert len(set(bics)) > 100


def test_the_whole_directory_of_a_country_can_be_a_table():
    table = {f"DE{code:08}": f"QUILDE{code % 100:02}XXX" for code in range(37_000_000, 37_080_000, 4)}
    ibans = pl.Series([KNOWN, UNKNOWN, KNOWN] * 100_000)
    assert directory_bics(ibans, table).to_list() == ["QUILDE44XXX", None, "QUILDE44XXX"] * 100_000


def test_every_bic_of_the_registry_can_stand_in_a_request():
    from schwifty import registry

    for bank in registry.get_all_banks():
        if bank.bic:
            FinancialInstitutionId(bicfi=str(bank.bic).ljust(11, "X"))


@pytest.mark.parametrize("ibans", [[], [None], [None, None]])
def test_nothing_is_looked_up_for_rows_without_an_iban(ibans):
    series = pl.Series(ibans, dtype=pl.String)
    assert registry_bics(series).to_list() == ibans
    assert directory_bics(series, {"DE3": "QUILDEFFXXX"}).to_list() == ibans


def test_longest_start_in_the_table_wins_whatever_its_order():
    table = {"DE3704": "QUILDEFFXXX", "DE37040044": "MARWDEFFXXX", "DE3": "THRNDEFFXXX"}
    assert directory_bic(table) == "MARWDEFFXXX"
    assert directory_bic(dict(reversed(table.items()))) == "MARWDEFFXXX"


@pytest.mark.parametrize("start", ["DE89", "FR3704", "3704", "DE0440"])
def test_start_is_compared_without_the_check_digits_and_from_the_country_on(start):
    assert directory_bic({start: "QUILDEFFXXX"}) is None
