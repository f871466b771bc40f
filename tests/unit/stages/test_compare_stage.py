"""Which payments are not as they were in an earlier run."""

import polars as pl
import pytest
from refusals import said

from pipeline.frames import CHANGES, PAYEE_KEYS, PAYEES
from pipeline.rules.payees import KEYED, keyed
from pipeline.stages.compare import EarlierPayees, compare, warnings_of
from pipeline.stores.ledger_keys import payee_hashes

A, B, C, D = ("1" * 14, "2" * 14, "3" * 14, "4" * 14)
NOTHING = pl.DataFrame(schema=PAYEE_KEYS)


def payees(*rows):
    """Payees by id, name and account."""
    told = [(number, *row, None) for number, row in enumerate(rows, start=1)]
    return pl.DataFrame(told, schema=PAYEES, orient="row")


def names_of(frame):
    return lambda rows: frame["name"].gather(rows - 1)


def earlier(*rows, folder="january", key=b"\x01" * 32, has_names=True):
    frame, hashed = payees(*rows), payee_hashes(key, KEYED)
    names = names_of(frame) if has_names else lambda _: None
    return EarlierPayees(folder, keyed(frame, hashed), NOTHING, hashed, names)


def changes(new, *runs):
    frame = payees(*new)
    return compare(frame, names_of(frame), runs).changes


def codes(new, *runs):
    return changes(new, *runs).select("row", "code").rows()


@pytest.mark.parametrize(
    ("new", "code"),
    [
        ((None, "avery", A), None),
        ((None, "avery", D), "ACCOUNT_CHANGED"),
        ((None, "imre", A), "NAME_CHANGED"),
        ((None, "imre", D), "PAYEE_NEW"),
        (("7", "rowan", B), None),
        (("7", "rowan", D), "ACCOUNT_CHANGED"),
        (("7", "rowena", D), "ACCOUNT_CHANGED"),  # by the id, whatever the name
        (("7", "rowena", B), "NAME_CHANGED"),
        ((None, "rowan", D), "ACCOUNT_CHANGED"),  # by the name, as this file has no id
        (("8", "rowan", D), "PAYEE_NEW"),  # another id is another payee of the same name
        (("8", "avery", D), "ACCOUNT_CHANGED"),  # by the name, as the earlier file had no id of it
        ((None, None, A), None),
    ],
)
def test_each_change_has_its_code(new, code):
    run = earlier((None, "avery", A), ("7", "rowan", B))
    assert codes([new], run) == ([] if code is None else [(1, code)])


def test_a_payee_paid_to_the_account_of_another_is_both():
    run = earlier((None, "avery", A), (None, "rowan", B))
    assert codes([(None, "avery", B)], run) == [(1, "ACCOUNT_CHANGED"), (1, "NAME_CHANGED")]


def test_of_two_payees_of_one_name_nothing_changes_while_the_account_is_one_of_theirs():
    run = earlier((None, "avery", A), (None, "avery", B))
    assert codes([(None, "avery", B), (None, "avery", A)], run) == []
    [change] = changes([(None, "avery", C)], run).rows(named=True)
    assert (change["then"], change["now"]) == ("**1111, **2222", "**3333")


def test_no_more_than_three_are_shown_and_how_many_more_there_are():
    run = earlier(*[(None, "avery", str(digit) * 14) for digit in range(1, 7)])
    assert changes([(None, "avery", "7" * 14)], run)["then"].item() == "**1111, **2222, **3333 and 3 more"


def test_the_latest_run_that_knows_a_payee_counts():
    february = earlier((None, "avery", B), folder="february", key=b"\x02" * 32)
    january = earlier((None, "avery", A), (None, "rowan", C))
    assert codes([(None, "avery", B)], february, january) == []
    [back] = changes([(None, "avery", A)], february, january).rows(named=True)
    assert (back["code"], back["then"], back["earlier"]) == ("ACCOUNT_CHANGED", "**2222", "february")
    [other] = changes([(None, "rowan", D)], february, january).rows(named=True)
    assert (other["code"], other["earlier"]) == ("ACCOUNT_CHANGED", "january")


def test_names_are_shown_masked_and_not_at_all_once_the_earlier_run_has_lost_them():
    new = [(None, "imre vasko", A)]
    [change] = changes(new, earlier((None, "avery thornwood", A))).rows(named=True)
    assert (change["then"], change["now"]) == ("a***y t*******d", "i**e v***o")
    assert changes(new, earlier((None, "avery thornwood", A), has_names=False))["then"].item() is None


def test_two_names_that_are_masked_alike_are_told_apart_in_words():
    [change] = changes([(None, "meyer", A)], earlier((None, "meier", A))).rows(named=True)
    assert (change["then"], change["now"]) == ("m***r (spelt otherwise)", "m***r")


def test_without_an_earlier_run_nothing_is_new():
    found = changes([(None, "avery", A)])
    assert found.schema == CHANGES
    assert found.is_empty()


def test_an_earlier_run_without_payees_makes_everybody_new():
    assert codes([(None, "avery", A)], earlier()) == [(1, "PAYEE_NEW")]


def test_a_new_payee_may_have_been_there_without_being_confirmed_and_is_told_so():
    [message] = warnings_of(changes([(None, "avery", A)], earlier()))["message"]
    assert message == said("rule.payee_new")


def test_warnings_name_no_payee_and_say_what_to_do():
    run = earlier((None, "avery", A), (None, "rowan", B))
    found = changes([(None, "avery", D), (None, "imre", B), (None, "quill", C)], run)
    messages = warnings_of(found)["message"].to_list()
    assert messages[0] == said("rule.account_changed", earlier="january", then="**1111", now="**4444")
    assert "r***n" not in messages[1]
    renamed = said("rule.name_changed_from", then="r***n", now="i**e")
    assert renamed in warnings_of(found, with_names=True)["message"][1]
    assert messages[2] == said("rule.payee_new")
