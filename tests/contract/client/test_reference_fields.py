"""The tables under "Resources and their fields": every member, its type and its limits."""

import copy
import json
import tomllib
from pathlib import Path

import pytest

from schemas.cop import AccountType, NameVerificationRequest, NameVerificationResponse
from schemas.problem import Problem
from schemas.strict import parse
from schemas.vop import GatewayRequest, SchemeCode, StandardRequest, VerificationOfPayeeResponse

REFERENCE = tomllib.loads(Path(__file__).parents[1].joinpath("reference.toml").read_text("utf-8"))
FIELDS = REFERENCE["field"]
LIMITS = REFERENCE["limits"]

VOP_REQUEST = {
    "party": {
        "name": "Quillon Mills BV",
        "identification": {
            "organisationId": {
                "lei": "529900QUILLONMILLS66",
                "anyBIC": "QUILDEFFXXX",
                "others": [
                    {
                        "identification": "HRB 1234",
                        "schemeNameCode": "COID",
                        "schemeNameProprietary": "Register",
                        "issuer": "Amtsgericht",
                    }
                ],
            }
        },
    },
    "partyAccount": {"iban": "DE89370400440532013000"},
}
MODELS_AND_DOCUMENTS = {
    "cop_request": (
        NameVerificationRequest,
        {
            "data": {
                "schemeName": "SortCodeAccountNumber",
                "accountType": "Personal",
                "identification": "11223312345678",
                "name": "Ada Quillon",
                "secondaryIdentification": "ROLL 7/1",
            }
        },
    ),
    "cop_response": (
        NameVerificationResponse,
        {"data": {"verificationReport": {"matched": False, "reasonCode": "MBAM", "name": "Ada Quillon"}}},
    ),
    "vop_request": (GatewayRequest, VOP_REQUEST),
    "vop_standard_request": (
        StandardRequest,
        {
            **VOP_REQUEST,
            "partyAgent": {"financialInstitutionId": {"bicfi": "QUILDEFFXXX"}},
            "requestingAgent": {"financialInstitutionId": {"bicfi": "MARWGB2LXXX"}},
            "unstructuredRemittanceInformation": ["Invoice 12"],
        },
    ),
    "vop_response": (
        VerificationOfPayeeResponse,
        {"partyNameMatch": "CMTC", "partyIdMatch": "NOAP", "matchedName": "Quillon Mills BV"},
    ),
    "problem": (
        Problem,
        {
            "type": "https://errors.example/format",
            "code": "FORMAT_ERROR",
            "title": "Validation of the request failed",
            "status": 400,
            "detail": "see the reference",
            "instance": "/some/path",
        },
    ),
}
OF_ANOTHER_TYPE = {
    "string": [5, True, ["x"], {"x": "y"}],
    "boolean": ["true", 1, 0, "", "yes"],
    "integer": ["400", 400.5, True],
    "object": ["x", 1, []],
    "array": ["x", 1, {}],
}


def steps(path):
    return [int(part) if part.isdigit() else part for part in path.split(".")]


def parent_of(document, path):
    for step in steps(path)[:-1]:
        document = document[step]
    return document


def changed(document, path, value):
    document = copy.deepcopy(document)
    parent_of(document, path)[steps(path)[-1]] = value
    return document


def without(document, path):
    document = copy.deepcopy(document)
    del parent_of(document, path)[steps(path)[-1]]
    return document


def read(model, document):
    return parse(model, json.dumps(document).encode())


def rows(**having):
    fields = [field for field in FIELDS if all((key in field) == wanted for key, wanted in having.items())]
    return pytest.mark.parametrize("field", fields, ids=lambda field: f"{field['document']}-{field['path']}")


@pytest.mark.parametrize("document", MODELS_AND_DOCUMENTS)
def test_whole_document_is_read_and_written_back_unchanged(document):
    model, example = MODELS_AND_DOCUMENTS[document]
    assert json.loads(read(model, example).to_json()) == example


@rows()
def test_member_has_its_name_on_the_wire(field):
    model, example = MODELS_AND_DOCUMENTS[field["document"]]
    value = parent_of(example, field["path"])[steps(field["path"])[-1]]
    written = json.loads(read(model, example).to_json())
    assert parent_of(written, field["path"])[steps(field["path"])[-1]] == value


@rows()
def test_member_of_another_type_is_refused_not_coerced(field):
    model, example = MODELS_AND_DOCUMENTS[field["document"]]
    for value in OF_ANOTHER_TYPE[field["type"]]:
        with pytest.raises(ValueError, match="validation error"):
            read(model, changed(example, field["path"], value))


@rows(required=True)
def test_required_member_cannot_be_missing_and_others_can(field):
    model, example = MODELS_AND_DOCUMENTS[field["document"]]
    document = without(example, field["path"])
    if field["required"]:
        # The scheme name has one value, which a request that we build need not repeat.
        if field["path"] != "data.schemeName":
            with pytest.raises(ValueError, match="validation error"):
                read(model, document)
    else:
        read(model, document)


@rows(length_max=True)
def test_text_of_the_greatest_length_is_accepted_and_one_more_is_not(field):
    model, example = MODELS_AND_DOCUMENTS[field["document"]]
    start = "MT84" if field["path"].endswith("iban") else ""
    longest = start + "A" * (field["length_max"] - len(start))
    read(model, changed(example, field["path"], longest))
    with pytest.raises(ValueError, match="validation error"):
        read(model, changed(example, field["path"], f"{longest}A"))


@rows(values=True)
def test_closed_set_has_its_values_and_no_other(field):
    model, example = MODELS_AND_DOCUMENTS[field["document"]]
    for value in field["values"]:
        read(model, changed(example, field["path"], value))
    for value in ("", "XXXX", field["values"][0].swapcase(), f"{field['values'][0]} "):
        with pytest.raises(ValueError, match="validation error"):
            read(model, changed(example, field["path"], value))


@pytest.mark.parametrize(
    "identification",
    [
        "1122331234567",
        "112233123456789",
        "1122331234567A",
        "11223312345678\n",
        " 11223312345678",
        "11-22-33123456",
        "\u0661\u0661\u0662\u0662\u0663\u0663\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668",
        "",
    ],
)
def test_cop_identification_is_fourteen_plain_digits_and_nothing_else(identification):
    model, example = MODELS_AND_DOCUMENTS["cop_request"]
    with pytest.raises(ValueError, match="validation error"):
        read(model, changed(example, "data.identification", identification))


@pytest.mark.parametrize("document", ["cop_request", "vop_request", "vop_standard_request"])
def test_request_with_a_member_that_the_reference_does_not_list_is_refused(document):
    model, example = MODELS_AND_DOCUMENTS[document]
    with pytest.raises(ValueError, match="validation error"):
        read(model, {**example, "extra": 1})


@pytest.mark.parametrize("document", ["cop_response", "vop_response", "problem"])
def test_response_may_carry_members_that_we_do_not_know(document):
    model, example = MODELS_AND_DOCUMENTS[document]
    assert read(model, {**example, "extra": {"deep": [1]}}) == read(model, example)


def test_gateway_request_cannot_carry_the_members_of_the_standard_form():
    for member in ("partyAgent", "requestingAgent", "unstructuredRemittanceInformation"):
        document = {**VOP_REQUEST, member: MODELS_AND_DOCUMENTS["vop_standard_request"][1][member]}
        read(StandardRequest, document)
        with pytest.raises(ValueError, match="validation error"):
            read(GatewayRequest, document)


def test_party_without_name_and_identification_is_refused():
    with pytest.raises(ValueError, match="validation error"):
        read(GatewayRequest, {**VOP_REQUEST, "party": {}})


@pytest.mark.parametrize("bic", ["QUILDEFF", "quildeffxxx", "QUILDEFFXXXX", "QU1LD3FFXXX", "QUIL DEFFXX", ""])
def test_agent_has_a_bic_of_eleven_characters(bic):
    model, example = MODELS_AND_DOCUMENTS["vop_standard_request"]
    with pytest.raises(ValueError, match="validation error"):
        read(model, changed(example, "partyAgent.financialInstitutionId.bicfi", bic))


def test_enums_have_the_values_of_the_tables_and_no_others():
    values = {field["path"].rpartition(".")[2]: field["values"] for field in FIELDS if "values" in field}
    assert list(SchemeCode) == values["schemeNameCode"]
    assert list(AccountType) == values["accountType"]


def test_limits_of_the_two_tables_agree():
    lengths = {field["path"]: field["length_max"] for field in FIELDS if "length_max" in field}
    assert lengths == {
        "data.name": LIMITS["cop_name_length_max"],
        "data.secondaryIdentification": LIMITS["cop_secondary_identification_length_max"],
        "partyAccount.iban": LIMITS["iban_length_max"],
    }
