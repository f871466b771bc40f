"""Every code that a row can have is explained, in words that hold."""

import tomllib
from pathlib import Path

import pytest
from refusals import refused, said
from tables import for_each

from pipeline.apis import cop, own_codes, vop
from pipeline.errors import UsageError
from pipeline.frames import OwnCode
from pipeline.reports.explanations import STEPS, CodesSection, explain, explanations, whole
from pipeline.reports.wording import advice
from pipeline.rules.rules import RULES
from pipeline.wording import Sentence
from schemas.cop import ReasonCode
from schemas.outcomes import Action, Outcome, WarningCode
from schemas.vop import IdMatch, NameMatch

REFERENCE = tomllib.loads(Path(__file__).parents[2].joinpath("contract", "reference.toml").read_text("utf-8"))


def cases_of(explanation):
    """The cases of a code, in English words."""
    return [
        case._replace(
            where=str(case.where),
            says=whole(str(case.says)),
            not_said=str(case.not_said),
            to_do=str(case.to_do),
        )
        for case in explanation.cases
    ]


CASES = [
    (explanation.code, explanation.section, case)
    for explanation in explanations().values()
    for case in cases_of(explanation)
]


@pytest.mark.parametrize(
    ("section", "codes"),
    [
        (CodesSection.ANSWERS, {"MTCH", *ReasonCode, *NameMatch, *IdMatch}),
        (
            CodesSection.NO_ANSWER,
            {
                *OwnCode,
                *(problem["code"] for problem in REFERENCE["problem"]),
                *("HTTP_413", "HTTP_415", "HTTP_STATUS"),
                *(
                    f"HTTP_{status}"
                    for status in (
                        301,
                        302,
                        303,
                        307,
                        308,
                        400,
                        401,
                        403,
                        404,
                        405,
                        406,
                        407,
                        410,
                        421,
                        431,
                        451,
                    )
                ),
            },
        ),
        (CodesSection.RULES, {rule.code for rule in RULES}),
        (CodesSection.WARNINGS, set(WarningCode)),
    ],
)
def test_every_code_that_a_row_can_have_is_explained_and_no_other(section, codes):
    found = {code for code, explanation in explanations().items() if explanation.section is section}
    assert found == codes


def test_every_meaning_and_every_sentence_of_a_rule_is_in_the_explanations():
    said = {case.says for _, _, case in CASES}
    for meanings in (cop.API.meanings, vop.GATEWAY.meanings, own_codes.MEANINGS):
        assert {str(meaning.reason) for meaning in meanings.values()} <= said
    assert {f"{text[0].upper()}{text[1:]}." for text in (str(rule.sentence) for rule in RULES)} <= said


@for_each(("code", "section", "case"), CASES)
def test_each_case_says_what_it_does_not_say_and_what_to_do(code, section, case):
    assert case.says[0].isupper()
    assert case.not_said[0].islower(), "it completes a sentence"
    assert case.to_do[0].isupper() or case.to_do.startswith("precheck ")
    for text in (case.says, case.not_said, case.to_do):
        assert text.endswith(".")
    assert (case.outcome is None) is (case.action is None) is (section is CodesSection.WARNINGS)


def test_only_a_match_is_to_be_paid():
    paid = {code for code, _, case in CASES if case.action is Action.PAY or case.outcome is Outcome.MATCH}
    assert paid == {"MTCH"}


def test_every_action_has_a_step():
    assert set(STEPS) == set(Action)


def test_a_code_of_two_apis_has_a_case_for_each_question():
    assert [case.where for case in cases_of(explain("MTCH"))] == [
        "Confirmation of Payee",
        "Verification of Payee, asked by name",
        "Verification of Payee, asked by identification",
    ]


def test_fields_with_one_sentence_share_a_case_and_others_do_not():
    [case] = cases_of(explain("IDENTIFICATION_TOO_LONG"))
    fields = ["organisation_id", "organisation_id_issuer"]
    assert case.where == said("explain.from_rules", fields=fields)
    assert [case.where for case in cases_of(explain("NO_API"))] == [
        said("explain.from_rules", fields=[field]) for field in ("iban", "iban", "sort_code")
    ]


def test_a_code_is_found_however_it_is_spelt():
    assert explain(" ac01 ") == explain("AC01")


@pytest.mark.parametrize("code", ["HTTP_503", "http_418"])
def test_a_status_of_the_server_is_explained_under_its_own_name(code):
    explanation = explain(code)
    assert explanation.code == code.upper()
    assert {case.outcome for case in explanation.cases} == {Outcome.UNANSWERED, Outcome.REJECTED}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("AC00", Sentence("reports.unknown_code_near_match", near="AC01")),
        ("HTTP_5033", Sentence("reports.unknown_code_near_match", wanted="'HTTP_5033'")),
        ("", Sentence("reports.unknown_code", wanted="''")),
        ("\x1b[31m", Sentence("reports.unknown_code", wanted="'\\x1b[31M'")),
    ],
)
def test_a_word_that_is_no_code_is_refused_with_what_is_nearest(code, said):
    with refused(UsageError, said):
        explain(code)


def test_only_a_question_without_an_answer_is_sent_back_to_the_same_command():
    later = {code: case for code, _, case in CASES if case.action is Action.RETRY_LATER}
    for code, case in later.items():
        assert ("--reuse-from" in case.to_do) is (case.outcome is Outcome.NOT_POSSIBLE), code
    assert str(advice(Action.RETRY_LATER, "HTTPERR")) == later["HTTPERR"].to_do
    assert str(advice(Action.RETRY_LATER, "NETWORK")) == later["NETWORK"].to_do


@pytest.mark.parametrize("code", ["NO_API", "HTTP_413", "HTTP_415"])
def test_what_the_row_does_not_bring_about_does_not_ask_to_correct_the_row(code):
    says = {case.to_do for case in cases_of(explain(code))} | {str(advice(Action.CORRECT_ROW, code))}
    assert not [said for said in says if "orrect" in said]
    wanted = "section to the profile" if code == "NO_API" else "Ask the provider"
    assert all(wanted in said for said in says)


def test_a_refusal_without_a_code_of_its_own_is_told_by_its_status():
    assert [case.outcome for case in explain("HTTP_415").cases] == [Outcome.REJECTED]
    found = {case.says.partition(":")[0] for case in cases_of(explain("HTTP_422"))}
    assert found >= {"HTTP status 400 or 422"}


def test_which_codes_have_no_advice_of_their_own():
    """The step of their action says all; every other code says what to do about it."""
    meanings = {**cop.API.meanings, **vop.GATEWAY.meanings, **own_codes.MEANINGS}
    assert {str(code) for (_, code), meaning in meanings.items() if meaning.advice is None} == {
        *("MTCH", "ANNM", "OPTO", "ACNS", "SCNS", "SECMISS", "NMTC", "NOAP")
    }
