"""Which answers of earlier runs may be used again: the newest, if it is a match and not too old."""

import pytest

from pipeline.apis import cop, vop
from pipeline.frames import AnswerState
from pipeline.jobs.reuse import EarlierAnswers, reuse
from pipeline.stores.values import FinalAnswer
from schemas.outcomes import ApiName

APIS = {api.name: api for api in (cop.API, vop.GATEWAY)}
NOW = "2030-02-01T00:00:00.000Z"
MONTH_AGO = "2030-01-02T00:00:00.000Z"
OLD, NEW, NEWER = "2030-01-01T23:59:59.999Z", "2030-01-10T00:00:00.000Z", "2030-01-20T00:00:00.000Z"


def key(check):
    return f"{check.api} {check.account} {check.name}".encode()


def earlier(answer):
    return EarlierAnswers(
        key, "a", lambda asked: {answer.question: answer} if answer.question in asked else {}
    )


@pytest.fixture
def found(checks_of, check_of):
    """The times of the answers that are used again, of runs that each gave (code, state, time)."""

    def times(*runs, check=None):
        check = check or check_of()
        records = [
            earlier(FinalAnswer(key(check), state, code, None, "id", time, 1)) for code, state, time in runs
        ]
        known = reuse(checks_of(check), records, APIS, not_before=MONTH_AGO, now=NOW)
        return [one.answer.time for one in known]

    return times


@pytest.mark.parametrize("state", [AnswerState.ANSWERED, AnswerState.REUSED])
def test_a_match_within_the_age_is_used(found, state):
    assert found(("MTCH", state, NEW)) == [NEW]


@pytest.mark.parametrize("code", sorted({code for _, code in cop.API.meanings} - {"MTCH"}))
def test_no_other_outcome_of_cop_is_used(found, code):
    assert found((code, AnswerState.ANSWERED, NEW)) == []


@pytest.mark.parametrize("code", ["CMTC", "NMTC", "NOAP"])
def test_no_other_outcome_of_vop_is_used(found, check_of, code):
    check = check_of(api=ApiName.VOP_GATEWAY)
    assert found(("MTCH", AnswerState.ANSWERED, NEW), check=check) == [NEW]
    assert found((code, AnswerState.ANSWERED, NEW), check=check) == []


def test_a_refusal_is_not_used_whatever_its_code(found):
    assert found(("MTCH", AnswerState.REFUSED, NEW)) == []


def test_the_age_counts_from_the_answer_and_its_limit_still_counts(found):
    assert found(("MTCH", AnswerState.ANSWERED, OLD)) == []
    assert found(("MTCH", AnswerState.ANSWERED, MONTH_AGO)) == [MONTH_AGO]


def test_an_answer_of_the_future_is_not_used(found):
    assert found(("MTCH", AnswerState.ANSWERED, "2030-02-01T00:00:00.001Z")) == []


def test_the_newest_answer_of_several_runs_counts(found):
    match = ("MTCH", AnswerState.ANSWERED, NEW)
    assert found(match, ("MTCH", AnswerState.REUSED, NEWER)) == [NEWER]
    assert found(("MTCH", AnswerState.REUSED, NEWER), match) == [NEWER]


def test_a_match_is_worth_nothing_once_a_newer_answer_was_another_one(found):
    match, changed = ("MTCH", AnswerState.ANSWERED, NEW), ("AC01", AnswerState.ANSWERED, NEWER)
    assert found(match, changed) == []
    assert found(changed, match) == []


def test_a_question_that_no_run_asked_is_not_found(checks_of, check_of):
    answer = FinalAnswer(b"another", AnswerState.ANSWERED, "MTCH", None, "id", NEW, 1)
    asked = earlier(answer)
    assert reuse(checks_of(check_of()), [asked], APIS, not_before=MONTH_AGO, now=NOW) == []
