"""In which form two files are compared, and what of it is kept."""

import polars as pl
import pytest

from pipeline.frames import ACCEPTED
from pipeline.rules.payees import KEYED, keyed, masked_name, payees_of
from pipeline.stores.ledger_keys import payee_hashes

HASHED = payee_hashes(b"\x01" * 32, KEYED)
OTHER = payee_hashes(b"\x02" * 32, KEYED)


def payees(*rows, ids=None):
    usual = {"api": "cop", "account": "00112200012345", "name": "Avery Thornwood"}
    accepted = [{"row": number} | usual | row for number, row in enumerate(rows, start=1)]
    series = pl.Series(ids or [None] * len(rows), dtype=pl.String)
    return payees_of(pl.DataFrame(accepted, schema=ACCEPTED), series)


def keys(*rows, ids=None, hashed=HASHED):
    return keyed(payees(*rows, ids=ids), hashed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"name": "Avery  THORNWOOD"}, {"name": "avery thornwood"}),
        ({"account": "GB36MIDL00112200012345"}, {"account": "00112200012345"}),
        ({"secondary_reference": "Roll  7A"}, {"secondary_reference": "roll 7a"}),
    ],
)
def test_what_is_only_written_differently_is_the_same(one, other):
    found = keys(one, other)
    assert found.drop("row").row(0) == found.drop("row").row(1)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Avery Thornwoods"},
        {"account": "00112200012346"},
        {"secondary_reference": "7B"},
        {"lei": "5493001"},
    ],
)
def test_what_differs_has_another_key(change):
    found = keys({}, change).select(KEYED)
    assert found.row(0) != found.row(1)


def test_two_folders_know_nothing_by_the_same_key():
    ours, theirs = keys({}, ids=["E1"]), keys({}, ids=["E1"], hashed=OTHER)
    assert not set(ours.select(KEYED).row(0)) & set(theirs.select(KEYED).row(0))


def test_one_text_in_two_columns_has_two_keys():
    found = keys({"name": "e1", "account": "e1"}, ids=["e1"]).select(KEYED).row(0)
    assert len(set(found)) == 3


def test_a_blank_id_is_none_and_an_identification_stands_in_for_it():
    found = payees({}, {"name": None, "lei": "5493001"}, {}, ids=[" ", None, " E1 "])
    assert found["payee_id"].to_list() == [None, "lei 5493001", "e1"]


def test_a_number_beside_more_than_three_names_is_nobodys():
    names = [{"name": name} for name in ("A", "B", "C", "D", "E", "E")]
    found = payees(*names, ids=["9", "9", "9", "9", "1", "1"])
    assert found["payee_id"].to_list() == [None, None, None, None, "1", "1"]


def test_what_is_kept_shows_of_an_account_its_end_alone():
    iban = {"account": "DE35370400440084210077", "secondary_reference": "R1234"}
    assert keys(iban, {})["account_shown"].to_list() == ["DE**0077 (reference **34)", "**2345"]


def test_a_masked_name_shows_no_word_and_how_long_each_is():
    assert masked_name("Avery Thornwood") == "A***y T*******d"
    assert masked_name("Li Xu & Co.") == "L* X* & C*."
    assert masked_name("") == ""
