"""Which requests meet a fault."""

import pytest
from refusals import refused

from pipeline.errors import UsageError
from pipeline.sandbox.faults.catalogue import FAULTS, SECTIONS, lines
from pipeline.sandbox.faults.selection import Aim, parse, written
from pipeline.sandbox.journal import TOKEN, Call
from pipeline.wording import Sentence


def call(question="q", *, api="cop", account="00112200012345", at_s=0.0):
    return Call(0.0, at_s, "/path", "1.1", api=api, question=question, account=account)


def met(text, calls):
    aim = Aim(parse(text))
    return [aim.meets(each) for each in calls]


def test_a_fault_without_conditions_befalls_every_check_and_no_token_request():
    assert met("500", [call(), call(api="vop_standard"), call(api=TOKEN)]) == [True, True, False]


def test_a_fault_of_the_token_endpoint_befalls_no_check():
    assert met("token-500", [call(), call(api=TOKEN)]) == [False, True]


def test_a_fault_of_one_api_befalls_no_other():
    assert met("matched-as-text", [call(), call(api="vop_gateway")]) == [True, False]
    assert met("500:api=vop_gateway", [call(), call(api="vop_gateway")]) == [False, True]


def test_the_question_of_a_number_is_meant_at_each_of_its_attempts():
    asked = [call(question) for question in "abcbbc"]
    assert met("500:question=2", asked) == [False, True, False, True, True, False]
    assert met("500:question=2,first=1", asked) == [False, True, False, False, False, False]


@pytest.mark.parametrize(
    "text",
    ["500", "500:account=12345612345678,api=cop", "400:question=3,first=2", "503:after=1.5s,for=30s",
     "token-500:after=2,for=1", "500:probability=0.25,seed=7"],
)  # fmt: skip
def test_what_was_chosen_can_be_written_as_it_was_told(text):
    assert written(parse(text)) == text


def test_an_account_is_meant_exactly():
    accounts = ["12345612345678", "12345612345679", None]
    assert met("500:account=12345612345678", [call(account=one) for one in accounts]) == [True, False, False]


def test_the_first_attempts_are_counted_for_each_question():
    calls = [call("a"), call("b"), call("a"), call("a"), call("b")]
    assert met("500:first=2", calls) == [True, True, True, False, True]


def test_request_numbers_begin_after_and_last_for():
    calls = [call(str(number)) for number in range(6)]
    assert met("500:after=2,for=3", calls) == [False, False, True, True, True, False]
    assert met("500:after=4", calls) == [False, False, False, False, True, True]
    assert met("500:for=1", calls) == [True, False, False, False, False, False]


def test_request_numbers_count_only_requests_that_could_meet_the_fault():
    calls = [call(api=TOKEN), call(account="other"), call(), call()]
    assert met("500:account=00112200012345,after=1", calls) == [False, False, False, True]


def test_seconds_are_counted_from_the_first_request():
    calls = [call(at_s=moment) for moment in (100.0, 100.4, 100.5, 101.9, 102.0)]
    assert met("500:after=0.5s,for=1.5s", calls) == [False, False, True, True, False]


def test_chance_has_the_share_that_was_asked_for_and_the_same_fate_in_any_order():
    questions = [f"question {number}" for number in range(2000)]
    fates = dict(zip(questions, met("500:probability=0.25,seed=7", map(call, questions)), strict=True))
    backwards = met("500:probability=0.25,seed=7", map(call, reversed(questions)))
    assert 0.2 < sum(fates.values()) / len(fates) < 0.3
    assert list(fates.values()) == backwards[::-1]
    assert met("500:probability=0.25,seed=8", map(call, questions)) != list(fates.values())


def test_an_attempt_has_a_fate_of_its_own():
    fates = met("500:probability=0.5", [call() for _ in range(64)])
    assert {True, False} == set(fates)


def test_all_conditions_must_hold():
    calls = [call("a"), call("b", account="other"), call("a"), call("c")]
    assert met("500:account=00112200012345,first=1,after=1", calls) == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no-such-fault", "sandbox.no_such_fault"),
        ("500:often=yes", Sentence("sandbox.condition_unknown", given=["often"])),
        ("500:first", Sentence("sandbox.condition_malformed", condition="'first'")),
        ("500:first=1,first=2", Sentence("sandbox.condition_malformed", condition="'first=2'")),
        ("500:first=many", "sandbox.condition_value_invalid"),
        ("500:after=1s,for=2", "sandbox.after_and_for_units_differ"),
        ("500:probability=2", "sandbox.probability_out_of_range"),
        ("500:api=sepa", "sandbox.condition_value_invalid"),
        ("token-500:account=00112200012345", "sandbox.token_fault_without_conditions"),
        ("matched-as-text:api=vop_gateway", Sentence("sandbox.fault_not_of_api", api="vop_gateway")),
    ],
)
def test_a_condition_that_does_not_fit_is_told_with_what_to_do(text, said):
    with refused(UsageError, said) as caught:
        parse(text)
    assert str(caught.value).startswith("--fault ")


def test_what_befalls_connections_takes_no_condition():
    assert parse("half-close").fault.name == "half-close"
    with refused(UsageError, "sandbox.affects_every_connection"):
        parse("half-close:first=2")


def test_every_fault_has_a_name_of_its_own_and_says_what_a_right_client_does():
    listed = [fault for _, section in SECTIONS for fault in section]
    assert len(listed) == len(FAULTS) > 60
    assert all(fault.what and fault.client and fault.effects for fault in FAULTS.values())
    assert not [fault.name for fault in FAULTS.values() if {":", ",", "=", " "} & set(fault.name)]
    text = "\n".join(lines(str))
    assert max(map(len, text.splitlines())) <= 80
    assert not [fault.name for fault in FAULTS.values() if f"\n{fault.name} " not in text]
