"""Endpoints and request headers: what we send, to the byte."""

import json
import re
import tomllib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

import pytest

from pipeline.apis import cop, vop
from schemas.outcomes import ApiName
from schemas.strict import timestamp
from schemas.vop import SchemeCode

REFERENCE = tomllib.loads(Path(__file__).parents[1].joinpath("reference.toml").read_text("utf-8"))
ENDPOINTS = REFERENCE["endpoint"]
TIME = "2030-01-02T03:04:05.678Z"
IBAN = "DE89370400440532013000"
LEI = "529900QUILLONMILLS66"
APIS = {"cop": cop.API, "vop_gateway": vop.GATEWAY, "vop_standard": vop.standard("MARWGB2LXXX")}


@pytest.fixture
def sent(check_of, request_id):
    """Build the request of one question to an API."""

    def build(api, **said):
        usual = {} if api == "cop" else {"api": ApiName(api), "account": IBAN}
        if api == "vop_standard":
            usual["responder_bic"] = "QUILDEFFXXX"
        return APIS[api].request(check_of(**{**usual, **said}), request_id, TIME)

    return build


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row["api"])
def test_request_goes_to_the_path_of_the_table(row, sent):
    request = sent(row["api"])
    assert (request.method, str(request.url)) == ("POST", row["path"])


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row["api"])
def test_request_has_the_headers_of_the_table_and_no_others(row, sent, request_id):
    request = sent(row["api"])
    assert request.headers == {
        "Content-Type": "application/json",
        "Content-Length": str(len(request.read())),
        row["correlation_header"]: request_id,
        row["time_header"]: TIME,
    }
    assert UUID(request_id).version == 4


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row["api"])
def test_responder_has_the_wait_of_the_limits_table(row):
    assert APIS[row["api"]].name == row["api"]
    assert APIS[row["api"]].responder_wait_s == row["responder_wait_s"]


def test_cop_body_is_exactly_this(sent):
    assert sent("cop").read() == (
        b'{"data":{"schemeName":"SortCodeAccountNumber","accountType":"Personal",'
        b'"identification":"11223312345678","name":"Ada Quillon"}}'
    )


def test_cop_body_with_secondary_reference_is_exactly_this(sent):
    body = sent("cop", account_type="Business", secondary_reference="ROLL 7/1").read()
    assert json.loads(body) == {
        "data": {
            "schemeName": "SortCodeAccountNumber",
            "accountType": "Business",
            "identification": "11223312345678",
            "name": "Ada Quillon",
            "secondaryIdentification": "ROLL 7/1",
        }
    }


@pytest.mark.parametrize(
    "name", ["@Home Ltd", "+Plus Ltd", "=Objekt GmbH", "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627"]
)
def test_name_is_sent_as_entered(sent, name):
    assert json.loads(sent("cop", name=name).read())["data"]["name"] == name
    assert json.loads(sent("vop_gateway", name=name).read())["party"]["name"] == name
    assert json.loads(sent("vop_standard", name=name).read())["party"]["name"] == name


def test_leading_zeros_survive(sent):
    assert b'"identification":"00112200000001"' in sent("cop", account="00112200000001").read()


def test_gateway_body_by_name_is_exactly_this(sent):
    assert sent("vop_gateway").read() == (
        b'{"party":{"name":"Ada Quillon"},"partyAccount":{"iban":"DE89370400440532013000"}}'
    )


def test_standard_body_names_both_banks(sent):
    assert json.loads(sent("vop_standard", remittance="Invoice 12").read()) == {
        "party": {"name": "Ada Quillon"},
        "partyAccount": {"iban": IBAN},
        "partyAgent": {"financialInstitutionId": {"bicfi": "QUILDEFFXXX"}},
        "requestingAgent": {"financialInstitutionId": {"bicfi": "MARWGB2LXXX"}},
        "unstructuredRemittanceInformation": ["Invoice 12"],
    }
    assert b"unstructuredRemittanceInformation" not in sent("vop_standard").read()


@pytest.mark.parametrize("api", ["vop_gateway", "vop_standard"])
def test_question_by_identification_has_no_name(api, sent):
    assert json.loads(sent(api, name=None, lei=LEI).read())["party"] == {
        "identification": {"organisationId": {"lei": LEI}}
    }


@pytest.mark.parametrize("scheme", [None, *SchemeCode])
def test_other_identification_has_its_scheme_and_issuer(scheme, sent):
    said = {"organisation_id": "HRB 1234", "organisation_id_scheme": scheme, "organisation_id_issuer": "X"}
    party = json.loads(sent("vop_gateway", name=None, organisation_bic="QUILDEFFXXX", **said).read())["party"]
    other = {"identification": "HRB 1234", "schemeNameCode": scheme, "issuer": "X"}
    assert party["identification"]["organisationId"] == {
        "anyBIC": "QUILDEFFXXX",
        "others": [{key: value for key, value in other.items() if value is not None}],
    }


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "name",
    ["Zo\u00eb \u0141uk\u00e1\u0161", 'O\'Marrow & S\u00f6hne "K\u00f8b"', "\\u0041 </script>", "\U0001f3e6"],
)
def test_name_arrives_as_it_was_written(api, name, sent):
    body = json.loads(sent(api, name=name).read().decode("utf-8"))
    assert (body["data"] if api == "cop" else body["party"])["name"] == name


def test_question_that_lacks_what_its_api_needs_is_a_mistake_of_ours(sent):
    with pytest.raises(AssertionError, match="a CoP check has a name"):
        sent("cop", name=None)
    with pytest.raises(AssertionError, match="and an account type"):
        sent("cop", account_type=None)
    with pytest.raises(AssertionError, match="has the responder's BIC"):
        sent("vop_standard", responder_bic=None)


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), "2030-01-02T03:04:05.000Z"),
        (datetime(2030, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC), "2030-01-02T03:04:05.999Z"),
        (datetime(2030, 7, 1, 0, 30, tzinfo=timezone(timedelta(hours=1))), "2030-06-30T23:30:00.000Z"),
    ],
)
def test_time_is_utc_with_milliseconds(moment, written):
    assert timestamp(moment) == written
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z", timestamp(moment))
