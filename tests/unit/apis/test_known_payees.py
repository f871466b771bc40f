"""Which payments of a run make their payee's account known to the next one."""

import polars as pl
import pytest

from pipeline.frames import CHANGES, KEPT_PAYEES
from pipeline.rules.known_payees import DecidedRows, PayeeStatus, kept_once, knowledge, payee_statuses

OUTCOMES = pl.DataFrame(
    [(1, "match"), (2, "close_match"), (3, "match"), (4, "match"), (5, "unanswered"), (6, "no_match")],
    schema={"row": pl.UInt32, "check_outcome": pl.String},
    orient="row",
)


def kept(*rows):
    """`KeptPayees` of row, account and standing."""
    told = [{"row": row, "name": 1, "account": account, "known": known} for row, account, known in rows]
    return pl.DataFrame(told, schema=KEPT_PAYEES)


def changes(*rows):
    return pl.DataFrame([{"row": row, "code": code} for row, code in rows], schema=CHANGES)


def test_a_match_is_not_enough_where_the_account_has_changed_and_nothing_is_needed_where_nothing_has():
    told = changes((2, "PAYEE_NEW"), (3, "ACCOUNT_CHANGED"), (4, "NAME_CHANGED"), (3, "NAME_CHANGED"))
    found = payee_statuses(OUTCOMES["row"], OUTCOMES, told)
    assert found.to_list() == ["before", "unmatched", "changed", "match", "before", "before"]


def test_without_a_run_to_compare_with_the_answer_alone_counts():
    found = payee_statuses(OUTCOMES["row"], OUTCOMES, None)
    assert found.to_list() == ["match", "unmatched", "match", "match", "unmatched", "unmatched"]


@pytest.mark.parametrize(
    ("standing", "decided", "is_known"),
    [
        (PayeeStatus.BEFORE, DecidedRows(), True),
        (PayeeStatus.BEFORE, DecidedRows(held=[1]), True),
        (PayeeStatus.MATCH, DecidedRows(), True),
        (PayeeStatus.MATCH, DecidedRows(held=[1]), False),
        (PayeeStatus.MATCH, DecidedRows(held=[2]), True),
        (PayeeStatus.UNMATCHED, DecidedRows(), False),
        (PayeeStatus.UNMATCHED, DecidedRows(held=[]), True),
        (PayeeStatus.UNMATCHED, DecidedRows(held=[1]), False),
        (PayeeStatus.UNMATCHED, DecidedRows(released=[1], held=[1]), True),
        (PayeeStatus.CHANGED, DecidedRows(), False),
        (PayeeStatus.CHANGED, DecidedRows(held=[]), False),
        (PayeeStatus.CHANGED, DecidedRows(released=[2], held=[]), False),
        (PayeeStatus.CHANGED, DecidedRows(released=[1], held=[]), True),
    ],
)
def test_an_account_is_known_where_its_payment_was_good_to_go(standing, decided, is_known):
    found = knowledge(kept((1, 7, standing)), decided)
    assert (found.known.height, found.unsure.height) == ((1, 0) if is_known else (0, 1))


def test_what_is_carried_counts_until_the_payment_that_contradicts_it_is_released():
    rows = kept((1, 7, "changed"), (1, 5, "carried"))
    found = knowledge(rows, DecidedRows())
    assert found.carried["account"].to_list() == [5]
    assert found.unsure.is_empty(), "what is carried says more"
    found = knowledge(rows, DecidedRows(released=[1]))
    assert found.known["account"].to_list() == [7]
    assert found.carried.is_empty()


def test_a_payment_that_may_still_be_held_is_kept_apart_from_another_that_says_the_same():
    rows = kept((1, 7, "match"), (2, 7, "match"), (3, 8, "before"), (4, 8, "before"))
    once = kept_once(rows)
    assert sorted(once["row"]) == [1, 2, 4]
    assert knowledge(once, DecidedRows(held=[2])).known.height == 2
