"""What changed since an earlier run, for people: order, bounds, and nothing that is acted on."""

from decimal import Decimal

import polars as pl
import pytest
from refusals import said

from pipeline.frames import CHANGES, PAYMENTS
from pipeline.reports.changes import (
    LISTED_MAX,
    WORDS,
    beside_rows,
    changes_of,
    compared_with,
    gravest,
    listed_changes,
    sides,
)
from pipeline.reports.listings import print_changes
from pipeline.wording import Sentence
from schemas.changes import Change, Comparison, EarlierRun
from schemas.outcomes import WarningCode
from schemas.summary import WarningCount

RUN = EarlierRun(folder="january.precheck", input_name="january.csv", input_sha256="0", finished="2030")


def comparison(payee_count=9, new_count=0, runs=(RUN,)):
    return Comparison(
        requested="--compare-with x", runs=list(runs), payee_count=payee_count, new_count=new_count
    )


def frames(*told):
    """`Changes` and `Payments` of rows with a code and an amount."""
    changes = [(row, code, "**1111", "**2222", "january.precheck") for row, (code, _) in enumerate(told, 1)]
    amounts = {"row": range(1, len(told) + 1), "amount": [amount for _, amount in told]}
    payments = pl.DataFrame(amounts, schema_overrides={"amount": pl.String}).with_columns(
        currency=pl.lit("GBP")
    )
    absent = [
        pl.lit(None, kind).alias(name) for name, kind in PAYMENTS.items() if name not in payments.columns
    ]
    payments = payments.with_columns(absent).select(
        pl.col(name).cast(kind) for name, kind in PAYMENTS.items()
    )
    return pl.DataFrame(changes, schema=CHANGES, orient="row"), payments


def listed(changes, payments, comparison):
    return listed_changes(gravest(changes, payments), comparison)


def change(code=WarningCode.ACCOUNT_CHANGED, then="**1111", now="**2222", row=1):
    return Change(row=row, code=code, then=then, now=now, earlier="january.precheck", amount=Decimal(5))


def test_accounts_go_before_names_before_new_payees_and_large_amounts_before_small_ones():
    told = [
        ("PAYEE_NEW", "9000"),
        ("ACCOUNT_CHANGED", "1.00"),
        ("ACCOUNT_CHANGED", None),
        ("NAME_CHANGED", "500"),
        ("ACCOUNT_CHANGED", "20.00"),
    ]
    assert [found.row for found in listed(*frames(*told), comparison())] == [5, 2, 3, 4, 1]


def test_where_everybody_is_new_none_of_them_is_listed_and_one_sentence_says_so():
    told = comparison(payee_count=2, new_count=2)
    assert listed(*frames(("PAYEE_NEW", "1"), ("PAYEE_NEW", "2")), told) == []
    assert compared_with(told) == said("changes.all_payees_are_new", folders=["january.precheck"])


def test_no_more_are_listed_than_a_person_reads():
    told = [("ACCOUNT_CHANGED", "1")] * (LISTED_MAX + 5)
    assert len(listed(*frames(*told), comparison(payee_count=LISTED_MAX + 5))) == LISTED_MAX


def test_once_they_are_purged_none_is_listed(summary_of):
    _, payments = frames(("NAME_CHANGED", "1"))
    assert changes_of(summary_of(compared=comparison()), payments, None) == []


def test_every_code_of_a_change_has_words():
    assert {code.value for code in WORDS} == {"BANK_DIFFERS", "ACCOUNT_CHANGED", "NAME_CHANGED", "PAYEE_NEW"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (change(), ("**1111", "**2222")),
        (change(WarningCode.PAYEE_NEW, then=None), ("-", "**2222")),
        (change(WarningCode.BANK_DIFFERS, then="match", now="no_match"), ("match", "no match")),
        (
            change(WarningCode.BANK_DIFFERS, then="match", now="close_match: A** B**"),
            ("match", "close match: A** B**"),
        ),
        (change(WarningCode.NAME_CHANGED, then=None), ("no longer kept", "**2222")),
        (change(WarningCode.NAME_CHANGED, then="A\x1b[31m*", now="\u202ey*"), ("A\\x1b[31m*", "\\u202ey*")),
    ],
)
def test_both_sides_are_shown_harmless(found, expected):
    assert sides(found) == expected


def test_two_changes_of_one_payment_stand_in_one_line_of_the_workbook():
    found = beside_rows([change(), change(WarningCode.NAME_CHANGED, "A***y", "R***n")])
    what = f"{said('changes.account_changed')}; {said('changes.name_changed')}"
    assert found.rows() == [(1, what, "**1111; A***y", "**2222; R***n")]


def test_the_terminal_names_the_run_and_counts_what_changed(summary_of, shown):
    counts = [WarningCount(code="ACCOUNT_CHANGED", row_count=1, rows=[1], every_row=[1])]
    summary = summary_of(compared=comparison(), warning_codes=counts)
    text = shown(lambda console: print_changes(summary, [change()], console))
    one, what = Sentence("counted.payment", count=1), Sentence("changes.account_changed")
    counted = Sentence("changes.counted", payments=one, what=what)
    compared = said("changes.compared", folders=["january.precheck"])
    assert f"{compared} {said('changes.told', told=[counted])}" in text
    assert "**1111   **2222" in text


def test_where_nothing_changed_that_is_said_and_where_nothing_was_compared_nothing(summary_of, shown):
    text = shown(lambda console: print_changes(summary_of(compared=comparison()), [], console))
    assert "Nothing changed." in text
    assert shown(lambda console: print_changes(summary_of(), [], console)) == ""


def test_a_first_run_says_what_was_looked_for():
    assert compared_with(comparison(runs=())).startswith("Not compared: ")
