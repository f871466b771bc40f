"""Who is asked about, in payment files whose header lines are those of real templates and exports.

The header lines stand in `corpus.toml` beside this file, each with the source that shows it; the rows under
them are invented.
"""

import csv
from contextlib import suppress

import pytest
import schwifty
from header_corpus import corpus, sets_that
from tables import for_each

from pipeline.errors import InputError
from pipeline.stages.read import read
from pipeline.stages.validate import Routes, validate
from schemas.outcomes import ApiName

REASONS = {
    "statement",
    "direct_debit",
    "customers_and_suppliers",
    "own_accounts",
    "customers",
    "ambiguous_payee",
    "ambiguous_account",
    "no_payee",
    "no_account",
    "no_country",
}


def file_of(each, folder):
    path = folder / f"{each['name']}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([*each.get("preamble", []), each["headers"], *each["rows"]])
    return path


def compact(cell):
    return (cell or "").replace("-", "").replace(" ", "").upper()


def question(payment):
    """The name and the account that a payment is asked about; of an IBAN and digits, the IBAN."""
    digits = compact(payment["sort_code"]) + compact(payment["account_number"])
    return [payment["name"] or "", compact(payment["iban"]) or digits]


@for_each("each", sets_that("asked"), parts=8)
def test_each_row_of_a_real_template_is_asked_about_its_payee_and_their_account(each, tmp_path):
    source = read(file_of(each, tmp_path), mapping={})
    assert [question(payment) for payment in source.payments.to_dicts()] == each["asked"]
    assert all(str(reading.how) for reading in source.columns), "each rule has words in the catalogue"


@for_each("each", sets_that("refused"), parts=4)
def test_a_real_file_of_which_nobody_can_say_who_is_paid_is_refused(each, tmp_path):
    with pytest.raises(InputError) as refused:
        read(file_of(each, tmp_path), mapping={})
    readings = getattr(refused.value, "readings", ())
    assert all(str(reading.how) for reading in readings), "each rule has words in the catalogue"


@for_each("each", sets_that("never"), parts=4)
def test_a_real_file_of_accounts_that_no_api_checks_asks_nothing(each, tmp_path):
    try:
        source = read(file_of(each, tmp_path), mapping={})
    except InputError:
        return  # nothing shows the country of any account
    routes = Routes([ApiName.COP, ApiName.VOP_GATEWAY])
    assert validate(source.payments, routes, source.positions).accepted.is_empty()


def test_the_corpus_holds_at_least_150_header_sets_each_once():
    asked = [tuple(each["headers"]) for each in sets_that("asked")()]
    assert len(corpus()) >= 150
    assert len({each["name"] for each in corpus()}) == len(corpus())
    assert len(set(asked)) == len(asked)


@for_each("each", corpus, parts=4)
def test_a_set_of_the_corpus_is_whole(each):
    assert len(each["rows"]) in {3, 4}, "three payments, and perhaps their total"
    assert all(len(row) == len(each["headers"]) for row in each["rows"])
    assert len({"asked", "refused", "never"} & set(each)) == 1
    assert each.get("why") in (REASONS if "refused" in each else {None})
    for _, account in each.get("asked", []):
        assert (account.isdigit() and len(account) == 14) or schwifty.IBAN(account)
        with suppress(schwifty.exceptions.NationalChecksumNotVerified):  # no algorithm, as for Sweden
            assert account.isdigit() or schwifty.IBAN(account, validate_bban=True)
