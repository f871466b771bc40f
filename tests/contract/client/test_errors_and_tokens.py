"""Problem details, the token form and the limits."""

import json
import tomllib
import traceback
from pathlib import Path

import pytest
from tables import for_each

from pipeline.apis.problem_codes import problem_code
from pipeline.frames import TURNED_AWAY_CODES, OwnCode
from pipeline.sections import TEST_SERVER_DAILY_CAP
from schemas.cop import ReasonCode
from schemas.problem import ProblemCode
from schemas.strict import parse
from schemas.token import LIFE_MAX_S, TokenRequest, TokenResponse
from schemas.vop import IdMatch, NameMatch

REFERENCE = tomllib.loads(Path(__file__).parents[1].joinpath("reference.toml").read_text("utf-8"))
PROBLEMS = REFERENCE["problem"]
SECRET = "hunter-2-hunter-2"


def test_problem_codes_are_those_of_the_table():
    assert list(ProblemCode) == [row["code"] for row in PROBLEMS]


@pytest.mark.parametrize("row", PROBLEMS, ids=lambda row: row["code"])
def test_problem_of_the_table_is_read_by_its_code(row, response_of):
    document = {**row, "type": "about:blank", "detail": "after 7 seconds", "instance": "/path"}
    response = response_of(document, status=row["status"])
    assert problem_code(response) == row["code"]


@pytest.mark.parametrize("row", PROBLEMS, ids=lambda row: row["code"])
def test_problem_may_lack_every_other_member(row, response_of):
    assert problem_code(response_of({"code": row["code"]}, status=row["status"])) == row["code"]


@pytest.mark.parametrize("code", ["TIMESTAMP_INVALID", "QUOTA_EXCEEDED", "E1", "ZZ_0_9", "A" * 40])
def test_code_that_the_table_does_not_list_is_passed_on_verbatim(code, response_of):
    assert problem_code(response_of({"code": code}, status=400)) == code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"[]",
        b"{}",
        b'{"code": null}',
        b'{"code": 400}',
        b'{"code": ""}',
        b'{"code": "A"}',
        b'{"code": "format_error"}',
        b'{"code": "FORMAT ERROR"}',
        b'{"code": "FORMAT_ERROR\\n"}',
        b'{"code": "=CMD()"}',
        b'{"code": "<b>"}',
        b'{"code": "12345678"}',
        b'{"code": "\xff"}',
        b'{"code": "FORMAT_ERROR", "code": "SERVER_ERROR"}',
        b'{"code": "FORMAT_ERROR", "status": "400"}',
        b'{"code": "%s"}' % (b"A" * 41),
        b'{"code": "FORMAT_ERROR"',
        '{"code": "\u0410BC"}'.encode(),
    ],
)
def test_text_that_is_not_a_code_is_told_by_its_status(body, response_of):
    assert problem_code(response_of(body, status=502)) == "HTTP_502"


@for_each("code", sorted({*OwnCode, *TURNED_AWAY_CODES, *ReasonCode, *NameMatch, *IdMatch}))
def test_word_that_stands_for_something_else_in_an_outcome_is_no_problem_code(code, response_of):
    assert problem_code(response_of({"code": code}, status=500)) == "HTTP_500"


def test_token_form_has_the_fields_of_the_table():
    request = TokenRequest(
        grant_type="client_credentials", client_id="c", client_secret="s", scope="x/.default"
    )
    rows = REFERENCE["token_field"]
    assert list(request.model_dump()) == [row["name"] for row in rows]
    assert {row["name"]: row["fixed"] for row in rows if "fixed" in row} == {"grant_type": request.grant_type}


def test_secrets_show_in_no_text_of_their_documents():
    request = TokenRequest(
        grant_type="client_credentials", client_id="c", client_secret=SECRET, scope="x/.default"
    )
    response = parse(TokenResponse, json.dumps({"access_token": SECRET, "expires_in": 300}).encode())
    for document in (request, response):
        for text in (repr(document), str(document), document.to_json().decode(), str(document.model_dump())):
            assert SECRET not in text
    assert request.client_secret.get_secret_value() == SECRET
    assert response.access_token.get_secret_value() == SECRET


@pytest.mark.parametrize(
    "document",
    [
        {"access_token": ""},
        {"access_token": [SECRET]},
        {"access_token": SECRET, "expires_in": -1},
        {"access_token": SECRET, "expires_in": "soon"},
        {"access_token": SECRET, "expires_in": "-300"},
        {"access_token": SECRET, "expires_in": True},
        {"token": SECRET},
        SECRET,
    ],
)
def test_refused_token_is_quoted_nowhere(document):
    with pytest.raises(ValueError, match="validation error") as error:
        parse(TokenResponse, json.dumps(document).encode())
    assert SECRET not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(
    ("said", "life_s"),
    [
        ('"3599"', 3599),
        ("3599.0", 3599),
        ("3599.9", 3599),
        ("1e400", LIFE_MAX_S),
        (f"1{'0' * 400}", LIFE_MAX_S),
    ],
)
def test_a_life_as_text_or_of_any_size_is_a_life_of_at_most_a_day(said, life_s):
    document = f'{{"access_token": "x", "expires_in": {said}}}'
    assert parse(TokenResponse, document.encode()).expires_in == life_s


def test_token_lifetime_may_be_unsaid():
    assert parse(TokenResponse, b'{"access_token": "x"}').expires_in is None


def test_cap_of_the_test_server_is_that_of_the_limits_table():
    assert REFERENCE["limits"]["cop_test_server_requests_per_day"] == TEST_SERVER_DAILY_CAP
