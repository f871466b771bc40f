"""Every fault does on the wire what the table says, and what is not chosen stays well."""

import gzip
import http.client
import json
import ssl
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest

from pipeline.sandbox.faults.catalogue import FAULTS, SECTIONS
from pipeline.sandbox.faults.selection import parse
from schemas.outcomes import ApiName

COP = "/production/copgateway/v1.0/confirmation-payee/name-verification"
VOP = "/production/vopgateway/v1/payee-verifications"
IBANS = ("NL27RABO0384210070", "DE35370400440084210077")
SLOW = ("silence", "slow-body", "slow-headers", "504-after-wait")
STATUSES = {
    "400": 400, "401": 401, "403": 403, "404": 404, "429-seconds": 429, "429-date": 429, "429-hours": 429,
    "503-seconds": 503, "503-date": 503, "500": 500, "502": 502, "503": 503, "504": 504, "outage": 503,
    "redirect-307": 307, "redirect-302": 302, "problem-without-members": 500, "problem-not-json": 500,
    "503-doubled": 503, "503-year-9999999999": 503,
    "html-400": 400, "client-invalid-400": 400, "431": 431, "foreign-id-400": 400, "no-id-400": 400,
    "problem-as-page": 502, "problem-with-unknown-code": 500, "problem-that-says-match": 500,
}  # fmt: skip
DIRECT = [
    fault.name
    for fault in FAULTS.values()
    if fault.befalls(ApiName.COP) and fault.name not in {*SLOW, "tokens-revoked", "swapped-answers"}
]


def account(number):
    return f"010203{20_000_000 + number}"


def question(identification):
    return {
        "data": {
            "schemeName": "SortCodeAccountNumber",
            "accountType": "Personal",
            "identification": identification,
            "name": "Invented Payee",
        }
    }


def payee(iban):
    return {"party": {"name": "Invented Payee"}, "partyAccount": {"iban": iban}}


@pytest.fixture(scope="module")
def faulty(serving, tmp_path_factory):
    """A sandbox in which each fault has an account of its own; and the fault of the first IBAN."""
    chosen = [parse(f"{name}:account={account(number)}") for number, name in enumerate(DIRECT)]
    chosen.append(parse(f"verdict-on-both:account={IBANS[0]}"))
    log = tmp_path_factory.mktemp("faulty") / "calls.jsonl"
    with serving(tmp_path_factory.mktemp("faulty") / "here", faults=tuple(chosen), call_log=log) as sandbox:
        yield sandbox, sandbox.token("production")


@pytest.fixture(scope="module")
def ask(faulty):
    sandbox, token = faulty

    def send(name, **headers):
        identification = account(DIRECT.index(name)) if name else account(9999)
        return sandbox.check(COP, question(identification), token=token, **headers)

    return send


def test_an_account_without_a_fault_is_answered_well(ask, faulty):
    sandbox, token = faulty
    assert ask(None).document == {"data": {"verificationReport": {"matched": False, "reasonCode": "ANNM"}}}
    assert sandbox.check(VOP, payee(IBANS[1]), token=token).document == {"partyNameMatch": "NMTC"}


@pytest.mark.parametrize(("name", "status"), STATUSES.items())
def test_statuses_are_sent(ask, name, status):
    assert ask(name).status == status


@pytest.mark.parametrize("name", ["429-seconds", "503-seconds"])
def test_a_pause_is_asked_for_in_seconds(ask, name):
    assert ask(name).headers["Retry-After"] == "2"


@pytest.mark.parametrize("name", ["429-date", "503-date"])
def test_a_pause_is_asked_for_by_date(ask, name):
    until = parsedate_to_datetime(ask(name).headers["Retry-After"])
    assert 0 < (until - datetime.now(UTC)).total_seconds() <= 3


def test_refusals_carry_whose_id_the_table_says(ask):
    own = str(uuid.uuid4())
    echoes = {
        name: ask(name, x_fapi_interaction_id=own).headers.get("x-fapi-interaction-id")
        for name in ("doubled-echo", "no-id-400", "foreign-id-400", "unasked-400")
    }
    assert echoes.pop("foreign-id-400") not in {own, None}
    assert echoes == {"doubled-echo": f"{own}, {own}", "no-id-400": None, "unasked-400": own}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("reset-before-headers", ConnectionResetError),
        ("closed-without-answer", http.client.RemoteDisconnected),
        ("truncated-body", http.client.IncompleteRead),
        ("reset-after-headers", (ConnectionResetError, http.client.IncompleteRead)),
        ("header-bomb", http.client.LineTooLong),
    ],
)
def test_connections_break_as_the_table_says(ask, name, error):
    with pytest.raises(error):
        ask(name)


def test_bodies_are_as_large_as_the_table_says(ask):
    assert len(ask("oversized-body").content) > 4 * 2**20
    assert json.loads(ask("oversized-body").content)
    bomb = ask("gzip-bomb")
    assert bomb.headers["Content-Encoding"] == "gzip"
    assert len(gzip.decompress(bomb.content)) > 500 * len(bomb.content)
    assert json.loads(gzip.decompress(ask("gzip-body").content))["data"]


def test_a_doubled_key_tempts_a_loose_reader_into_a_match(ask):
    content = ask("duplicate-keys").content
    assert json.loads(content)["data"]["verificationReport"]["matched"] is True
    assert content.count(b'"matched"') == 2


@pytest.mark.parametrize("name", ["deep-nesting", "not-json", "empty-body", "two-documents", "html-page"])
def test_bodies_that_are_no_document(ask, name):
    reply = ask(name)
    assert reply.status == 200
    with pytest.raises((ValueError, RecursionError)):
        json.loads(reply.content)


def test_correlation_ids_are_missing_or_wrong(ask):
    mine = str(uuid.uuid4())
    header = {"x-fapi-interaction-id": mine}
    assert ask(None, **header).headers["x-fapi-interaction-id"] == mine
    assert "x-fapi-interaction-id" not in ask("missing-echo", **header).headers
    assert ask("wrong-echo", **header).headers["x-fapi-interaction-id"] != mine


def test_headers_are_missing_or_odd(ask):
    assert "Content-Type" not in ask("no-content-type").headers or (
        ask("no-content-type").headers["Content-Type"] != "application/json"
    )
    assert ask("set-cookie").headers["Set-Cookie"].startswith("sid=")
    assert "X-Response-Timestamp" not in ask("no-response-timestamp").headers
    for name, ahead_s in (("clock-ahead", 600), ("clock-behind", -600)):
        told = datetime.fromisoformat(ask(name).headers["X-Response-Timestamp"])
        assert abs((told - datetime.now(UTC)).total_seconds() - ahead_s) < 30


@pytest.mark.parametrize("fault", dict(SECTIONS)["Contradictions"], ids=lambda fault: fault.name)
def test_a_contradiction_is_a_well_formed_document(ask, faulty, fault):
    sandbox, token = faulty
    if fault.befalls(ApiName.COP):
        reply, healthy = ask(fault.name), ask(None)
    else:
        reply, healthy = (sandbox.check(VOP, payee(iban), token=token) for iban in IBANS)
    assert reply.status == 200
    assert reply.document != healthy.document


def test_a_redirect_leads_to_another_port_of_the_same_server(ask, faulty):
    target = ask("redirect-307").headers["Location"]
    assert "/elsewhere/" in target
    assert not target.startswith(faulty[0].url)


def test_what_is_wrong_with_a_request_is_told_in_spite_of_a_fault(faulty):
    sandbox, _ = faulty
    assert sandbox.check(COP, question(account(DIRECT.index("500")))).status == 401


@pytest.mark.parametrize(("name", "bytes_max"), [("silence", 0), ("slow-body", 1000), ("slow-headers", 5)])
def test_a_slow_reply_is_not_whole_after_two_seconds(serving, tmp_path, name, bytes_max):
    with serving(tmp_path / "slow", faults=(parse(name),)) as sandbox:
        token, body = sandbox.token("production"), json.dumps(question(account(1)))
        connection = http.client.HTTPSConnection(*sandbox.address, context=sandbox.context())
        headers = {
            "x-fapi-interaction-id": str(uuid.uuid4()),
            "X-Request-Timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "Content-Type": "application/json",
            "Authorization": f"Bearer {token}",
        }
        connection.request("POST", COP, body, headers)
        received = read_for(connection.sock, 2.0)
        connection.close()
    assert len(received) <= bytes_max
    assert not received.endswith(b"}}}")
    assert name == "silence" or received.startswith(b"HTTP/"[: len(received)])


def read_for(sock, duration_s):
    """What arrives within a time."""
    received, until = b"", time.monotonic() + duration_s
    while (left_s := until - time.monotonic()) > 0:
        sock.settimeout(left_s)
        try:
            received += sock.recv(10_000)
        except TimeoutError:
            break
    return received


def test_a_504_can_take_the_responder_wait(serving, tmp_path):
    fault = (parse("504-after-wait"),)
    with serving(tmp_path / "waiting", faults=fault, cop_responder_wait_s=0.5) as sandbox:
        token, started = sandbox.token("production"), time.monotonic()
        assert sandbox.check(COP, question(account(1)), token=token).status == 504
        assert time.monotonic() - started >= 0.5


def test_two_requests_in_flight_get_each_others_answer_and_a_lone_one_its_own(serving, tmp_path):
    with serving(tmp_path / "swapping", faults=(parse("swapped-answers"),)) as sandbox:
        token = sandbox.token("production")
        ids = [str(uuid.uuid4()) for _ in range(3)]

        def ask(number):
            headers = {"x-fapi-interaction-id": ids[number]}
            return sandbox.check(COP, question(account(number)), token=token, **headers)

        with ThreadPoolExecutor(2) as pool:
            echoes = [reply.headers["x-fapi-interaction-id"] for reply in pool.map(ask, (0, 1))]
        assert echoes == [ids[1], ids[0]]
        assert ask(2).headers["x-fapi-interaction-id"] == ids[2]


def test_revoked_tokens_are_worth_nothing_and_new_ones_are(serving, tmp_path):
    with serving(tmp_path / "revoking", faults=(parse("tokens-revoked:after=1,for=1"),)) as sandbox:
        token = sandbox.token("production")
        assert [sandbox.check(COP, question(account(1)), token=token).status for _ in range(3)] == [
            200,
            401,
            401,
        ]
        renewed = sandbox.token("production")
        assert sandbox.check(COP, question(account(1)), token=renewed).status == 200


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("token-without-life", {"token_type": "Bearer"}),
        ("token-of-no-life", {"token_type": "Bearer", "expires_in": 0}),
        ("token-life-as-text", {"token_type": "Bearer", "expires_in": "3599"}),
        ("token-of-endless-life", {"token_type": "Bearer", "expires_in": 10**400}),
        ("token-of-another-type", {"token_type": "mac", "expires_in": 3600}),
    ],
)
def test_token_answers_are_odd(serving, tmp_path, name, expected):
    with serving(tmp_path / "odd", faults=(parse(name),)) as sandbox:
        answer = sandbox.ask_token().document
        assert answer.pop("access_token")
        assert answer == expected


def test_a_token_endpoint_is_down_or_shows_a_page_or_forges(serving, tmp_path):
    chosen = (parse("token-down:for=1"), parse("token-500:after=1,for=1"), parse("token-page:after=2,for=1"))
    with serving(tmp_path / "down", faults=(*chosen, parse("token-forged:after=3"))) as sandbox:
        with pytest.raises(http.client.RemoteDisconnected):
            sandbox.ask_token()
        assert sandbox.ask_token().status == 500
        assert sandbox.ask_token().headers["Content-Type"] == "text/html"
        forged = sandbox.token("production")
        assert sandbox.check(COP, question(account(1)), token=forged).status == 401


def test_a_token_endpoint_asks_for_a_pause_or_refuses(serving, tmp_path):
    names = ("token-503-seconds", "token-429-date", "token-later", "token-401")
    chosen = [parse(f"{name}:after={number},for=1") for number, name in enumerate(names)]
    with serving(tmp_path / "pausing", faults=tuple(chosen)) as sandbox:
        busy, many, later, refused = (sandbox.ask_token() for _ in names)
    assert [reply.status for reply in (busy, many, later, refused)] == [503, 429, 400, 401]
    assert busy.headers["Retry-After"] == "2"
    assert parsedate_to_datetime(many.headers["Retry-After"])
    assert later.document["error"] == "temporarily_unavailable"


def test_a_server_closes_instead_of_a_handshake(serving, tmp_path):
    with (
        serving(tmp_path / "closing", faults=(parse("close-in-handshake"),)) as sandbox,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        sandbox.ask_token()


def test_the_log_tells_the_fault_and_the_cookie_but_no_account(faulty, ask):
    ask("500", Cookie="sid=1")
    log = faulty[0].folder.parent.parent
    lines = [
        json.loads(line)
        for path in log.rglob("calls.jsonl")
        for line in path.read_text().splitlines()
        if '"500"' in line
    ]
    assert lines[-1]["faults"] == ["500"]
    assert (lines[-1]["cookie"], lines[-1]["status"]) == (True, 500)
    assert account(DIRECT.index("500")) not in json.dumps(lines)
