"""The rows that need a person: which, in which order, and how they are shown."""

import gc
from decimal import Decimal

import pytest

from pipeline.reports.differences import Difference
from pipeline.reports.groups import (
    CURRENCIES_MAX,
    TEXT_CHARS_MAX,
    amount_text,
    masked,
    money_texts,
    pending,
    shown,
)
from pipeline.wording import Sentence
from schemas.outcomes import Action, Outcome

MATCH = {}
NO_MATCH = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee"}
CLOSE_MATCH = {
    "outcome": "close_match",
    "code": "MBAM",
    "action": "fix_name",
    "matched_name": "Avery Quillon",
}
DEFERRED = {"outcome": "deferred", "code": "DAILY_CAP", "action": "retry_later"}
REJECTED = {"outcome": "rejected", "code": "NAME_MISSING", "action": "correct_row"}


@pytest.fixture
def grouped(payments_of, outcomes_of):
    """(payment, outcome) pairs -> the groups."""

    def build(*pairs, rows_max=100, searched_max=100):
        payments, outcomes = zip(*pairs, strict=True)
        rows = payments_of(*payments).hstack(outcomes_of(*outcomes).drop("row").get_columns())
        return pending(rows, rows_max=rows_max, searched_max=searched_max)

    return build


def paid(amount, currency="GBP", **more):
    return {"amount": amount, "currency": currency, **more}


def test_matches_are_not_listed_and_everything_else_is(grouped):
    found = grouped((paid("1"), MATCH), (paid("1"), NO_MATCH), (paid("1"), DEFERRED), (paid("1"), REJECTED))
    assert {row.number for group in found.groups for row in group.rows} == {2, 3, 4}
    assert (found.row_count, found.listed_count) == (3, 3)


def test_names_are_compared_once_for_a_page_and_forgotten_with_it(grouped):
    payment = paid("1", name="Averi Quillon of Nowhere-Else")
    found = grouped((payment, CLOSE_MATCH), (payment, CLOSE_MATCH))
    one, other = (row.names for row in found.groups[0].rows)
    assert one is other, "many payments of a file can be to one payee"
    del found, one, other
    gc.collect()
    compared = [each for each in gc.get_objects() if isinstance(each, Difference)]
    assert not [each for each in compared if "Nowhere-Else" in " ".join(map(str, each.sentences))]


def test_group_with_most_money_is_first_and_what_only_time_can_change_last(grouped):
    found = grouped(
        (paid("5"), NO_MATCH), (paid("7.5"), CLOSE_MATCH), (paid("3"), NO_MATCH), (paid("99"), DEFERRED)
    )
    assert [group.action for group in found.groups] == [Action.ASK_PAYEE, Action.FIX_NAME, Action.RETRY_LATER]


def test_rows_of_a_group_are_in_order_of_exact_amounts(grouped):
    amounts = ["2", None, "999999999999999.99", "999999999999999.98", "1,5", "-3"]
    found = grouped(*((paid(amount), NO_MATCH) for amount in amounts))
    assert [row.number for row in found.groups[0].rows] == [3, 4, 1, 5, 6, 2]
    assert [row.amount_rank for row in found.groups[0].rows] == [5, 4, 3, 2, 1, 0]


def test_totals_are_exact_per_currency_and_leave_out_what_is_no_amount(grouped):
    found = grouped(
        (paid("0.10"), NO_MATCH),
        (paid("0.20"), NO_MATCH),
        (paid("-1"), NO_MATCH),
        (paid("1.234"), NO_MATCH),  # a thousand and more, or one and a little: nobody knows
        (paid("1000", "eur"), NO_MATCH),
        (paid("5", None), NO_MATCH),
    )
    assert money_texts(found.groups[0].money) == ["1,000.00 EUR", "5.00 (no currency)", "0.30 GBP"]


def test_full_page_keeps_decided_rows_and_the_largest_of_them(grouped):
    found = grouped(
        (paid("1"), NO_MATCH),
        (paid("99"), DEFERRED),
        (paid("3"), CLOSE_MATCH),
        (paid("2"), NO_MATCH),
        rows_max=2,
    )
    assert {row.number for group in found.groups for row in group.rows} == {3, 4}
    assert (found.row_count, found.listed_count) == (4, 2)
    counts = {group.action: group.row_count for group in found.groups}
    assert counts == {Action.ASK_PAYEE: 2, Action.FIX_NAME: 1, Action.RETRY_LATER: 1}


def test_more_currencies_than_there_are_do_not_make_a_longer_line(grouped):
    letters = "ABCDEFGHIJKLMNO"
    codes = [f"X{first}{second}" for first in letters for second in letters][: CURRENCIES_MAX + 3]
    found = grouped(*((paid("1", code), NO_MATCH) for code in codes))
    assert len(found.groups[0].money) == CURRENCIES_MAX
    assert found.groups[0].more_currency_count == 3


def test_matches_are_gathered_for_a_search_of_a_file_that_is_not_too_long(grouped):
    rows = (paid("1"), MATCH), (paid("3"), NO_MATCH), (paid("2"), MATCH)
    matches = grouped(*rows, searched_max=3).matches
    assert [(row.number, row.amount_rank) for row in matches.rows] == [(3, 2), (1, 1)]
    assert matches.advice == Sentence("todo.pay")
    assert grouped(*rows, searched_max=2).matches is None
    assert grouped((paid("3"), NO_MATCH)).matches is None


def test_what_is_no_currency_is_not_shown_as_one(grouped):
    found = grouped((paid("1", "Averi Quillon"), NO_MATCH), (paid("2", "X" * 99), NO_MATCH))
    assert money_texts(found.groups[0].money) == ["3.00 (no currency)"]
    assert {row.currency for row in found.groups[0].rows} == {"(no currency)"}


def test_only_a_close_match_has_a_name_at_the_bank(grouped):
    found = grouped((paid("1", name="Averi Quillon"), CLOSE_MATCH), (paid("1", name="Rowan Ash"), NO_MATCH))
    close, no = sorted((row for group in found.groups for row in group.rows), key=lambda row: row.number)
    assert (close.outcome, no.outcome) == (Outcome.CLOSE_MATCH, Outcome.NO_MATCH)
    pair = Sentence("names.pair", theirs="Avery", ours="Averi")
    assert close.names.sentences == (Sentence("names.bank_has", pairs=[pair]),)
    assert no.names.matched == ()
    assert no.names.sentences == ()


def test_payee_asked_for_by_identification_is_shown_by_it(grouped):
    found = grouped((paid("1", lei="529900T8BM49AURSDO55"), NO_MATCH))
    assert found.groups[0].rows[0].names.supplied[0].text == "529900T8BM49AURSDO55"


def test_amount_that_cannot_be_read_is_shown_as_it_stands(grouped):
    found = grouped((paid("1.234,5x"), REJECTED), (paid(None), REJECTED))
    assert {(row.amount, row.currency) for row in found.groups[0].rows} == {("1.234,5x", "GBP"), ("", "")}


@pytest.mark.parametrize(
    ("account", "shown_as"),
    [
        ("12345678", "**5678"),
        ("DE35 3704 0044 0084 2100 77", "DE**0077"),
        ("gb10thrn30120000700700", "GB**0700"),
        ("1234567", "** (7)"),
        (" 1 2", "** (2)"),
        ("1", "** (1)"),
        ("1.23E+05", "** (8)"),
        ("", ""),
        (None, ""),
        ("\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668", "** (8)"),
    ],
)
def test_account_is_masked_but_for_its_end(account, shown_as):
    assert masked(account) == shown_as


def test_text_is_bounded_and_harmless():
    long = "\u202e" * 10_000
    assert len(shown(long)) < 7 * TEXT_CHARS_MAX
    assert "(10,000 characters)" in shown(long)
    assert shown("a\x1b\u2066\x00") == r"a\x1b\u2066\x00"
    assert shown("e\u0301") == "\u00e9"


def test_amount_keeps_its_third_decimal_and_no_more():
    assert amount_text(Decimal("1234567.100")) == "1,234,567.10"
    assert amount_text(Decimal("0.005")) == "0.005"
