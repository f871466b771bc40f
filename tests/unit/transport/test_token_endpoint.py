from urllib.parse import parse_qs

import anyio
import pytest
from aiohttp import web
from refusals import refused
from structlog.testing import capture_logs

from pipeline.errors import ConfigurationError, CredentialsError, ProtocolError, TlsError
from pipeline.transport.tls import client_context
from pipeline.transport.token_endpoint import TokenEndpoint
from pipeline.transport.tokens import TokenUnavailable
from schemas.token import TokenRequest

REQUEST = TokenRequest(
    grant_type="client_credentials", client_id="the client", client_secret="h&sh=%", scope="s/.default"
)
GOOD = {"access_token": "sesame", "token_type": "Bearer", "expires_in": 3599}


def ask(loopback, handler, **options):
    async def main():
        async with loopback.serving(handler) as port:
            context = client_context(ca_file=loopback.authority.ca_file)
            url = f"https://127.0.0.1:{port}/tenant/oauth2/v2.0/token"
            return await TokenEndpoint(url, context=context, **options)(REQUEST)

    return anyio.run(main)


def saying(status=200, **reply):
    async def handler(_request):
        return web.json_response(status=status, **reply)

    return handler


def refusal(error, loopback, handler, **options):
    with pytest.raises(error) as caught:
        ask(loopback, handler, **options)
    text = str(caught.value)
    assert "token endpoint 127.0.0.1" in text
    assert "h&sh" not in text
    assert "sesame" not in text
    return text


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_form_travels_in_the_body_whatever_the_method(loopback, method):
    seen = {}

    async def handler(request):
        seen.update(method=request.method, path=request.path_qs, form=parse_qs(await request.text()))
        seen.update(content_type=request.headers["Content-Type"])
        return web.json_response(GOOD)

    answer = ask(loopback, handler, method=method)

    assert answer.access_token.get_secret_value() == "sesame"
    assert answer.expires_in == 3599
    assert seen == {
        "method": method,
        "path": "/tenant/oauth2/v2.0/token",
        "content_type": "application/x-www-form-urlencoded",
        "form": {
            "grant_type": ["client_credentials"],
            "client_id": ["the client"],
            "client_secret": ["h&sh=%"],
            "scope": ["s/.default"],
        },
    }


def test_get_is_the_method_unless_another_is_set(loopback):
    methods = []

    async def handler(request):
        methods.append(request.method)
        return web.json_response(GOOD)

    ask(loopback, handler)
    assert methods == ["GET"]


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refused_client_is_a_matter_of_credentials(loopback, status):
    said = refusal(CredentialsError, loopback, saying(status, data={"error": "invalid_client"}))
    assert f"HTTP {status}" in said


ENTRA = {
    "error": "invalid_client",
    "error_description": "AADSTS7000215: Invalid client secret provided. Ensure it is the value, not the ID: "
    "h&sh=% of app '11aa22bb-11aa-22bb-11aa-22bb33cc44dd'.\r\nTrace ID: 33cc44dd-11aa-22bb-11aa-22bb33cc44dd",
    "error_codes": [7000215],
}


def test_the_providers_own_error_is_repeated_masked_in_the_sentence_and_in_the_log(loopback):
    with capture_logs() as lines:
        said = refusal(CredentialsError, loopback, saying(401, data=ENTRA))
    detail = (
        "invalid_client: AADSTS7000215: Invalid client secret provided. Ensure it is the value, not the ID"
    )
    assert f"it says: \"{detail}: *** of app '***'.\"" in said
    assert [line["detail"].startswith(detail) for line in lines] == [True]
    said = refusal(ConfigurationError, loopback, saying(404, data={"code": "NOT_FOUND", "detail": "x" * 999}))
    assert "NOT_FOUND: xxx" in said
    assert "x" * 200 not in said


@pytest.mark.parametrize("status", [400, 401, 403, 503])
def test_what_an_endpoint_calls_temporary_is_worth_another_try(loopback, status):
    data = {"error": "temporarily_unavailable", "error_description": "AADSTS90033: A transient error"}
    assert "AADSTS90033: A transient error" in refusal(TokenUnavailable, loopback, saying(status, data=data))


@pytest.mark.parametrize(
    ("status", "body", "asked_count"),
    [(401, '{"error":"invalid_client"}', 2), (400, "<h1>400</h1>", 2), (400, '{"error":"invalid_scope"}', 1)],
)
def test_a_refusal_that_may_be_one_servers_of_many_is_tried_once_more(loopback, status, body, asked_count):
    seen = []

    async def handler(_request):
        seen.append(1)
        return web.json_response(GOOD) if len(seen) == 2 else web.Response(status=status, text=body)

    if asked_count == 2:
        assert ask(loopback, handler).expires_in == 3599
    else:
        refusal(CredentialsError, loopback, handler)
    assert len(seen) == asked_count


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_an_endpoint_in_trouble_is_worth_another_try(loopback, status):
    assert f"HTTP {status}" in refusal(TokenUnavailable, loopback, saying(status, data={}))


@pytest.mark.parametrize("status", [201, 302, 307, 404, 405, 410])
def test_an_address_without_tokens_is_a_matter_of_configuration(loopback, status):
    assert "token_url" in refusal(ConfigurationError, loopback, saying(status, data=GOOD))


@pytest.mark.parametrize(
    "text",
    [
        "<html>Sign in</html>",
        "",
        "[]",
        "{}",
        '{"access_token": ""}',
        '{"access_token": 7}',
        '{"access_token": "a", "expires_in": -1}',
        '{"access_token": "a", "access_token": "b"}',
        '{"access_token": "sesame\\r\\nX-Other: 1"}',
        '{"access_token": "sesame open"}',
        '{"access_token": "\\u2603"}',
        '{"access_token": "sesame", "token_type": "mac"}',
    ],
)
def test_an_answer_that_is_no_token_is_a_broken_protocol(loopback, text):
    refusal(ProtocolError, loopback, saying(text=text))


@pytest.mark.parametrize("token_type", ["Bearer", "bearer", None])
def test_the_token_type_is_bearer_in_any_case_or_not_told(loopback, token_type):
    assert ask(loopback, saying(data=GOOD | {"token_type": token_type})).expires_in == 3599


def test_an_endpoint_that_breaks_off_is_worth_another_try_and_got_one_request(loopback):
    requests = []

    async def session(reader, _writer):
        requests.append(await reader.readuntil(b"\r\n\r\n"))

    async def main():
        async with loopback.talking(session) as port:
            context = client_context(ca_file=loopback.authority.ca_file)
            await TokenEndpoint(f"https://127.0.0.1:{port}/", context=context)(REQUEST)

    with refused(TokenUnavailable, "transport.token_no_answer"):
        anyio.run(main)
    assert len(requests) == 1, "aiohttp sends a GET again by itself, unless it is kept from that"


@pytest.mark.parametrize("status", [429, 503])
def test_the_pause_that_an_endpoint_asks_for_is_read(loopback, status):
    with pytest.raises(TokenUnavailable) as caught:
        ask(loopback, saying(status, data={}, headers={"Retry-After": "2.5"}))

    assert caught.value.pause_s == 2.5


def test_an_endpoint_that_is_not_trusted_never_gets_the_secret(loopback):
    async def handler(_request):
        pytest.fail("the secret was sent")

    async def main():
        async with loopback.serving(handler) as port:
            await TokenEndpoint(f"https://127.0.0.1:{port}/", context=client_context())(REQUEST)

    with pytest.raises(TlsError):
        anyio.run(main)


@pytest.mark.parametrize("url", ["http://login.example/token", "https://login.example/token?client_id=a"])
def test_an_address_that_is_not_plainly_https_is_a_configuration_error(url):
    with refused(ConfigurationError, what="token_url"):
        TokenEndpoint(url, context=client_context())
