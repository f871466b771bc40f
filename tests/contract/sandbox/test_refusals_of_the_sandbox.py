"""Whatever is wrong with a request: a problem document, a line of the call log, and nothing quoted."""

import contextlib
import json
import socket
import time
import uuid

import pytest

from pipeline.sandbox.faults.selection import parse

PATH = "/copgateway/v1.0/confirmation-payee/name-verification"
SANDBOX = f"/sandbox{PATH}"
CORRELATION = "x-fapi-interaction-id"
SECRETS = ("Thornwood", "00112200012345", "s3cret-token")
MEMBERS = {"type", "code", "title", "status", "detail", "instance"}
BODY = json.dumps(
    {
        "data": {
            "schemeName": "SortCodeAccountNumber",
            "accountType": "Personal",
            "identification": "00112200012345",
            "name": "Avery Thornwood",
        }
    }
).encode()


@pytest.fixture(scope="module")
def logged(serving, tmp_path_factory):
    """A sandbox that is in a hurry, and the lines of its log."""
    log = tmp_path_factory.mktemp("refusals") / "calls.jsonl"
    with serving(log.parent / "here", call_log=log, request_wait_s=0.5) as sandbox:
        yield sandbox, lambda: [json.loads(line) for line in log.read_text().splitlines()]


@contextlib.contextmanager
def connected(sandbox):
    with (
        socket.create_connection(sandbox.address, timeout=10) as plain,
        sandbox.context().wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        yield secured


def whole(secured):
    """Everything that is sent until the connection ends."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := secured.recv(10_000):
            received += piece
    return received


def read_reply(received):
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode().lower(), body


def head(sandbox, token, stamp, *more):
    lines = [
        f"POST {SANDBOX} HTTP/1.1",
        f"Host: {sandbox.address[0]}",
        f"{CORRELATION}: {uuid.uuid4()}",
        f"X-Request-Timestamp: {stamp}",
        "Content-Type: application/json",
        f"Authorization: Bearer {token}",
        f"Content-Length: {len(BODY)}",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


UNREADABLE = {
    "no HTTP": b"AVERY THORNWOOD\r\n\r\n",
    "another version": b"POST / HTTP/9.9\r\nAuthorization: Bearer s3cret-token\r\n\r\n",
    "a control character in a header": b"POST / HTTP/1.1\r\nAuthorization: Bearer s3cret-token\x01\r\n\r\n",
    "a header without a colon": b"POST / HTTP/1.1\r\nBearer s3cret-token\r\n\r\n",
    "a space in a header's name": b"POST / HTTP/1.1\r\nThornwood Avery: 1\r\n\r\n",
    "a length that is no number": b"POST / HTTP/1.1\r\nContent-Length: Thornwood\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0",
    "another encoding": b"POST / HTTP/1.1\r\nTransfer-Encoding: Thornwood\r\n\r\n",
    "a header of 20 KiB": b"POST / HTTP/1.1\r\nX-Name: " + b"Thornwood " * 2000 + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("sent", UNREADABLE.values(), ids=UNREADABLE)
def test_what_the_parser_refuses_is_told_and_logged_like_all_else(logged, sent, capfd):
    sandbox, lines = logged
    before = len(lines())
    with connected(sandbox) as secured:
        secured.sendall(sent)
        status, headers, body = read_reply(whole(secured))
    problem = json.loads(body)
    assert (status, problem["status"], problem["code"]) == (400, 400, "FORMAT_ERROR")
    assert set(problem) == MEMBERS
    assert "content-type: application/json" in headers
    [line] = lines()[before:]
    assert (line["status"], line["refused"], line["path"]) == (400, "http", "")
    said = f"{headers}{body.decode()}{line}{capfd.readouterr()}"
    assert not [secret for secret in SECRETS if secret.lower() in said.lower()]


def test_a_token_that_is_no_text_is_refused_like_any_other(logged, stamp):
    sandbox, lines = logged
    with connected(sandbox) as secured:
        sent = head(sandbox, "TOKEN", stamp(), "Connection: close").replace(b"TOKEN", b"\xff\xc3")
        secured.sendall(sent + BODY)
        status, _, body = read_reply(whole(secured))
    assert (status, json.loads(body)["code"]) == (401, "CLIENT_INVALID")
    assert lines()[-1]["refused"] == "token unknown"


def test_a_body_that_is_no_chunk_is_a_problem_document(logged, stamp):
    sandbox, lines = logged
    token = sandbox.token()
    sent = head(sandbox, token, stamp()).replace(
        f"Content-Length: {len(BODY)}".encode(), b"Transfer-Encoding: chunked"
    )
    with connected(sandbox) as secured:
        secured.sendall(sent + b"Thornwood\r\n\r\n")
        status, _, body = read_reply(whole(secured))
    assert (status, json.loads(body)["code"]) == (400, "FORMAT_ERROR")
    assert lines()[-1]["refused"] == "http"
    assert b"Thornwood" not in body


def test_a_client_that_waits_to_be_told_is_told_to_go_on(logged, stamp):
    sandbox, _ = logged
    token = sandbox.token()
    with connected(sandbox) as secured:
        secured.sendall(head(sandbox, token, stamp(), "Expect: 100-continue", "Connection: close"))
        assert secured.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        secured.sendall(BODY)
        status, headers, body = read_reply(whole(secured))
    assert (status, json.loads(body)) == (200, {"data": {"verificationReport": {"matched": True}}})
    assert CORRELATION in headers


def test_a_client_that_waits_and_may_not_ask_is_told_at_once(logged, stamp):
    sandbox, _ = logged
    with connected(sandbox) as secured:
        secured.sendall(head(sandbox, "s3cret-token", stamp(), "Expect: 100-continue"))
        assert secured.recv(1000).startswith(b"HTTP/1.1 401 ")


def test_another_expectation_is_a_417(logged, stamp):
    sandbox, lines = logged
    with connected(sandbox) as secured:
        secured.sendall(
            head(sandbox, sandbox.token(), stamp(), "Expect: Thornwood", "Connection: close") + BODY
        )
        status, _, body = read_reply(whole(secured))
    assert (status, set(json.loads(body))) == (417, MEMBERS)
    assert lines()[-1]["refused"] == "expectation"


@pytest.mark.parametrize(
    ("sent_share", "part"), [(0.5, "the head of the request"), (1.0, "body")], ids=["head", "body"]
)
def test_a_request_that_arrives_too_slowly_is_cut_with_a_408(logged, stamp, sent_share, part):
    sandbox, lines = logged
    start = head(sandbox, sandbox.token(), stamp())
    with connected(sandbox) as secured:
        secured.sendall(start[: int(len(start) * sent_share)])
        begun = time.monotonic()
        status, _, body = read_reply(whole(secured))
    assert time.monotonic() - begun < 5
    assert (status, json.loads(body)["code"]) == (408, "REQUEST_TIMEOUT")
    assert part in json.loads(body)["detail"]
    assert lines()[-1]["refused"] == "slow"


def test_a_connection_that_says_nothing_between_two_requests_is_left_alone(logged, stamp):
    sandbox, _ = logged
    token = sandbox.token()
    with connected(sandbox) as secured:
        for _ in range(2):
            secured.sendall(head(sandbox, token, stamp()) + BODY)
            assert secured.recv(10_000).startswith(b"HTTP/1.1 200 ")
            secured.settimeout(0.8)  # longer than a head may take
            with pytest.raises(TimeoutError):
                secured.recv(1)


@pytest.mark.parametrize("ahead_s", [-310, 310, -86_400])
def test_a_timestamp_far_off_is_refused_and_one_that_is_near_is_not(sandbox, token, stamp, ahead_s):
    reply = sandbox.check(SANDBOX, BODY, token=token, X_Request_Timestamp=stamp(ahead_s))
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")
    assert "X-Request-Timestamp: more than 300 seconds" in reply.document["detail"]
    near = sandbox.check(SANDBOX, BODY, token=token, X_Request_Timestamp=stamp(ahead_s and 200))
    assert near.status == 200


@pytest.mark.parametrize("name", [CORRELATION, "X-Request-Timestamp", "Content-Type", "Authorization"])
def test_a_doubled_header_is_refused(logged, stamp, name):
    sandbox, _ = logged
    start = head(sandbox, sandbox.token(), stamp(), "Connection: close")
    [line] = [line for line in start.split(b"\r\n") if line.startswith(name.encode())]
    with connected(sandbox) as secured:
        secured.sendall(start[:-2] + line + b"\r\n\r\n" + BODY)
        status, headers, body = read_reply(whole(secured))
    assert (status, json.loads(body)["code"]) == (400, "FORMAT_ERROR")
    assert name != CORRELATION or f"\r\n{CORRELATION}" not in headers


@pytest.mark.parametrize("charset", ["latin-1", "utf-16", '"iso-8859-1"', "windows-1252"])
def test_another_charset_is_refused(sandbox, token, charset):
    reply = sandbox.check(SANDBOX, BODY, token=token, Content_Type=f"application/json; charset={charset}")
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")
    assert "charset must be utf-8" in reply.document["detail"]


@pytest.mark.parametrize("stated", ["application/json;charset=UTF-8", 'application/json; charset="utf-8"'])
def test_the_charset_of_json_is_accepted(sandbox, token, stated):
    assert sandbox.check(SANDBOX, BODY, token=token, Content_Type=stated).status == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_wrong_method_echoes_the_correlation_id(sandbox, method):
    mine = str(uuid.uuid4())
    reply = sandbox.send(method, SANDBOX, headers={CORRELATION: mine})
    assert (reply.status, reply.headers[CORRELATION]) == (405, mine)


def test_a_lei_with_wrong_check_digits_is_refused(sandbox, token):
    def ask(lei):
        party = {"identification": {"organisationId": {"lei": lei}}}
        document = {"party": party, "partyAccount": {"iban": "DE35370400440084210077"}}
        return sandbox.check("/sandbox/vopgateway/v1/payee-verifications", document, token=token)

    assert ask("SIMU0000000000000183").status == 200
    reply = ask("SIMU0000000000000184")
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")
    assert "lei: wrong check digits" in reply.document["detail"]


@pytest.mark.parametrize(("account", "code"), [("4", "FOURHUN"), ("5", "HTTPERR"), ("1", "SCNS")])
def test_the_codes_of_a_responder_that_answers_with_an_error_can_be_reached(sandbox, account, code):
    document = json.loads(BODY)
    document["data"]["identification"] = f"010099{account}0000001"
    reply = sandbox.check(f"/production{PATH}", document, token=sandbox.token("production"))
    assert reply.document["data"]["verificationReport"] == {"matched": False, "reasonCode": code}


def test_a_fault_that_takes_the_content_type_away_sends_none(serving, tmp_path):
    with serving(tmp_path / "bare", faults=(parse("no-content-type"),)) as sandbox:
        reply = sandbox.check(SANDBOX, BODY, token=sandbox.token())
    assert reply.status == 200
    assert "content-type" not in {name.lower() for name in reply.headers}


@pytest.mark.parametrize(
    ("path", "document"),
    [
        (SANDBOX, {"data": {"Avery Thornwood": 1}}),
        (SANDBOX, {"data": {"s3cret-token": 1}}),
        (SANDBOX, {"00112200012345": 1}),
        ("/sandbox/check/Avery%20Thornwood/00112200012345", {}),
        ("/s3cret-token-0123456789-0123456789-0123456789", {}),
        (f"{SANDBOX}?name=Thornwood", {}),
    ],
)
def test_what_stands_in_the_wrong_place_is_not_repeated(logged, path, document):
    sandbox, lines = logged
    reply = sandbox.check(path, document, token=sandbox.token())
    assert reply.status in {400, 404}
    said = f"{reply.content.decode()}{lines()[-1]}"
    assert not [secret for secret in SECRETS if secret in said]


def test_a_field_of_the_token_form_that_is_a_secret_is_not_repeated(logged):
    sandbox, lines = logged
    reply = sandbox.ask_token(body=f"{sandbox.form()}&Thornwood-s3cret-token=1")
    assert reply.status == 400
    assert not [secret for secret in SECRETS if secret in f"{reply.content.decode()}{lines()[-1]}"]
