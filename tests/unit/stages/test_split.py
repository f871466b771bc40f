"""Who goes where: a policy and people's decisions over outcomes."""

import polars as pl
import pytest
from tables import for_each

from pipeline.frames import DECISIONS, WARNED
from pipeline.review.placements import split, why_held
from pipeline.wording import Sentence
from schemas.outcomes import Outcome
from schemas.review import Decision, Verdict

TIME = "2030-01-02T03:04:05.678Z"


@pytest.fixture
def said():
    """Why each payment that was placed is held."""
    return []


@pytest.fixture
def place_of(outcomes_of, said):
    """One payment -> where it goes, and whether a person made it so."""

    def place(outcome, code="X", *, policy=None, decision=None, warnings=()):
        decisions = [(1, decision.value, "because", "Mara", TIME, None)] if decision else []
        frame = pl.DataFrame(decisions, schema=DECISIONS, orient="row")
        warned = pl.DataFrame([(1, code) for code in warnings], schema=WARNED, orient="row")
        outcomes = outcomes_of({"outcome": outcome, "code": code})
        placements = split(outcomes, warned, policy or {}, frame)
        [found] = placements.rows(named=True)
        said.extend(why for why, _ in why_held(placements).values())
        return found["place"], found["decided"]

    return place


@for_each("outcome", Outcome)
@for_each("verdict", [None, *Verdict])
@for_each("decision", [None, *Decision])
def test_only_an_answered_row_is_released_and_no_decision_to_hold_is_overruled(
    place_of, outcome, verdict, decision
):
    policy = {} if verdict is None else {outcome: verdict}
    in_force = verdict or (Verdict.RELEASE if outcome is Outcome.MATCH else Verdict.HOLD)
    answered = outcome not in {Outcome.REJECTED, Outcome.DEFERRED, Outcome.UNANSWERED}
    by_policy = in_force is Verdict.RELEASE and decision in {None, Decision.RELEASE}
    by_person = in_force is Verdict.REVIEW and decision is Decision.RELEASE
    place, _ = place_of(outcome, policy=policy, decision=decision)
    assert place == ("release" if answered and (by_policy or by_person) else "hold")


def test_a_code_goes_before_its_outcome(place_of):
    policy = {"close_match": Verdict.RELEASE, "BAMM": Verdict.HOLD}
    assert place_of("close_match", "MBAM", policy=policy)[0] == "release"
    assert place_of("close_match", "BAMM", policy=policy)[0] == "hold"


def test_a_decision_that_changes_nothing_is_not_counted_as_one(place_of):
    assert place_of("no_match", "ANNM", decision=Decision.RELEASE) == ("hold", False)
    assert place_of("match", "MTCH", decision=Decision.HOLD) == ("hold", True)


def test_a_release_of_what_is_released_anyway_is_counted_as_the_word_of_a_person(place_of):
    assert place_of("match", "MTCH", decision=Decision.RELEASE) == ("release", True)
    assert place_of("match", "MTCH") == ("release", False)


def test_a_servers_own_code_cannot_stand_for_an_answer(place_of):
    assert place_of("unanswered", "MTCH", policy={"MTCH": Verdict.RELEASE})[0] == "hold"


@pytest.mark.parametrize("of_answer", Verdict)
@pytest.mark.parametrize("of_warning", [None, Verdict.REVIEW, Verdict.HOLD])
@pytest.mark.parametrize("decision", [None, Decision.RELEASE])
def test_the_stricter_of_answer_and_warning_counts(place_of, of_answer, of_warning, decision):
    policy = {"match": of_answer} | ({} if of_warning is None else {"PAYMENT_REPEATED": of_warning})
    place, decided = place_of("match", policy=policy, decision=decision, warnings=["PAYMENT_REPEATED"])
    both = {of_answer, of_warning}
    by_person = Verdict.HOLD not in both and decision is not None
    released = both <= {None, Verdict.RELEASE} or by_person
    assert (place == "release", decided) == (released, by_person)


def test_a_row_is_held_for_everything_that_holds_it(place_of, said):
    policy = {"no_match": Verdict.HOLD, "ACCOUNT_CHANGED": Verdict.HOLD, "NAME_CHANGED": Verdict.HOLD}
    place_of("no_match", policy=policy, warnings=["ACCOUNT_CHANGED", "NAME_CHANGED", "ENUMERATION"])
    place_of("match", policy=policy, warnings=["ACCOUNT_CHANGED"])
    place_of("no_match", policy=policy | {"ACCOUNT_CHANGED": Verdict.REVIEW}, warnings=["ACCOUNT_CHANGED"])
    assert said == [
        Sentence("review.held_by_policy", of=of)
        for of in ("no_match and ACCOUNT_CHANGED and NAME_CHANGED", "ACCOUNT_CHANGED", "no_match")
    ]


def test_the_strictest_of_several_warnings_counts_and_is_named(place_of, said):
    policy = {"MIXED_SCRIPTS": Verdict.REVIEW, "PAYMENT_REPEATED": Verdict.HOLD}
    assert place_of("match", policy=policy, warnings=["MIXED_SCRIPTS", "PAYMENT_REPEATED"])[0] == "hold"
    assert place_of("match", policy=policy, warnings=["MIXED_SCRIPTS"])[0] == "hold"
    assert place_of("match", policy=policy, warnings=["ENUMERATION"])[0] == "release"
    assert said == [
        Sentence("review.held_by_policy", of="PAYMENT_REPEATED"),
        Sentence("review.held_for_person", of="MIXED_SCRIPTS"),
    ]
