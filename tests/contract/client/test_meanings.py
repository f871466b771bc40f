"""What a code tells the payer: what to do next, and the very words of the page on outcomes."""

import re
from pathlib import Path

import pytest

from pipeline.apis import Basis, cop, own_codes, vop
from pipeline.frames import QUESTION
from pipeline.reports.explanations import STEPS, explain
from pipeline.wording import Sentence
from schemas.outcomes import Action

PAGE = Path(__file__).parents[3].joinpath("docs", "outcomes.md").read_text("utf-8")
APIS = {"cop": cop.API, "vop gateway": vop.GATEWAY, "vop standard": vop.standard("MARWGB2LXXX")}
COP_CODES = {
    Action.PAY: {"MTCH"},
    Action.FIX_NAME: {"MBAM"},
    Action.FIX_ACCOUNT_TYPE: {"BANM", "PANM"},
    Action.FIX_NAME_AND_ACCOUNT_TYPE: {"BAMM", "PAMM"},
    Action.CHECK_ACCOUNT_DETAILS: {"AC01", "NOROUTE", "FOURHUN"},
    Action.ADD_SECONDARY_REFERENCE: {"IVCR", "SECMISS"},
    Action.GET_NEW_ACCOUNT_DETAILS: {"CASS"},
    Action.ASK_PAYEE: {"ANNM", "OPTO", "ACNS", "SCNS"},
    Action.RETRY_LATER: {"HTTPERR"},
}
VOP_CODES = {
    Basis.NAME: {Action.PAY: {"MTCH"}, Action.FIX_NAME: {"CMTC"}, Action.ASK_PAYEE: {"NMTC", "NOAP"}},
    Basis.IDENTIFICATION: {Action.PAY: {"MTCH"}, Action.ASK_PAYEE: {"NMTC", "NOAP"}},
}


def codes_by_action(api, basis):
    codes = {}
    for (asked_by, code), meaning in api.meanings.items():
        if asked_by is basis:
            codes.setdefault(meaning.action, set()).add(code)
    return codes


def rows_of_the_page(part):
    """The cells of each row of a generated table, without its head and without where they lead to."""
    _, _, rest = re.sub(r"\[(`\w+`)\]\([^)]*\)", r"\1", PAGE).partition(f"<!-- generated: {part} -->")
    lines = [line for line in rest.partition("<!-- end -->")[0].splitlines() if line.startswith("|")]
    return [tuple(cell.strip().strip("`") for cell in line.strip("|").split("|")) for line in lines[2:]]


def test_every_code_of_cop_leads_to_its_action():
    assert codes_by_action(cop.API, Basis.NAME) == COP_CODES


@pytest.mark.parametrize("declared", [vop.GATEWAY_DECLARATION, vop.STANDARD_DECLARATION])
def test_an_identification_is_sent_whole(declared):
    fields = {field for field in QUESTION if field == "lei" or field.startswith("organisation_")}
    assert len(fields) == 5
    assert fields <= declared.takes


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ({"takes": frozenset({"shoe_size"})}, "vop_gateway: takes what no question has"),
        ({"takes": frozenset({"api"})}, "vop_gateway: takes what no question has"),
        ({"takes": frozenset({"account"})}, "vop_gateway: takes what no question has"),
        ({"asked": {Basis.NAME: "VoP"}}, "vop_gateway: asked by what?"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_a_mistake_of_ours(mistake, said):
    vop.GATEWAY_DECLARATION._replace(takes=QUESTION.keys() - {"api", "account"}).check()
    with pytest.raises(AssertionError, match=re.escape(said)):
        vop.GATEWAY_DECLARATION._replace(**mistake).check()


@pytest.mark.parametrize("basis", Basis)
@pytest.mark.parametrize("api", ["vop gateway", "vop standard"])
def test_every_code_of_vop_leads_to_its_action(api, basis):
    assert codes_by_action(APIS[api], basis) == VOP_CODES[basis]


@pytest.mark.parametrize(
    ("part", "api", "basis"),
    [
        ("cop-codes", "cop", Basis.NAME),
        *(("vop-name-codes", api, Basis.NAME) for api in ("vop gateway", "vop standard")),
        *(("vop-identification-codes", api, Basis.IDENTIFICATION) for api in ("vop gateway", "vop standard")),
    ],
)
def test_payer_is_told_what_the_page_on_outcomes_says(part, api, basis):
    told = [
        (code, meaning.outcome, meaning.action, str(meaning.reason))
        for (asked_by, code), meaning in APIS[api].meanings.items()
        if asked_by is basis
    ]
    assert told == rows_of_the_page(part)


def test_codes_of_the_other_account_type_tell_which_one_it_is():
    """API reference, CoP reason codes: a business account for BANM and BAMM, else a personal one."""
    said = {code.value: account_type.value for code, account_type in cop.ACCOUNT_TYPES_FOUND.items()}
    assert said == {"BANM": "Business", "BAMM": "Business", "PANM": "Personal", "PAMM": "Personal"}


@pytest.mark.parametrize("code", ["BAMM", "PAMM"])
def test_a_close_name_at_an_account_of_the_other_type_is_judged_in_both_ways(code):
    assert APIS["cop"].meanings[Basis.NAME, code].advice == Sentence("explain.judge_names_and_type")


@pytest.mark.parametrize("code", sorted({code for api in APIS.values() for _, code in api.meanings}))
def test_a_code_of_an_api_is_explained_with_each_of_its_meanings(code):
    meanings = [api.meanings[key] for api in APIS.values() for key in api.meanings if key[1] == code]
    cases = explain(code).cases
    assert {str(case.not_said) for case in cases} == {str(meaning.not_said) for meaning in meanings}
    assert {str(case.to_do) for case in cases} == {
        str(meaning.advice or STEPS[meaning.action]) for meaning in meanings
    }


@pytest.mark.parametrize("code", sorted({str(code) for _, code in own_codes.MEANINGS}))
def test_a_code_without_an_answer_is_explained_with_what_to_do(code):
    told = {str(case.to_do) for case in explain(code).cases}
    assert {str(meaning.advice) for (_, own), meaning in own_codes.MEANINGS.items() if own == code} <= told
