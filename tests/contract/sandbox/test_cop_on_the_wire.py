"""The CoP Gateway of the sandbox, row by row of the API reference."""

import json
import re
import uuid

import pytest

PATH = "/copgateway/v1.0/confirmation-payee/name-verification"
SANDBOX = f"/sandbox{PATH}"
CORRELATION = "x-fapi-interaction-id"
PROBLEM_MEMBERS = {"type", "code", "title", "status", "detail", "instance"}


def body(**changes):
    data = {
        "schemeName": "SortCodeAccountNumber",
        "accountType": "Personal",
        "identification": "00112200012345",
        "name": "Avery Thornwood",
        **changes,
    }
    return {"data": {key: value for key, value in data.items() if value is not None}}


def assert_problem(reply, status, code, instance=SANDBOX):
    assert reply.status == status
    assert reply.headers["Content-Type"] == "application/json"
    assert set(reply.document) == PROBLEM_MEMBERS
    assert reply.document["status"] == status
    assert reply.document["code"] == code
    assert reply.document["instance"] == instance


@pytest.mark.parametrize(
    ("changes", "report"),
    [
        ({}, {"matched": True}),
        ({"name": "Averi Thornwood"}, {"matched": False, "reasonCode": "MBAM", "name": "Avery Thornwood"}),
        ({"name": "Rowan Blackmere"}, {"matched": False, "reasonCode": "ANNM"}),
        ({"identification": "00112299999999"}, {"matched": False, "reasonCode": "AC01"}),
        ({"accountType": "Business"}, {"matched": False, "reasonCode": "PANM"}),
        (
            {"accountType": "Business", "name": "Averi Thornwood"},
            {"matched": False, "reasonCode": "PAMM", "name": "Avery Thornwood"},
        ),
        (
            {"identification": "30120000700700", "name": "Rookwater & Sons Ltd"},
            {"matched": False, "reasonCode": "BANM"},
        ),
        (
            {"identification": "30120000700700", "name": "Rookwater and Son"},
            {"matched": False, "reasonCode": "BAMM", "name": "Rookwater & Sons Ltd"},
        ),
        ({"secondaryIdentification": "ROLL 7"}, {"matched": True}),
    ],
)
def test_a_dummy_account_has_its_known_outcome(sandbox, token, changes, report):
    reply = sandbox.check(SANDBOX, body(**changes), token=token)
    assert reply.status == 200
    assert reply.document == {"data": {"verificationReport": report}}


def test_the_response_headers_are_those_of_the_reference(sandbox, token):
    correlation_id = str(uuid.uuid4()).upper()
    reply = sandbox.check(SANDBOX, body(), token=token, **{CORRELATION: correlation_id})
    standard = {"Content-Type", "Content-Length", "Date", "Server"}
    assert set(reply.headers) == {CORRELATION, "X-Response-Timestamp"} | standard
    assert reply.headers[CORRELATION] == correlation_id
    assert reply.headers["Content-Type"] == "application/json"
    stamp = reply.headers["X-Response-Timestamp"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp)


def test_an_error_echoes_the_correlation_id_too(sandbox):
    correlation_id = str(uuid.uuid4())
    reply = sandbox.check(SANDBOX, body(), **{CORRELATION: correlation_id})
    assert_problem(reply, 401, "CLIENT_INVALID")
    assert reply.headers[CORRELATION] == correlation_id
    assert "X-Response-Timestamp" in reply.headers


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schemeName": "IBAN"}, "schemeName"),
        ({"schemeName": None}, "schemeName"),
        ({"accountType": "personal"}, "accountType"),
        ({"accountType": None}, "accountType"),
        ({"identification": "0011220001234"}, "identification"),
        ({"identification": "001122000123456"}, "identification"),
        ({"identification": "0011220001234X"}, "identification"),
        ({"identification": "00112200012345\n"}, "identification"),
        ({"identification": 12345678901234}, "identification"),
        ({"name": "x" * 141}, "name"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"secondaryIdentification": "x" * 141}, "secondaryIdentification"),
        ({"nickname": "Avery"}, "nickname"),
    ],
)
def test_a_member_that_breaks_a_rule_is_named_and_not_quoted(sandbox, token, changes, named):
    reply = sandbox.check(SANDBOX, body(**changes), token=token)
    assert_problem(reply, 400, "FORMAT_ERROR")
    assert f"data.{named}" in reply.document["detail"]
    assert "Thornwood" not in reply.content.decode()
    assert "0011220001234" not in reply.content.decode()


def test_the_longest_name_is_accepted(sandbox, token):
    reply = sandbox.check(SANDBOX, body(name="é" * 140, secondaryIdentification="x" * 140), token=token)
    assert reply.status == 200


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"data":{}}',
        b"\xff\xfe",
        json.dumps(body()).replace('"name"', '"name": "Rowan Blackmere", "name"').encode(),
        b"[" * 50_000,
        json.dumps(body(name="x" * 70_000)).encode(),
        json.dumps(body()).replace("}}", ', "secondaryIdentification": null}}').encode(),
    ],
    ids=["empty", "cut", "null", "array", "bare", "not-utf8", "repeated-key", "deep", "long", "member-null"],
)
def test_a_body_that_is_not_one_clear_document_is_refused(sandbox, token, content):
    assert_problem(sandbox.check(SANDBOX, content, token=token), 400, "FORMAT_ERROR")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({CORRELATION: None}, CORRELATION),
        ({CORRELATION: "not-a-uuid"}, CORRELATION),
        ({CORRELATION: "{0c037afb-9429-4570-b897-02bb0580326a}"}, CORRELATION),
        ({"X_Request_Timestamp": None}, "X-Request-Timestamp"),
        ({"X_Request_Timestamp": "2026-11-20T10:15:30Z"}, "X-Request-Timestamp"),
        ({"X_Request_Timestamp": "2026-11-20T10:15:30.123+00:00"}, "X-Request-Timestamp"),
        ({"X_Request_Timestamp": "2026-11-20 10:15:30.123Z"}, "X-Request-Timestamp"),
        ({"X_Request_Timestamp": "2026-13-20T10:15:30.123Z"}, "X-Request-Timestamp"),
        ({"Content_Type": "text/plain"}, "Content-Type"),
        ({"Content_Type": None}, "Content-Type"),
        ({"Content_Encoding": "gzip"}, "Content-Encoding"),
    ],
)
def test_a_header_that_breaks_a_rule_is_named(sandbox, token, changes, named):
    reply = sandbox.check(SANDBOX, body(), token=token, **changes)
    assert_problem(reply, 400, "FORMAT_ERROR")
    assert named in reply.document["detail"]


def test_a_correlation_id_that_is_no_uuid_is_not_echoed(sandbox, token):
    reply = sandbox.check(SANDBOX, body(), token=token, **{CORRELATION: "not-a-uuid"})
    assert CORRELATION not in reply.headers


def test_a_payee_may_be_called_null(sandbox, token):
    assert sandbox.check(SANDBOX, body(name="null"), token=token).status == 200


def test_json_with_a_charset_is_json(sandbox, token):
    reply = sandbox.check(SANDBOX, body(), token=token, Content_Type="application/json; charset=utf-8")
    assert reply.status == 200


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", "Bearer ", "Basic wrong", "wrong"], ids=repr)
def test_no_answer_without_a_token(sandbox, authorization):
    reply = sandbox.check(SANDBOX, body(), Authorization=authorization)
    assert_problem(reply, 401, "CLIENT_INVALID")
    assert reply.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("role", ["sandbox", "test", "production"])
def test_a_token_is_good_at_one_server_only(sandbox, role):
    token = sandbox.token(role)
    for other in ("sandbox", "test", "production"):
        reply = sandbox.check(f"/{other}{PATH}", body(), token=token)
        assert reply.status == (200 if other == role else 401)


def test_an_expired_token_is_refused(serving, tmp_path):
    with serving(tmp_path / "folder", token_life_s=0) as expiring:
        reply = expiring.check(SANDBOX, body(), token=expiring.token())
    assert_problem(reply, 401, "CLIENT_INVALID")
    assert "expired" in reply.document["detail"]


@pytest.mark.parametrize(
    "path", ["/", PATH, f"{SANDBOX}/", "/test/vopgateway/v1/payee-verifications", "/live" + PATH]
)
def test_there_is_nothing_at_another_path(sandbox, token, path):
    assert_problem(sandbox.check(path, body(), token=token), 404, "NOT_FOUND", path)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_a_check_is_a_post(sandbox, method):
    reply = sandbox.send(method, SANDBOX)
    assert_problem(reply, 405, "METHOD_NOT_ALLOWED")
    assert reply.headers["Allow"] == "POST"


def test_the_network_answers_codes_that_the_sandbox_does_not(sandbox):
    no_bank = body(identification="99000000000001")
    reply = sandbox.check(f"/production{PATH}", no_bank, token=sandbox.token("production"))
    assert reply.document["data"]["verificationReport"] == {"matched": False, "reasonCode": "NOROUTE"}


def test_the_instance_is_the_path_without_its_query(sandbox):
    assert_problem(sandbox.check(SANDBOX + "?name=x", body()), 401, "CLIENT_INVALID")
