"""CoP Gateway outcomes: every combination of matched, reasonCode and name, and what each code means."""

import tomllib
from itertools import product
from pathlib import Path

import pytest
from refusals import refused
from tables import for_each

from pipeline.apis import Basis, ContractBreachError, MisdirectedError, ParsedAnswer, cop
from schemas.cop import ReasonCode
from schemas.outcomes import Outcome

REFERENCE = tomllib.loads(Path(__file__).parents[1].joinpath("reference.toml").read_text("utf-8"))
MAPS_TO = {row["code"]: row["maps_to"] for row in REFERENCE["reason_code"]}
OUTCOMES = {
    "Close Match": Outcome.CLOSE_MATCH,
    "No Match": Outcome.NO_MATCH,
    "Not Possible": Outcome.NOT_POSSIBLE,
}
ABSENT = object()
COMBINATIONS = list(
    product(
        (True, False, ABSENT, None),
        (ABSENT, None, "", "MTCH", "mbam", "XXXX", *MAPS_TO),
        (ABSENT, None, "", " \u00a0\u200b", "Ada Quillon"),
    )
)


def report_of(matched, code, name):
    members = {"matched": matched, "reasonCode": code, "name": name}
    report = {member: value for member, value in members.items() if value is not ABSENT}
    return {"data": {"verificationReport": report}}


def reading_by_the_reference(matched, code, name):
    """Rules 1 to 3 of the section; a member that is null is absent, an empty name is none. None: a breach."""
    code, name = (None if member in (ABSENT, None) else member for member in (code, name or None))
    if matched is True:
        return ParsedAnswer("MTCH", None) if code is None and name is None else None
    if matched is not False or code not in MAPS_TO:
        return None
    if MAPS_TO[code] == "Close Match":
        return ParsedAnswer(code, name) if name is not None and name.strip(" \u00a0\u200b") else None
    return ParsedAnswer(code, None) if name is None else None


def test_reason_codes_are_those_of_the_table():
    assert list(ReasonCode) == list(MAPS_TO)
    assert set(cop.API.meanings) == {(Basis.NAME, code) for code in ("MTCH", *MAPS_TO)}


@pytest.mark.parametrize(("code", "maps_to"), MAPS_TO.items())
def test_reason_code_maps_to_the_outcome_of_the_table(code, maps_to):
    assert cop.API.meanings[Basis.NAME, code].outcome is OUTCOMES[maps_to]


def test_full_match_is_a_match():
    assert cop.API.meanings[Basis.NAME, "MTCH"].outcome is Outcome.MATCH


@pytest.mark.parametrize(("code", "maps_to"), MAPS_TO.items())
def test_name_comes_with_a_close_match_and_only_then(code, maps_to, response_of, check_of, request_id):
    is_close = maps_to == "Close Match"
    with_name = response_of(report_of(False, code, "Ada Quillon"))
    without_name = response_of(report_of(False, code, ABSENT))
    good, bad = (with_name, without_name) if is_close else (without_name, with_name)
    assert cop.read(good, check_of(), request_id) == ParsedAnswer(code, "Ada Quillon" if is_close else None)
    with refused(ContractBreachError, "apis.contradiction", members=["matched", "reasonCode", "name"]):
        cop.read(bad, check_of(), request_id)


@for_each("combination", COMBINATIONS)
def test_every_combination_is_the_outcome_of_the_reference_or_a_breach(
    combination, response_of, check_of, request_id
):
    response = response_of(report_of(*combination))
    expected = reading_by_the_reference(*combination)
    if expected is not None:
        assert cop.read(response, check_of(), request_id) == expected
        return
    with pytest.raises(ContractBreachError) as breach:
        cop.read(response, check_of(), request_id)
    assert not isinstance(breach.value, MisdirectedError)


def test_exactly_one_kind_of_combination_is_a_match():
    matches = [c for c in COMBINATIONS if reading_by_the_reference(*c) == ParsedAnswer("MTCH", None)]
    assert {matched for matched, _, _ in matches} == {True}
    assert len(matches) == 6


@pytest.mark.parametrize("value", ["true", "True", 1, 1.0, [True], {"value": True}])
def test_matched_that_is_not_a_boolean_is_a_breach(value, response_of, check_of, request_id):
    with pytest.raises(ContractBreachError):
        cop.read(response_of(report_of(value, ABSENT, ABSENT)), check_of(), request_id)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"data": {}},
        {"data": None},
        {"data": []},
        {"data": {"verificationReport": None}},
        {"data": {"verificationReport": {}}},
        {"data": {"verificationReport": [{"matched": True}]}},
        {"verificationReport": {"matched": True}},
        {"matched": True},
        {"Data": {"verificationReport": {"matched": True}}},
        {"data": {"verification_report": {"matched": True}}},
        {"data": {"verificationReport": {"Matched": True}}},
        {"data": {"verificationReport": {"matched": False, "reason_code": "ANNM"}}},
        {"partyNameMatch": "MTCH"},
        [{"data": {"verificationReport": {"matched": True}}}],
        "MTCH",
        True,
        None,
    ],
)
def test_document_of_another_shape_is_a_breach(document, response_of, check_of, request_id):
    with pytest.raises(ContractBreachError):
        cop.read(response_of(document), check_of(), request_id)


def test_matched_name_is_passed_on_untouched(response_of, check_of, request_id):
    name = "  Zoe\u0308 O'Marrow \u2013 =1+1 "
    reading = cop.read(response_of(report_of(False, "MBAM", name)), check_of(), request_id)
    assert reading.matched_name == name
