"""tell: one row's story, with accounts masked and nothing of another row."""

import pytest

from pipeline.jobs.show import ROWS_LISTED_MAX, RowContext, assembled
from pipeline.stages.plan import plan
from pipeline.stages.validate import Routes, validate
from pipeline.stores.values import RequestAttempt
from schemas.outcomes import ApiName, Environment

SENT, ENDED = "2030-01-01T00:00:00.000Z", "2030-01-01T00:00:01.000Z"
UK = {"name": "Ada Quillon", "sort_code": "11-22-33", "account_number": "12345678", "amount": "1"}
ANSWERED = {"id": "id-2", "time": ENDED}


class Requests:
    """The same two requests for every question."""

    def __init__(self, *attempts):
        self.said = []
        self._attempts = attempts

    def attempts(self, check):
        self.said.append(check)
        return list(self._attempts)


TWICE = (
    RequestAttempt(1, "id-1", SENT, "failed", "TIMEOUT_ERROR", ENDED),
    RequestAttempt(2, "id-2", SENT, "answered", "MTCH", ENDED),
)


@pytest.fixture
def story(payments_of, outcomes_of):
    def build(rows, outcomes, row=1, attempts=TWICE, environment=Environment.PRODUCTION):
        payments = payments_of(*rows)
        validated = validate(payments, Routes([ApiName.COP, ApiName.VOP_GATEWAY]))
        told = RowContext(
            "x.csv",
            environment,
            payments,
            (validated.rejects, validated.warnings),
            validated.accepted,
            plan(validated.accepted),
            outcomes_of(*outcomes),
        )
        return assembled(row, told, Requests(*attempts).attempts)

    return build


def test_a_row_is_told_from_the_file_to_the_answer(story):
    told = story([UK], [ANSWERED])
    assert told.payment == {**UK, "account_number": "**5678", "currency": "GBP"}, "as it is of a UK account"
    assert told.question.fields == {
        "api": "cop",
        "account": "**5678",
        "name": "Ada Quillon",
        "account_type": "Personal",
    }
    assert [(one.number, one.ended, one.code) for one in told.attempts] == [
        (1, "failed", "TIMEOUT_ERROR"),
        (2, "answered", "MTCH"),
    ]
    assert (told.simulated, told.answered_by_earlier_run) == (False, False)
    assert told.outcome.check_id == "id-2"


def test_an_answer_without_a_request_of_ours_is_of_an_earlier_run(story):
    assert story([UK], [ANSWERED], attempts=()).answered_by_earlier_run
    assert story([UK], [ANSWERED], attempts=TWICE[:1]).answered_by_earlier_run
    assert not story([UK], [{"id": None, "outcome": "deferred"}], attempts=()).answered_by_earlier_run


def test_a_rejected_row_has_its_broken_rules_and_no_question(story):
    broken = {**UK, "sort_code": "1", "account_number": "2"}
    told = story([broken], [{"outcome": "rejected", "code": "X", "action": "correct_row", "api": None}])
    assert {(one.field, one.is_warning) for one in told.findings} == {
        ("sort_code", False),
        ("account_number", False),
    }
    assert (told.route, told.question, told.attempts) == (None, None, [])


def test_a_warning_is_told_as_one(story):
    told = story([UK, UK], [ANSWERED] * 2, row=2)
    assert [(one.code, one.is_warning) for one in told.findings] == [("PAYMENT_REPEATED", True)]


def test_rows_that_share_the_question_are_named_up_to_a_limit(story):
    count = ROWS_LISTED_MAX + 5
    other = {**UK, "name": "Somebody Else"}
    told = story([UK] * count + [other], [ANSWERED] * (count + 1), row=3)
    assert told.question.rows == list(range(1, ROWS_LISTED_MAX + 1))
    assert told.question.row_count == count


def test_an_iban_is_masked_wherever_it_stands(story):
    iban = "FR76 3000 3012 3400 0048 2100 733"
    told = story([{"name": "Ada Quillon", "iban": iban}], [{**ANSWERED, "api": "vop_gateway"}])
    assert told.payment["iban"] == told.question.fields["account"] == "FR**0733"
    assert told.route.api is ApiName.VOP_GATEWAY


def test_simulated_answers_are_called_so(story):
    assert story([UK], [ANSWERED], environment=Environment.SANDBOX).simulated
