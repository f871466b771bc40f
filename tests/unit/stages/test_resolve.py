"""One outcome for every payment, and never a guessed one."""

import re
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from refusals import said

from pipeline.apis import Basis, cop, vop
from pipeline.frames import ANSWERS, ASSIGNMENTS, BASES, OUTCOMES, REJECTS, WARNINGS, AnswerState
from pipeline.reports.wording import said_reasons, sentences_of
from pipeline.rules.row_positions import lines_at
from pipeline.stages.plan import bases
from pipeline.stages.resolve import resolve
from pipeline.wording import Sentence
from schemas.outcomes import Action, ApiName, Environment, Outcome

APIS = [cop.API, vop.GATEWAY, vop.standard("MARWGB2LXXX")]
PAGE = Path(__file__).parents[3].joinpath("docs", "outcomes.md").read_text("utf-8")
EVERY_CODE = [(api, basis, code) for api in APIS for basis, code in api.meanings]
NO_REJECTS = pl.DataFrame(schema=REJECTS)
NO_WARNINGS = pl.DataFrame(schema=WARNINGS)


SAID = '["rule.name_missing",{}]'


def findings_of(schema, *findings):
    return pl.DataFrame([(*finding, SAID) for finding in findings], schema=schema, orient="row")


@pytest.fixture
def decide(checks_of, answers_of, check_of):
    """Resolve one payment whose one question had this answer; give its outcome."""

    def one(answer, check=None, environment=Environment.PRODUCTION):
        assignments = pl.DataFrame([(1, 1)], schema=ASSIGNMENTS, orient="row")
        asked = (bases(checks_of(check or check_of())), assignments)
        outcomes, _ = resolve((NO_REJECTS, NO_WARNINGS), asked, answers_of(answer), APIS, environment)
        (outcome,) = outcomes.to_dicts()
        return outcome

    return one


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_match_of_an_earlier_run_says_so_with_its_day(api, decide, check_of):
    outcome = decide({"code": "MTCH", "state": AnswerState.REUSED}, check_of(api=api.name))
    assert (outcome["check_outcome"], outcome["check_action"]) == ("match", "pay")
    answered = said("answer.reused", day=date(2030, 1, 2))
    assert outcome["check_reason"] == f"{said('answer.name_belongs')} {answered}"


@pytest.mark.parametrize(
    ("api", "basis", "code"),
    EVERY_CODE,
    ids=[f"{api.name}-{basis}-{code}" for api, basis, code in EVERY_CODE],
)
def test_answered_code_has_the_meaning_of_its_api_and_is_kept_verbatim(api, basis, code, decide, check_of):
    by = {"name": "Ada Quillon"} if basis is Basis.NAME else {"name": None, "lei": "X"}
    outcome = decide({"code": code}, check_of(api=api.name, **by))
    meaning = api.meanings[basis, code]
    assert outcome["check_code"] == code
    assert outcome["check_outcome"] == meaning.outcome
    assert outcome["check_action"] == meaning.action
    assert outcome["check_reason"] == str(meaning.reason)
    assert outcome["check_api"] == api.name


def test_only_one_code_is_a_match():
    matches = {code for api, basis, code in EVERY_CODE if api.meanings[basis, code].outcome is Outcome.MATCH}
    assert matches == {"MTCH"}
    pays = {code for api, basis, code in EVERY_CODE if api.meanings[basis, code].action is Action.PAY}
    assert pays == {"MTCH"}


def test_answer_is_told_with_all_that_came_with_it(decide):
    answer = {"code": "MBAM", "matched_name": "ADA QUILLON", "attempts": 3}
    assert decide(answer, environment=Environment.TEST) == {
        "row": 1,
        "check_outcome": "close_match",
        "check_code": "MBAM",
        "check_reason": said("answer.close_name"),
        "check_action": "fix_name",
        "check_matched_name": "ADA QUILLON",
        "check_api": "cop",
        "check_environment": "test",
        "check_id": "00000000-0000-4000-8000-000000000001",
        "check_time": "2030-01-02T03:04:05.678Z",
        "check_attempts": 3,
    }


@pytest.mark.parametrize(
    ("state", "outcome", "action"),
    [
        (AnswerState.REFUSED, Outcome.REJECTED, Action.CORRECT_ROW),
        (AnswerState.UNANSWERED, Outcome.UNANSWERED, Action.RETRY_LATER),
        (AnswerState.DEFERRED, Outcome.DEFERRED, Action.RETRY_LATER),
    ],
)
@pytest.mark.parametrize("code", ["FORMAT_ERROR", "DAILY_CAP", "CONTRACT", "NEVER_SEEN", "HTTP_418", "MTCH"])
def test_code_that_no_responder_answered_is_never_a_match(decide, state, outcome, action, code):
    decided = decide({"state": state, "code": code})
    assert (decided["check_outcome"], decided["check_action"]) == (outcome, action)
    assert decided["check_code"] == code
    assert decided["check_reason"].endswith(".")


def test_reason_why_there_is_no_answer_is_what_the_page_on_outcomes_says(decide):
    _, _, rest = re.sub(r"\[(`\w+`)\]\([^)]*\)", r"\1", PAGE).partition("<!-- generated: own-codes -->")
    rows = [line for line in rest.partition("<!-- end -->")[0].splitlines() if line.startswith("| `")]
    assert len(rows) >= 9
    for row in rows:
        outcome, code, reason = (cell.strip().strip("`") for cell in row.strip("|").split("|"))
        state = AnswerState.REFUSED if outcome == Outcome.REJECTED else AnswerState(outcome)
        decided = decide({"state": state, "code": code})
        assert (decided["check_outcome"], decided["check_reason"]) == (outcome, reason)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (AnswerState.REFUSED, said("answer.refused")),
        (AnswerState.UNANSWERED, said("answer.unanswered")),
        (AnswerState.DEFERRED, said("answer.limit", "page")),
    ],
)
@pytest.mark.parametrize("code", ["NEVER_SEEN", "MTCH"])
def test_code_without_a_reason_of_its_own_has_that_of_its_state(decide, state, reason, code):
    assert decide({"state": state, "code": code})["check_reason"] == reason


@pytest.mark.parametrize("state", [AnswerState.REFUSED, AnswerState.UNANSWERED, AnswerState.DEFERRED])
def test_reason_of_one_state_is_not_told_in_another(decide, state):
    other = "DEADLINE" if state is AnswerState.DEFERRED else "DAILY_CAP"
    neutral = decide({"state": state, "code": "NEVER_SEEN"})["check_reason"]
    assert decide({"state": state, "code": other})["check_reason"] == neutral


@pytest.mark.parametrize("code", ["XXXX", "MTCH ", "mtch", "CMTC", "NOAP", "FORMAT_ERROR"])
def test_answered_code_that_no_table_knows_is_a_mistake_of_ours_and_no_outcome(decide, code):
    with pytest.raises(AssertionError, match="a code that no table knows"):
        decide({"code": code})


def test_code_of_one_api_means_nothing_to_another(decide, check_of):
    with pytest.raises(AssertionError):
        decide({"code": "MBAM"}, check_of(api=ApiName.VOP_GATEWAY))
    with pytest.raises(AssertionError):
        decide({"code": "CMTC"}, check_of(api=ApiName.VOP_GATEWAY, name=None, lei="X"))


def test_rejected_payment_has_the_first_code_and_the_sentences_of_all_broken_rules():
    rejects = findings_of(
        REJECTS,
        (1, "iban", "IBAN_FORMAT", "not an IBAN"),
        (1, "name", "NAME_MISSING", "no payee name"),
        (2, "name", "NAME_MISSING", "no payee name"),
    )
    asked = (pl.DataFrame(schema=BASES), pl.DataFrame(schema=ASSIGNMENTS))
    answers = pl.DataFrame(schema=ANSWERS)
    outcomes, _ = resolve((rejects, NO_WARNINGS), asked, answers, APIS, Environment.SANDBOX)
    first, second = outcomes.to_dicts()
    assert first["check_code"] == "IBAN_FORMAT"
    iban = said("answer.of_field", field="iban", message="not an IBAN")
    name = said("answer.of_field", field="name", message="no payee name")
    assert first["check_reason"] == f"{iban} {name}"
    assert first["check_outcome"] == second["check_outcome"] == "rejected"
    assert second["check_action"] == "correct_row"
    assert second["check_environment"] == "sandbox"
    assert second["check_attempts"] == 0
    for column in ("check_api", "check_id", "check_time", "check_matched_name"):
        assert second[column] is None


def test_payment_that_only_the_profile_is_against_is_not_possible_and_a_broken_one_is_rejected():
    rejects = findings_of(
        REJECTS,
        (1, "iban", "OUT_OF_REACH", "of a country that is not asked about"),
        (2, "name", "NAME_TOO_LONG", "too long"),
        (2, "iban", "OUT_OF_REACH", "of a country that is not asked about"),
    )
    asked = (pl.DataFrame(schema=BASES), pl.DataFrame(schema=ASSIGNMENTS))
    outcomes, _ = resolve(
        (rejects, NO_WARNINGS), asked, pl.DataFrame(schema=ANSWERS), APIS, Environment.SANDBOX
    )
    told = outcomes.select("check_outcome", "check_code", "check_action", "check_api").rows()
    assert told == [
        ("not_possible", "OUT_OF_REACH", "ask_payee", None),
        ("rejected", "NAME_TOO_LONG", "correct_row", None),
    ]


@pytest.fixture
def resolve_two(checks_of, answers_of, check_of):
    """Two questions, three payments and one reject: rows 1 and 4 ask the first, row 3 the second."""

    def run(*answers, rejects=None, warnings=NO_WARNINGS, assigned=((1, 1), (3, 2), (4, 1))):
        rejects = findings_of(REJECTS, (2, "name", "NAME_MISSING", "no name")) if rejects is None else rejects
        assignments = pl.DataFrame(list(assigned), schema=ASSIGNMENTS, orient="row")
        asked = bases(checks_of(check_of(), check_of(check=2, name="Bo Marrow")))
        return resolve(
            (rejects, warnings), (asked, assignments), answers_of(*answers), APIS, Environment.TEST
        ).outcomes

    return run


def test_every_payment_has_one_outcome_in_row_order(resolve_two):
    outcomes = resolve_two({"code": "MTCH"}, {"code": "ANNM"})
    assert outcomes.schema == OUTCOMES
    assert list(outcomes.select("row", "check_outcome").iter_rows()) == [
        (1, "match"),
        (2, "rejected"),
        (3, "no_match"),
        (4, "match"),
    ]


def test_answers_may_come_in_any_order(resolve_two):
    outcomes = resolve_two({"check": 2, "code": "ANNM"}, {"check": 1, "code": "MTCH"})
    assert outcomes["check_outcome"].to_list() == ["match", "rejected", "no_match", "match"]


def test_warning_is_a_note_behind_the_reason_of_its_row_only(resolve_two):
    warnings = findings_of(WARNINGS, (4, "row", "PAYMENT_REPEATED", "the same payment as row 1"))
    reasons = resolve_two({"code": "MTCH"}, {"code": "ANNM"}, warnings=warnings)["check_reason"].to_list()
    note = said("answer.note", message="the same payment as row 1")
    assert (reasons[0], reasons[3]) == (said("answer.name_belongs"), f"{said('answer.name_belongs')} {note}")


def test_notes_of_one_payment_are_told_one_after_the_other(resolve_two):
    warnings = findings_of(
        WARNINGS,
        (4, "row", "PAYMENT_REPEATED", "the same payment as row 1"),
        (4, "name", "OTHER", "another thing"),
    )
    reasons = resolve_two({"code": "MTCH"}, {"code": "ANNM"}, warnings=warnings)["check_reason"].to_list()
    notes = (
        said("answer.note", message=message) for message in ("the same payment as row 1", "another thing")
    )
    assert reasons[3].endswith(f" {' '.join(notes)}")


@pytest.mark.parametrize(
    "answers",
    [
        [{"code": "MTCH"}],
        [{"code": "MTCH"}, {"check": 1, "code": "ANNM"}],
        [{"code": "MTCH"}, {"check": 9, "code": "ANNM"}],
        [{"code": "MTCH"}, {"check": 2, "code": "ANNM"}, {"check": 3, "code": "MTCH"}],
    ],
)
def test_answers_that_are_not_one_per_question_are_a_mistake_of_ours(resolve_two, answers):
    with pytest.raises(AssertionError):
        resolve_two(*answers)


def test_payment_both_asked_and_rejected_is_a_mistake_of_ours(resolve_two):
    rejects = findings_of(REJECTS, (1, "name", "NAME_MISSING", "no name"))
    with pytest.raises(AssertionError):
        resolve_two({"code": "MTCH"}, {"code": "ANNM"}, rejects=rejects)


@pytest.mark.parametrize("number", [0, 3, 7])
def test_payment_that_asks_a_question_that_there_is_not_is_a_mistake_of_ours(resolve_two, number):
    with pytest.raises(AssertionError):
        resolve_two({"code": "MTCH"}, {"code": "ANNM"}, assigned=((1, 1), (3, 2), (4, number)))


def test_nothing_to_decide_is_an_empty_frame_of_the_right_shape(checks_of, answers_of):
    asked = (bases(checks_of()), pl.DataFrame(schema=ASSIGNMENTS))
    outcomes, _ = resolve((NO_REJECTS, NO_WARNINGS), asked, answers_of(), APIS, Environment.TEST)
    assert outcomes.schema == OUTCOMES
    assert outcomes.height == 0


def test_file_without_a_payment_to_ask_about_needs_no_api(checks_of, answers_of):
    rejects = findings_of(REJECTS, (1, "name", "NAME_MISSING", "no name"))
    asked = (bases(checks_of()), pl.DataFrame(schema=ASSIGNMENTS))
    outcomes, _ = resolve((rejects, NO_WARNINGS), asked, answers_of(), [], Environment.TEST)
    assert outcomes["check_outcome"].to_list() == ["rejected"]


@pytest.mark.parametrize("which", ["rejects", "warnings", "bases", "assignments", "answers"])
def test_frame_of_another_shape_is_a_mistake_of_ours(which, checks_of, answers_of, check_of):
    frames = {
        "rejects": NO_REJECTS,
        "warnings": NO_WARNINGS,
        "bases": bases(checks_of(check_of())),
        "assignments": pl.DataFrame([(1, 1)], schema=ASSIGNMENTS, orient="row"),
        "answers": answers_of({"code": "MTCH"}),
    }

    def outcomes():
        findings, asked = (frames["rejects"], frames["warnings"]), (frames["bases"], frames["assignments"])
        return resolve(findings, asked, frames["answers"], APIS, Environment.TEST).outcomes

    assert outcomes().height == 1
    frames[which] = frames[which].with_columns(more=pl.lit("x"))
    with pytest.raises(AssertionError):
        outcomes()


def test_what_stands_behind_each_reason_is_kept_once_in_any_language(checks_of, answers_of, check_of):
    rejects = findings_of(REJECTS, (2, "name", "NAME_MISSING", "no name"))
    warnings = pl.DataFrame(
        [(3, "row", "PAYMENT_REPEATED", "the same payment as row 1", '["rule.payment_repeated",{"row":1}]')],
        schema=WARNINGS,
        orient="row",
    )
    assignments = pl.DataFrame([(1, 1), (3, 1), (4, 1)], schema=ASSIGNMENTS, orient="row")
    reused = answers_of({"code": "MTCH", "state": AnswerState.REUSED, "time": "2026-11-23T05:16:00.000Z"})
    asked = (bases(checks_of(check_of())), assignments)
    outcomes, frame = resolve((rejects, warnings), asked, reused, APIS, Environment.TEST)
    reasons = said_reasons(frame)
    assert reasons.keys() == set(outcomes["check_reason"])
    keys = [[said.key for said in sentences_of(reason, reasons, None)] for reason in outcomes["check_reason"]]
    answered = ["answer.name_belongs", "answer.reused"]
    assert keys == [answered, ["answer.of_field"], [*answered, "answer.note"], answered]
    noted = sentences_of(outcomes["check_reason"][2], reasons, lines_at(pl.Series([2, 3, 4, 5])))
    first = Sentence(
        "places.rows_at",
        rows=Sentence("places.rows", count=1, rows=["1"]),
        places=Sentence("places.lines", count=1, places=["2"]),
    )
    assert noted[1:] == [
        Sentence("answer.reused", day=date(2026, 11, 23)),
        Sentence("answer.note", message=Sentence("rule.payment_repeated", row=first)),
    ]
    assert sentences_of("purged since", reasons, None) == ["purged since"]


def test_each_sentence_behind_a_reason_is_kept_also_of_an_answer_of_this_run(checks_of, answers_of, check_of):
    merged = said("rule.row_merged")
    rejects = findings_of(REJECTS, (2, "row", "ROW_MERGED", merged), (2, "iban", "IBAN_FORMAT", "no IBAN"))
    asked = (bases(checks_of(check_of())), pl.DataFrame([(1, 1)], schema=ASSIGNMENTS, orient="row"))
    outcomes, frame = resolve(
        (rejects, NO_WARNINGS), asked, answers_of({"code": "MTCH"}), APIS, Environment.TEST
    )
    reasons = said_reasons(frame)
    keys = [[said.key for said in sentences_of(reason, reasons, None)] for reason in outcomes["check_reason"]]
    assert keys == [["answer.name_belongs"], ["answer.of_row", "answer.of_field"]]
    assert outcomes["check_reason"][1] == f"{merged}. iban: no IBAN."
