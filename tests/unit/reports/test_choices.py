"""What is offered beside a row is what `precheck split` and `precheck fix` then do."""

import polars as pl
import pytest
from refusals import said
from tables import for_each

from pipeline.frames import DECISIONS, WARNED
from pipeline.reports.choices import Policy, choice, how_to_release, offered, policy_lines
from pipeline.review.corrections import correctable, fix
from pipeline.review.placements import split
from schemas.outcomes import Action, Outcome
from schemas.review import Decision, Verdict
from schemas.summary import CodeCount, WarningCount


@for_each("outcome", Outcome)
@for_each("of_answer", Verdict)
@for_each("of_warning", [None, Verdict.REVIEW, Verdict.HOLD])
@for_each("key", ["outcome", "X"])
def test_release_is_offered_where_it_is_followed_and_nowhere_else(
    outcomes_of, outcome, of_answer, of_warning, key
):
    outcomes = outcomes_of({"outcome": outcome, "code": "X", "action": "ask_payee"})
    policy = {outcome.value if key == "outcome" else key: of_answer}
    policy |= {} if of_warning is None else {"PAYMENT_REPEATED": of_warning}
    warned = pl.DataFrame([(1, "PAYMENT_REPEATED")], schema=WARNED, orient="row")
    decided = pl.DataFrame(
        [(1, "release", "because", "Mara", "2030-01-02T03:04:05.678Z", None)], schema=DECISIONS, orient="row"
    )
    [[run]] = offered([outcomes], Policy(policy, warned, "main"))
    is_followed = split(outcomes, warned, policy, decided)["place"].item() == "release"
    assert (Decision.RELEASE in run.choice.words) == is_followed
    assert Decision.HOLD in run.choice.words
    assert bool(run.choice.why) == (not is_followed)


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("matched_name", [None, "Another Name"])
def test_fix_is_offered_where_the_row_can_be_corrected(payments_of, outcomes_of, action, matched_name):
    outcomes = outcomes_of({"code": "PAMM", "action": action, "matched_name": matched_name})
    payments = payments_of({"name": "Quillon", "account_type": "Business"})
    headers = {"name": ["name"], "account_type": ["type"]}
    [[run]] = offered([outcomes], Policy({}, pl.DataFrame(schema=WARNED), "main"))
    can_fix = not correctable(fix(payments, outcomes, headers)).is_empty()
    assert (Decision.FIX in run.choice.words) == can_fix


def test_rows_that_follow_one_another_with_one_choice_are_one_run(outcomes_of):
    no_match = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee"}
    [runs] = offered(
        [outcomes_of({}, {}, no_match, no_match, {})], Policy({}, pl.DataFrame(schema=WARNED), "main")
    )
    assert [(run.first, run.last) for run in runs] == [(0, 1), (2, 3), (4, 4)]
    assert runs[0].choice == runs[2].choice


def test_writing_what_is_said_makes_the_row_releasable(outcomes_of):
    outcomes = outcomes_of({"outcome": "no_match", "code": "ANNM", "action": "ask_payee"})
    warned = pl.DataFrame([(1, "PAYMENT_REPEATED")], schema=WARNED, orient="row")
    policy = {"ANNM": Verdict.HOLD, "PAYMENT_REPEATED": Verdict.HOLD}
    [[run]] = offered([outcomes], Policy(policy, warned, "main"))
    assert (
        'write ANNM = "review" and PAYMENT_REPEATED = "review" into [profiles.main.policy]' in run.choice.why
    )
    [[run]] = offered([outcomes], Policy(dict.fromkeys(policy, Verdict.REVIEW), warned, "main"))
    assert Decision.RELEASE in run.choice.words


def test_what_is_said_has_room_in_a_spreadsheet():
    assert len(how_to_release(["not_possible", "PAYMENT_REPEATED"], "production" * 4)) <= 255
    assert said("sheet.policy_of_profile") in how_to_release(["no_match"], "p" * 500)
    for outcome in (Outcome.REJECTED, Outcome.DEFERRED, Outcome.UNANSWERED):
        assert len(choice(outcome, [], "main", can_fix=False).why) <= 255


def test_summary_tells_each_key_of_the_policy_that_decides_over_rows(summary_of):
    def count(outcome, code, rows):
        action = Action.PAY if outcome == "match" else Action.ASK_PAYEE
        return CodeCount(outcome=outcome, code=code, action=action, reason="", row_count=rows, rows=[])

    codes = [count("match", "MTCH", 5), count("no_match", "ANNM", 2), count("no_match", "NMTC", 3)]
    codes += [count("close_match", "MBAM", 1), count("rejected", "NAME_MISSING", 4)]
    warnings = [WarningCount(code="PAYMENT_REPEATED", row_count=2, rows=[1, 2])]
    summary = summary_of(codes=codes, warning_codes=warnings)
    policy = {"MBAM": Verdict.REVIEW, "PAYMENT_REPEATED": Verdict.HOLD, "MIXED_SCRIPTS": Verdict.HOLD}
    found = policy_lines(summary, Policy(policy, pl.DataFrame(schema=WARNED), "main"))
    assert [(one.key, one.row_count, one.verdict, Decision.RELEASE in one.words) for one in found] == [
        ("match", 5, "release", True),
        ("no_match", 5, "hold", False),
        ("MBAM", 1, "review", True),
        ("rejected", 4, "hold", False),
        ("PAYMENT_REPEATED", 2, "hold", False),
    ]
    assert policy_lines(summary, Policy(None, pl.DataFrame(schema=WARNED), "main")) == []
