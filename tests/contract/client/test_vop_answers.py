"""VoP outcomes: every combination of the three members, for a name and for an identification."""

import tomllib
from itertools import product
from pathlib import Path

import pytest
from refusals import refused
from tables import for_each

from pipeline.apis import Basis, ContractBreachError, ParsedAnswer, vop
from schemas.outcomes import ApiName, Outcome
from schemas.vop import IdMatch, NameMatch

REFERENCE = tomllib.loads(Path(__file__).parents[1].joinpath("reference.toml").read_text("utf-8"))
CODES = REFERENCE["match_code"]
NAME_CODES = [row["code"] for row in CODES if row["name"]]
ID_CODES = [row["code"] for row in CODES if row["identification"]]
OUTCOMES = {
    "Match": Outcome.MATCH,
    "Close match": Outcome.CLOSE_MATCH,
    "No match": Outcome.NO_MATCH,
    "Not applicable": Outcome.NOT_POSSIBLE,
}
ABSENT = object()
COMBINATIONS = list(
    product(
        (Basis.NAME, Basis.IDENTIFICATION),
        (ABSENT, None, "", "mtch", "XXXX", *NAME_CODES),
        (ABSENT, None, "XXXX", "CMTC", *ID_CODES),
        (ABSENT, None, "", "\t\u200b ", "Quillon Mills BV"),
    )
)
APIS = [vop.GATEWAY, vop.standard("MARWGB2LXXX")]


@pytest.fixture
def question_of(check_of):
    def build(basis, api=ApiName.VOP_GATEWAY):
        by = {"name": "Quillon Mills BV"} if basis is Basis.NAME else {"name": None, "lei": "x"}
        return check_of(api=api, account="DE89370400440532013000", **by)

    return build


def document_of(name_match, id_match, matched_name):
    members = {"partyNameMatch": name_match, "partyIdMatch": id_match, "matchedName": matched_name}
    return {member: value for member, value in members.items() if value is not ABSENT}


def reading_by_the_reference(basis, name_match, id_match, matched_name):
    """What was asked for is answered; what was not may be absent or NOAP; an empty name is none.

    None: a breach.
    """
    name_match, id_match, matched_name = (
        None if member in (ABSENT, None) else member
        for member in (name_match, id_match, matched_name or None)
    )
    answered, other = (name_match, id_match) if basis is Basis.NAME else (id_match, name_match)
    codes = NAME_CODES if basis is Basis.NAME else ID_CODES
    if answered not in codes or other not in (None, "NOAP"):
        return None
    if answered == "CMTC":
        return ParsedAnswer("CMTC", matched_name) if (matched_name or "").strip("\t\u200b ") else None
    return ParsedAnswer(answered, None) if matched_name is None else None


def test_codes_are_those_of_the_table():
    assert list(NameMatch) == NAME_CODES
    assert list(IdMatch) == ID_CODES
    expected = {(Basis.NAME, code) for code in NAME_CODES}
    expected |= {(Basis.IDENTIFICATION, code) for code in ID_CODES}
    for api in APIS:
        assert set(api.meanings) == expected


@pytest.mark.parametrize("row", CODES, ids=lambda row: row["code"])
def test_code_has_the_outcome_of_the_table(row):
    for api in APIS:
        for basis in Basis:
            if row[basis]:
                assert api.meanings[basis, row["code"]].outcome is OUTCOMES[row["meaning"]]


@for_each("combination", COMBINATIONS)
def test_every_combination_is_the_outcome_of_the_reference_or_a_breach(
    combination, response_of, question_of, request_id
):
    basis, *members = combination
    response = response_of(document_of(*members))
    expected = reading_by_the_reference(basis, *members)
    for api in APIS:
        if expected is not None:
            assert api.read(response, question_of(basis, api.name), request_id) == expected
        else:
            with pytest.raises(ContractBreachError):
                api.read(response, question_of(basis, api.name), request_id)


@pytest.mark.parametrize("basis", Basis)
def test_match_is_only_the_answer_to_what_was_asked(basis, response_of, question_of, request_id):
    other_member = "partyIdMatch" if basis is Basis.NAME else "partyNameMatch"
    members = ("partyNameMatch", "matchedName", "partyIdMatch")
    with refused(ContractBreachError, "apis.contradiction", members=members):
        vop.read(response_of({other_member: "MTCH"}), question_of(basis), request_id)


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        None,
        "MTCH",
        [{"partyNameMatch": "MTCH"}],
        {"data": {"partyNameMatch": "MTCH"}},
        {"party_name_match": "MTCH"},
        {"PartyNameMatch": "MTCH"},
        {"partyNameMatch": ["MTCH"]},
        {"partyNameMatch": True},
        {"partyNameMatch": "CMTC", "matchedName": ["Quillon Mills BV"]},
        {"partyNameMatch": "CMTC", "matched_name": "Quillon Mills BV"},
        {"data": {"verificationReport": {"matched": True}}},
    ],
)
def test_document_of_another_shape_is_a_breach(document, response_of, question_of, request_id):
    for basis in Basis:
        with pytest.raises(ContractBreachError):
            vop.read(response_of(document), question_of(basis), request_id)
