"""The identity provider, on the wire."""

import pytest


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_form_is_answered_with_a_token(sandbox, method):
    reply = sandbox.ask_token(method)
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["Cache-Control"] == "no-store"
    assert set(reply.document) == {"token_type", "expires_in", "access_token"}
    assert reply.document["token_type"] == "Bearer"
    assert reply.document["expires_in"] == 3600


def test_every_token_is_another(sandbox):
    assert sandbox.token() != sandbox.token()


@pytest.mark.parametrize("field", ["client_secret", "client_id", "grant_type", "anything"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_is_taken_from_the_query(sandbox, method, field):
    reply = sandbox.ask_token(method, query=f"?{field}=value")
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")
    assert "value" not in reply.content.decode()
    assert "?" not in reply.document["instance"]


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "c0de0000-0000-4000-8000-000000000009"},
        {"client_secret": "guess"},
        {"client_secret": "gu\u00e9ss"},
        {"scope": "api://payee-verification-production/.default"},
        {"scope": "anything"},
    ],
)
def test_a_client_that_is_not_valid_is_a_401(sandbox, changes):
    reply = sandbox.ask_token(body=sandbox.form(**changes))
    assert (reply.status, reply.document["code"]) == (401, "CLIENT_INVALID")
    assert "guess" not in reply.content.decode()


def test_the_secret_of_one_role_is_no_secret_of_another(sandbox):
    production = (sandbox.folder / "production.client_secret").read_text()
    assert sandbox.ask_token(body=sandbox.form(client_secret=production)).status == 401


@pytest.mark.parametrize(
    "changes",
    [
        {"grant_type": "password"},
        {"grant_type": None},
        {"client_id": None},
        {"client_id": ""},
        {"client_secret": None},
        {"scope": None},
        {"resource": "more"},
    ],
)
def test_a_form_that_breaks_a_rule_is_a_400_that_names_the_field(sandbox, changes):
    reply = sandbox.ask_token(body=sandbox.form(**changes))
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")
    assert next(iter(changes)) in reply.document["detail"]


@pytest.mark.parametrize("body", ["", "nonsense", "a=1&a=2", b"\xff=1"], ids=repr)
def test_a_body_that_is_no_form_is_a_400(sandbox, body):
    assert sandbox.ask_token(body=body or b"").status == 400


def test_a_repeated_field_is_refused(sandbox):
    reply = sandbox.ask_token(body=sandbox.form() + "&scope=other")
    assert reply.status == 400
    assert "repeats" in reply.document["detail"]


def test_json_is_no_form(sandbox):
    reply = sandbox.ask_token(headers={"Content-Type": "application/json"})
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")


def test_another_tenant_is_not_here(sandbox):
    assert sandbox.send("POST", "/other-tenant/oauth2/v2.0/token").status == 404


def test_a_token_is_not_deleted_here(sandbox):
    reply = sandbox.send("DELETE", sandbox.token_path())
    assert reply.status == 405
    assert reply.headers["Allow"] == "GET, POST"
