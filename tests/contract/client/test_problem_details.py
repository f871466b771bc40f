"""What of a server's own words is kept, and what is not."""

import json

import httpx
import pytest

from pipeline.apis.problem_details import problem_detail
from pipeline.errors import CredentialsError
from pipeline.transport.masking import DETAIL_CHARS_MAX, with_detail
from pipeline.wording import Sentence


def saying(detail, **members):
    document = {"code": "FORMAT_ERROR", "status": 400, "detail": detail, **members}
    return httpx.Response(400, content=json.dumps(document).encode())


def test_the_detail_is_kept_as_the_server_says_it():
    assert problem_detail(saying("data.name: must not be blank")) == "data.name: must not be blank"
    assert problem_detail(saying(None, title="Forbidden")) == "Forbidden"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"detail": 7}', b'{"detail":"a","detail":"b"}', b"{}"]
)
def test_where_there_is_none_there_is_none(body):
    assert problem_detail(httpx.Response(403, content=body)) == ""


@pytest.mark.parametrize(
    ("detail", "kept"),
    [
        ("account 12345678 unknown", "account *** unknown"),
        ("00-11-22 87654321 unknown", "*** unknown"),
        ("DE89 3704 0044 0532 0130 00 is closed", "*** is closed"),
        ("iban de89370400440532013000, try later", "iban ***, try later"),
        ("refused at 12 minutes past the hour", "refused at 12 minutes past the hour"),
        ("HTTP 403 after 3 tries, see RFC 9110", "HTTP 403 after 3 tries, see RFC 9110"),
    ],
)
def test_numbers_of_accounts_are_masked_whosever_they_are(detail, kept):
    said = problem_detail(saying(detail))
    assert said.startswith(kept)
    assert not any(part in said for part in ("12345678", "87654321", "3704", "0532"))


@pytest.mark.parametrize(
    "detail",
    [
        "no permission for Ada Exemplar",
        "no permission for EXEMPLAR, ada",
        "no permission for Ada  Exemplar of roll 77/X",
        "no permission for A\u0064a\nExemplar",
    ],
)
def test_what_was_asked_about_is_masked(check_of, detail):
    check = check_of(name="Ada Exemplar", secondary_reference="roll 77/X")
    said = problem_detail(saying(detail), check)
    assert said.startswith("no permission for ***")
    assert not any(part in said.casefold() for part in ("ada", "exemplar", "77/x"))


@pytest.mark.parametrize(
    "detail",
    [
        "the token eyJ0eXAiOiJKV1QiLCJhbGciOi.eyJhdWQiOiJ4.c2ln has expired",
        "the token Bearer abc-7 has expired",
        "the token 9f8e7d6c5b4a3f2e1d0c9b8a has expired",
    ],
)
def test_a_token_that_is_quoted_is_masked(detail):
    assert problem_detail(saying(detail)) == "the token *** has expired"


def test_it_is_short_and_printable():
    said = problem_detail(saying("\x1b[2J\u202e beware " + "x" * 5_000))
    assert len(said) == DETAIL_CHARS_MAX
    assert said.isprintable()
    assert said.startswith("\\x1b[2J\\u202e beware xxx")


def test_a_sentence_goes_on_with_what_the_server_says():
    error = CredentialsError(Sentence("jobs.part_unusable", problem="HTTP 403"))
    assert str(with_detail(error, "no permission")) == 'HTTP 403; it says: "no permission"'
    assert str(with_detail(error, "")) == "HTTP 403"
