"""The UK modulus check: the cases that the specification prints, and what is said of accounts."""

from datetime import date

import polars as pl
import pytest

from pipeline.frames import ACCEPTED, WARNINGS, RouteReason
from pipeline.rules.modulus import Modulus, old_failures, same_tables, states, used
from pipeline.rules.modulus_tables import read_tables
from schemas.outcomes import ApiName

WEIGHTS = """
070116 070116 MOD11 0 0 7 6 5 8 9 4 5 6 7 8 9 -1 12
070116 070116 MOD10 0 3 2 4 5 8 9 4 5 6 7 8 9 -1 13
074456 074456 MOD11 0 0 7 6 5 8 9 4 5 6 7 8 9 -1 12
074456 074456 MOD10 0 3 2 4 5 8 9 4 5 6 7 8 9 -1 13
086090 086090 MOD10 0 0 3 7 1 3 7 1 3 7 1 3 7 1 8
089999 089999 MOD10 0 0 0 0 0 0 7 1 3 7 1 3 7 1
107999 107999 MOD11 0 0 0 0 0 0 8 7 6 5 4 3 2 1
118765 118765 DBLAL 0 0 2 1 2 1 2 1 2 1 2 1 2 1 1
134020 134020 MOD11 0 0 0 7 5 9 8 4 6 3 5 2 0 0 4
180002 180002 MOD11 0 0 0 0 0 0 8 7 6 5 4 3 2 1 14
200915 203099 MOD11 0 0 0 0 0 0 0 7 6 5 4 3 2 1 6
200915 203099 DBLAL 2 1 2 1 2 1 2 1 2 1 2 1 2 1 6
309070 309070 MOD11 0 0 3 2 9 8 5 7 6 5 4 3 2 1 2
309070 309070 MOD11 0 0 3 2 9 8 1 7 6 5 4 3 2 1 9
772798 772798 MOD11 0 0 1 2 5 3 6 4 8 7 10 9 3 1 7
820000 827999 MOD11 0 0 0 0 0 0 0 0 7 3 4 9 2 1
820000 827999 DBLAL 2 1 2 1 2 1 2 1 2 1 2 1 2 1 3
871427 872427 MOD11 0 0 1 2 5 3 6 4 8 7 10 9 3 1 10
871427 872427 MOD11 0 0 5 10 9 8 0 7 6 5 4 3 2 1 11
938063 938611 MOD11 7 6 5 4 3 2 7 6 5 4 3 2 0 0 5
938063 938611 DBLAL 2 1 2 1 2 1 2 1 2 1 2 1 2 0 5
"""
"""What the cases need and no more: each range is cut down to their sort codes."""
SUBSTITUTIONS = "938600 938611\n"

PASSING = {
    "1 modulus 10": "08999966374958",
    "2 modulus 11": "10799988837491",
    "3 modulus 11 and double alternate": "20295963748472",
    "4 exceptions 10 and 11, the first passes": "87142746238510",
    "5 exceptions 10 and 11, the second passes": "87242746238510",
    "6 exception 10, ab is 09 and g is 9": "87142709123496",
    "7 exception 10, ab is 99 and g is 9": "87142799123496",
    "8 exception 3, c is 6, start of a range": "82000073688637",
    "9 exception 3, c is 9, end of a range": "82799973988638",
    "10 exception 3, both pass": "82710128748352",
    "11 exception 4": "13402063849203",
    "12 exception 1": "11876564371389",
    "13 exception 6, a foreign currency": "20091541011166",
    "14 exception 5": "93861107806039",
    "15 exception 5 with substitution": "93860042368003",
    "16 exception 5, both remainders 0": "93806355065200",
    "17 exception 7": "77279899345694",
    "18 exception 8": "08609006774744",
    "19 exceptions 2 and 9, the first passes": "30907002355688",
    "20 exceptions 2 and 9, the second passes": "30907012345668",
    "21 exceptions 2 and 9, a is not 0, g is not 9": "30907012345677",
    "22 exceptions 2 and 9, a is not 0, g is 9": "30907099345694",
    "31 exceptions 12 and 13, modulus 11 alone": "07445612345112",
    "32 exceptions 12 and 13, both": "07011634012583",
    "33 exceptions 12 and 13, modulus 10 alone": "07445611104102",
    "34 exception 14, the second passes": "18000200000190",
}
FAILING = {
    "23 exception 5, the second check digit": "93806315764273",
    "24 exception 5, the first check digit": "93806315764264",
    "25 exception 5, a remainder of 1": "93806315763217",
    "26 exception 1": "11876564371388",
    "27 modulus 11 alone passes": "20309966831036",
    "28 double alternate alone passes": "20309958716970",
    "29 modulus 10": "08999966374959",
    "30 modulus 11": "10799988837493",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    (folder / "weights.txt").write_text(WEIGHTS)
    (folder / "substitutions.txt").write_text(SUBSTITUTIONS)
    return read_tables(folder / "weights.txt", folder / "substitutions.txt", date(2030, 1, 1))


@pytest.mark.parametrize(
    ("account", "state"),
    [
        *((account, "passes") for account in PASSING.values()),
        *((account, "fails") for account in FAILING.values()),
    ],
    ids=[*PASSING, *FAILING],
)
def test_cases_of_the_specification(tables, account, state):
    assert states(pl.Series([account]), tables).to_list() == [state]


def test_a_column_is_judged_in_its_order_and_an_absent_account_is_no_pass(tables):
    accounts = pl.Series(["08999966374959", None, "08999966374958", "99999966374958", "00000012345678"])
    assert states(accounts, tables).to_list() == ["fails", None, "passes", "not_covered", "not_covered"]


@pytest.mark.parametrize("accounts", [[], [None, None]])
def test_nothing_to_check_is_said_nothing_of(tables, accounts):
    assert states(pl.Series(accounts, dtype=pl.String), tables).to_list() == accounts


@pytest.mark.parametrize("eighth", "2345678")
def test_exception_14_drops_no_eighth_digit_but_0_1_and_9(tables, eighth):
    assert states(pl.Series([f"1800020000019{eighth}"]), tables).to_list() == ["fails"]


@pytest.mark.parametrize(
    ("number", "state"),
    [("41011166", "passes"), ("91011166", "fails"), ("41011167", "fails"), ("00000000", "passes")],
)
def test_exception_6_without_a_second_check_passes_a_foreign_currency_alone(tmp_path, number, state):
    (tmp_path / "weights").write_text("200915 200915 MOD11 0 0 0 0 0 0 0 7 6 5 4 3 2 1 6\n")
    (tmp_path / "substitutions").write_text(SUBSTITUTIONS)
    alone = read_tables(tmp_path / "weights", tmp_path / "substitutions", date(2030, 1, 1))

    assert states(pl.Series([f"200915{number}"]), alone).to_list() == [state]


GERMAN = {
    "account": "DE89370400440532013000",
    "api": ApiName.VOP_GATEWAY,
    "route_reason": RouteReason.IBAN,
}


def accepted_of(*rows):
    absent = dict.fromkeys(ACCEPTED)
    usual = {"api": ApiName.COP, "route_reason": RouteReason.SORT_CODE}
    numbered = [{**absent, **usual, **row, "row": number} for number, row in enumerate(rows, 1)]
    return pl.DataFrame(numbered, schema=ACCEPTED)


def test_accounts_that_are_not_covered_are_counted_once_each(tables):
    unknown = [{"account": account} for account in ("99999966374958", "99999966374958", "00000012345678")]
    accepted = accepted_of({"account": "08999966374958"}, *unknown, GERMAN)

    found = used(Modulus(tables, is_old=False), accepted)

    assert (found.uncovered_count, found.valid_from, found.is_old) == (2, "2030-01-01", False)


def test_old_tables_warn_of_the_accounts_that_fail_by_the_field_they_come_from(tables):
    failing = {"account": "08999966374959"}
    accepted = accepted_of(
        failing,
        {"account": "08999966374958"},
        {"account": "99999966374958"},
        GERMAN,
        {**failing, "route_reason": RouteReason.GB_IBAN},
    )

    warnings = old_failures(accepted, tables)

    assert warnings.schema == WARNINGS
    assert list(warnings.select("row", "field", "code").iter_rows()) == [
        (1, "account_number", "MODULUS_OLD_TABLES"),
        (5, "iban", "MODULUS_OLD_TABLES"),
    ]


def test_tables_are_others_when_a_byte_or_their_date_changes(tables):
    modulus = Modulus(tables, is_old=False)
    before = used(modulus, accepted_of())

    assert same_tables(before, modulus)
    assert same_tables(before, modulus._replace(is_old=True))  # time alone makes no other tables
    assert same_tables(None, None)
    assert not same_tables(before, None)
    assert not same_tables(None, modulus)
    for change in ({"valid_from": date(2030, 1, 2)}, {"weights_sha256": "0"}, {"substitutions_sha256": "0"}):
        assert not same_tables(before, modulus._replace(tables=tables._replace(**change)))
