"""Each distinct question once, and which payments it answers."""

from decimal import Decimal

import polars as pl
import pytest

from pipeline.frames import ACCEPTED, ASSIGNMENTS, BASES, CHECKS, QUESTION, BicSource, RouteReason
from pipeline.stages.plan import bases, plan

QUILLON = {"api": "cop", "account": "11223312345678", "name": "Ada Quillon", "account_type": "Personal"}
MARROW = {**QUILLON, "name": "Bo Marrow"}


def accepted_of(*rows):
    absent = dict.fromkeys(ACCEPTED)
    numbered = [{**absent, "row": number, **row} for number, row in enumerate(rows, start=1)]
    return pl.DataFrame(numbered, schema=ACCEPTED)


def questions(checks):
    return list(checks.select("check", "name").iter_rows())


def test_nothing_accepted_is_nothing_to_ask():
    checks, assignments = plan(accepted_of())
    assert (checks.schema, assignments.schema) == (CHECKS, ASSIGNMENTS)
    assert (checks.height, assignments.height) == (0, 0)


def test_same_question_is_asked_once_and_answers_every_payment_that_asks_it():
    checks, assignments = plan(accepted_of(QUILLON, MARROW, QUILLON, QUILLON, MARROW))
    assert questions(checks) == [(1, "Ada Quillon"), (2, "Bo Marrow")]
    assert assignments.rows() == [(1, 1), (2, 2), (3, 1), (4, 1), (5, 2)]


OTHERS = dict.fromkeys(QUESTION, ("X", "x")) | {
    "api": ("vop_gateway", "vop_standard"),
    "account_type": ("Business", None),
}


@pytest.mark.parametrize("field", QUESTION)
def test_payments_that_differ_in_one_part_of_the_question_are_two_questions(field):
    one, other = OTHERS[field]
    checks, assignments = plan(accepted_of(QUILLON, {**QUILLON, field: one}, {**QUILLON, field: other}))
    assert checks.height == 3
    assert assignments["check"].to_list() == [1, 2, 3]


@pytest.mark.parametrize("field", [field for field in QUESTION if QUILLON.get(field) is None])
def test_absent_is_a_value_of_its_own_and_equal_to_itself(field):
    checks, assignments = plan(accepted_of(QUILLON, {**QUILLON, field: ""}, QUILLON, {**QUILLON, field: ""}))
    assert checks.height == 2
    assert assignments["check"].to_list() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("route_reason", tuple(RouteReason)[:2]),
        ("bic_source", tuple(BicSource)[:2]),
        ("amount", (Decimal(1), Decimal(2))),
        ("currency", ("a", "b")),
    ],
)
def test_what_the_api_does_not_see_makes_no_second_question(field, values):
    checks, _ = plan(accepted_of(*({**QUILLON, field: value} for value in values)))
    assert checks.height == 1


def test_checks_carry_the_question_word_for_word():
    question = {field: f"<{field}>" for field in QUESTION} | {"api": "cop", "account_type": "Business"}
    checks, _ = plan(accepted_of(question))
    assert checks.to_dicts() == [{"check": 1, **question}]


def test_order_by_amount_asks_for_the_largest_single_payment_first():
    rows = [
        {**QUILLON, "name": "small twice", "amount": Decimal(60)},
        {**QUILLON, "name": "none"},
        {**QUILLON, "name": "large", "amount": Decimal(100)},
        {**QUILLON, "name": "small twice", "amount": Decimal(60)},
        {**QUILLON, "name": "tie", "amount": Decimal(60)},
        {**QUILLON, "name": "cents", "amount": Decimal("9.99")},
    ]
    in_file_order, assignments = plan(accepted_of(*rows), "file")
    assert questions(in_file_order) == [
        (1, "small twice"),
        (2, "none"),
        (3, "large"),
        (4, "tie"),
        (5, "cents"),
    ]
    by_amount, same_assignments = plan(accepted_of(*rows), "amount")
    assert questions(by_amount) == [(3, "large"), (1, "small twice"), (4, "tie"), (5, "cents"), (2, "none")]
    assert same_assignments.equals(assignments)


def test_plan_of_a_file_is_the_same_every_time():
    accepted = accepted_of(*({**QUILLON, "name": f"Payee {number % 700}"} for number in range(3000)))
    once, again = plan(accepted), plan(accepted)
    assert once.checks.equals(again.checks)
    assert once.assignments.equals(again.assignments)
    assert once.checks["name"].to_list() == [f"Payee {number}" for number in range(700)]
    assert once.assignments["row"].to_list() == list(range(1, 3001))


def test_frame_of_another_shape_is_a_mistake_of_ours():
    with pytest.raises(AssertionError):
        plan(accepted_of(QUILLON).drop("currency"))


def test_bases_say_of_each_question_what_its_answer_is_read_by():
    checks, _ = plan(accepted_of(QUILLON, {**MARROW, "api": "vop_gateway", "name": None, "lei": "X"}))
    assert bases(checks).schema == BASES
    assert bases(checks).rows() == [(1, "cop", True), (2, "vop_gateway", False)]
