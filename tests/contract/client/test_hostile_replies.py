"""Replies that two readers could read differently, and replies that are not for us: never a match."""

import json
import traceback

import httpx
import pytest
from refusals import refused

from pipeline.apis import ContractBreachError, Echo, MisdirectedError, cop, echo_of, vop
from pipeline.transport import UNREAD
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

SECRET_NAME = "Balthasar Quillon"
COP_MATCH = {"data": {"verificationReport": {"matched": True}}}
VOP_MATCH = {"partyNameMatch": "MTCH"}
COP_TEXT = json.dumps(COP_MATCH)
VOP_TEXT = json.dumps(VOP_MATCH)


@pytest.fixture(params=["cop", "vop_gateway", "vop_standard"])
def api_name(request):
    return request.param


@pytest.fixture
def read_match(api_name, response_of, check_of, request_id):
    """Read a change of an otherwise perfect match: change(text of the document) -> bytes."""

    def read(change=str.encode, **headers):
        if api_name == "cop":
            return cop.read(response_of(change(COP_TEXT), **headers), check_of(), request_id)
        check = check_of(api=ApiName.VOP_GATEWAY, account="DE89370400440532013000")
        return vop.read(response_of(change(VOP_TEXT), **headers), check, request_id)

    return read


def test_unchanged_it_is_a_match(read_match):
    assert read_match().code == "MTCH"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda _: b" \r\n\t", id="blank"),
        pytest.param(lambda _: b"null", id="null"),
        pytest.param(lambda text: text[:-1].encode(), id="cut off"),
        pytest.param(lambda text: text.encode() + b"}", id="one brace more"),
        pytest.param(lambda text: text.encode() + text.encode(), id="twice"),
        pytest.param(lambda text: text.encode() + b"\x00", id="trailing NUL"),
        pytest.param(lambda text: b"\x00" + text.encode(), id="leading NUL"),
        pytest.param(lambda text: b"\xef\xbb\xbf" + text.encode(), id="byte order mark"),
        pytest.param(lambda text: text.encode("utf-16"), id="UTF-16 with mark"),
        pytest.param(lambda text: text.encode("utf-16-le"), id="UTF-16 without mark"),
        pytest.param(lambda text: text.encode("utf-32"), id="UTF-32"),
        pytest.param(lambda text: b")]}',\n" + text.encode(), id="guard prefix"),
        pytest.param(lambda text: f"callback({text})".encode(), id="JSONP"),
        pytest.param(lambda text: text.replace('"', "'").encode(), id="single quotes"),
        pytest.param(lambda text: f"{text} // yes".encode(), id="comment"),
        pytest.param(lambda text: f"{text[:-1]},}}".encode(), id="trailing comma"),
        pytest.param(lambda _: b"<html>Sign in</html>", id="a page"),
    ],
)
def test_body_that_is_not_one_json_document_in_utf_8_is_a_breach(change, read_match, api_name):
    model = "NameVerificationResponse" if api_name == "cop" else "VerificationOfPayeeResponse"
    with refused(ContractBreachError, "apis.not_of_model", model=model):
        read_match(change)


@pytest.mark.parametrize(
    "member",
    [
        '"x": NaN',
        '"x": Infinity',
        '"x": -Infinity',
        '"x": 01',
        '"x": +1',
        '"x": .5',
        '"x": 0x1',
        '"x": "\\ud800"',
        '"x": "\\udc00\\ud800"',
        '"x": "\\x41"',
        '"x": "a\tb"',
        f'"x": {"9" * 5000}',
        f'"x": {"[" * 100_000}{"]" * 100_000}',
        '"x": {}' * 2,
        '"x": 1, "x": 1',
        '"x": 1, "\\u0078": 2',
        '"x": {"deep": [{"y": 1, "y": 1}]}',
    ],
    ids=lambda member: member[:30],
)
def test_unknown_member_that_two_readers_could_read_differently_is_a_breach(member, read_match):
    with pytest.raises(ContractBreachError):
        read_match(lambda text: f"{text[:-1]}, {member}}}".encode())


@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_bytes_that_are_not_utf_8_are_a_breach(bad, read_match):
    with pytest.raises(ContractBreachError):
        read_match(lambda text: text[:-1].encode() + b', "x": "' + bad + b'"}')


@pytest.mark.parametrize(
    "body",
    [
        '{"data": {"verificationReport": {"matched": false, "matched": true}}}',
        '{"data": {"verificationReport": {"matched": true, "matched": true}}}',
        '{"data": {"verificationReport": {"matched": false, "m\\u0061tched": true}}}',
        '{"data": {"verificationReport": {"matched": true}, "verificationReport": {"matched": true}}}',
        '{"data": {}, "data": {"verificationReport": {"matched": true}}}',
    ],
)
def test_repeated_key_of_cop_is_a_breach_whatever_it_says(body, response_of, check_of, request_id):
    with pytest.raises(ContractBreachError):
        cop.read(response_of(body.encode()), check_of(), request_id)


@pytest.mark.parametrize(
    "body",
    [
        '{"partyNameMatch": "NMTC", "partyNameMatch": "MTCH"}',
        '{"partyNameMatch": "MTCH", "partyNameMatch": "MTCH"}',
        '{"partyNameMatch": "NMTC", "partyN\\u0061meMatch": "MTCH"}',
    ],
)
def test_repeated_key_of_vop_is_a_breach_whatever_it_says(body, response_of, check_of, request_id):
    check = check_of(api=ApiName.VOP_GATEWAY, account="DE89370400440532013000")
    with pytest.raises(ContractBreachError):
        vop.read(response_of(body.encode()), check, request_id)


def test_white_space_around_the_document_means_nothing(read_match):
    assert read_match(lambda text: f"\r\n\t {text} \n".encode()).code == "MTCH"


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/html",
        "text/json",
        "application/jsonp",
        "application/problem+json",
        "application/octet-stream",
        "charset=utf-8; application/json",
        "application/json, text/html",
    ],
)
def test_body_that_is_not_declared_json_is_a_breach(content_type, read_match):
    with refused(ContractBreachError, "apis.not_json"):
        read_match(content_type=content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        " application/json ; charset=utf-8",
    ],
)
def test_declaration_of_json_may_name_its_charset(content_type, read_match):
    assert read_match(content_type=content_type).code == "MTCH"


def test_body_that_was_not_read_is_a_breach_and_says_why(response_of, check_of, request_id):
    response = response_of(COP_TEXT.encode())
    response.extensions[UNREAD] = Sentence("transport.body_oversized")
    with refused(ContractBreachError, "transport.body_oversized"):
        cop.read(response, check_of(), request_id)


@pytest.mark.parametrize(
    "echo", [None, "", "null", "00000000-0000-4000-8000-000000000000", "{id}, {id}0", "{id}0"]
)
def test_reply_without_our_correlation_id_is_for_somebody_else(echo, read_match, api_name, request_id):
    header = "x-fapi-interaction-id" if api_name == "cop" else "X-Request-ID"
    sent_back = None if echo is None else echo.format(id=request_id)
    with refused(MisdirectedError, "apis.other_correlation_id", header=header):
        read_match(x_fapi_interaction_id=sent_back, x_request_id=sent_back)


def test_echo_may_be_in_upper_case_as_uuids_are_compared_without_case(read_match, request_id):
    echo = f" {request_id.upper()} "
    assert read_match(x_fapi_interaction_id=echo, x_request_id=echo).code == "MTCH"


def test_each_api_echoes_in_its_own_header(response_of, check_of, request_id):
    with pytest.raises(MisdirectedError):
        cop.read(response_of(COP_MATCH, x_fapi_interaction_id=None), check_of(), request_id)
    with pytest.raises(MisdirectedError):
        vop.read(response_of(VOP_MATCH, x_request_id=None), check_of(api=ApiName.VOP_GATEWAY), request_id)


def test_misdirected_reply_is_told_before_its_body_is_looked_at(response_of, check_of, request_id):
    with pytest.raises(MisdirectedError):
        cop.read(response_of(b"?", x_fapi_interaction_id="?"), check_of(), request_id)


@pytest.mark.parametrize(
    "body",
    [
        f'{{"{SECRET_NAME}": 1, "{SECRET_NAME}": 2}}',
        f'{{"data": {{"verificationReport": {{"matched": "{SECRET_NAME}"}}}}}}',
        f'{{"data": {{"verificationReport": {{"matched": false, "reasonCode": "{SECRET_NAME}"}}}}}}',
        f'{{"data": {{"verificationReport": {{"matched": true, "name": "{SECRET_NAME}"}}}}}}',
        f'{{"data": "{SECRET_NAME}',
    ],
)
def test_breach_quotes_nothing_of_the_reply(body, response_of, check_of, request_id):
    with pytest.raises(ContractBreachError) as breach:
        cop.read(response_of(body.encode()), check_of(), request_id)
    assert SECRET_NAME not in "".join(traceback.format_exception(breach.value))


def test_a_correlation_id_that_is_sent_twice_is_one_echo(read_match, request_id):
    twice = f"{request_id}, {request_id.upper()}"
    assert read_match(x_fapi_interaction_id=twice, x_request_id=twice).code == "MTCH"


@pytest.mark.parametrize(
    ("sent", "is_about"),
    [
        ({}, Echo.MISSING),
        ({"X-Request-Id": " , "}, Echo.MISSING),
        ({"X-Request-Id": "A1B2, a1b2 "}, Echo.OURS),
        ({"X-Request-Id": "c3d4"}, Echo.OTHER),
        ({"X-Request-Id": "a1b2, c3d4"}, Echo.OTHER),
    ],
)
def test_reply_without_our_id_is_told_from_one_with_anothers(sent, is_about):
    assert echo_of(httpx.Response(200, headers=sent), "X-Request-Id", "a1b2") is is_about


def test_breach_carries_the_rule_that_was_broken():
    rule = Sentence("apis.not_json")
    assert (ContractBreachError(rule).rule, ContractBreachError(rule).args) == (rule, (rule,))
