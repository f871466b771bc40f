"""Each rule of the verdict, kept and broken, on a journal of a few calls."""

import dataclasses

import pytest

from pipeline.sandbox.client_hello import ClientHello, Greeting
from pipeline.sandbox.journal import Call, Journal, Visit
from pipeline.sandbox.problems import Refusal
from pipeline.sandbox.verdict.reports import as_text, verdict_on
from pipeline.sandbox.verdict.rules import BREACHES_MAX, RULES, RuleStatus
from schemas.outcomes import ApiName

RULE = {rule.name: rule for rule in RULES}
MODERN = ClientHello(("TLSv1.3",), ("TLS_AES_256_GCM_SHA384",))


def check(at_s, question="one", **changes):
    """A check that came so many seconds after the start, and was answered at once."""
    call = Call(
        1_700_000_000 + at_s,
        at_s,
        "/production/vop",
        "1.1",
        method="POST",
        connection=1,
        role="production",
        api="cop",
        status=200,
        answered=at_s + 0.01,
        question=question,
        request_id=f"id of {question} at {at_s}",
        token="first",
    )
    return dataclasses.replace(call, **changes)


def refused(refusal, status=400, **changes):
    return check(0, status=status, refused=refusal, **changes)


def token(at_s, **changes):
    return check(at_s, None, api="token", request_id=None, token=None, **changes)


def visit(port="", hello=MODERN, **changes):
    return Visit(number=1, port=port, hello=hello, **changes)


def standard(refusal=None):
    return [refused(refusal, 401, api="vop_standard") if refusal else check(0, api="vop_standard")]


PAUSE = {"status": 429, "retry_after_s": 2.0}
CASES = {
    # rule: calls that keep it, calls that break it
    "http": ([check(0)], [refused(Refusal.HTTP)]),
    "pipelining": ([check(0)], [check(0, waiting_count=1)]),
    "endpoint": ([check(0)], [refused(Refusal.PATH, 404)]),
    "token-request": ([token(0)], [token(0, status=400, refused=Refusal.QUERY)]),
    "token": ([check(0)], [refused(Refusal.TOKEN_MISSING, 401)]),
    "token-reuse": (
        [check(0), check(1, "two")],
        [check(number, token=f"token {number}") for number in range(6)],
    ),
    "token-renewal": (
        [check(0, status=401), token(0.1), check(0.3, "two"), check(3, token="second")],
        [check(0, status=401), token(0.1), check(4, "two")],
    ),
    "client-certificate": (standard(), standard(Refusal.CERTIFICATE)),
    "requesting-bank": (standard(), standard(Refusal.REQUESTING_BANK)),
    "correlation-id": ([check(0)], [refused(Refusal.CORRELATION_ID)]),
    "correlation-id-once": (
        [check(0), check(1)],
        [check(0, request_id="a-b"), check(1, "two", request_id="A-B")],
    ),
    "timestamp": ([check(0)], [refused(Refusal.TIMESTAMP)]),
    "content-type": ([check(0)], [refused(Refusal.CONTENT_TYPE)]),
    "document": ([check(0)], [refused(Refusal.DOCUMENT)]),
    "no-repeat-after-400": (
        [check(0, status=400, faults=("400",)), check(2, "two")],
        [check(0, status=400, faults=("400",)), check(2)],
    ),
    "retry-after": (
        [check(0, **PAUSE), check(0.2, "two"), check(2.1)],
        [check(0, **PAUSE), check(1.5, "two")],
    ),
    "rate": ([check(0)], [refused(Refusal.RATE, 429)]),
    "daily-cap": ([check(0, role="test")], [refused(Refusal.DAILY_CAP, 429, role="test")]),
    "echo": (
        [check(0, faults=("wrong-echo",)), check(1), check(2, "two")],
        [check(0, faults=("wrong-echo",)), check(2, "two")],
    ),
    "content": (
        [check(0, faults=("duplicate-keys",)), check(1), check(2, "two")],
        [check(0, faults=("duplicate-keys",)), check(2, "two")],
    ),
    "retry": ([check(0, status=500), check(1)], [check(0, status=500), check(1, "two")]),
    "retry-limit": (
        [check(number, status=500) for number in range(3)],
        [check(number, status=500) for number in range(13)],
    ),
    "responder-wait": (
        [check(0, answered=7.0, status=504)],
        [check(0, answered=7.0, status=504, is_abandoned=True)],
    ),
    "cookie": (
        [check(0, faults=("set-cookie",)), check(1)],
        [check(0, faults=("set-cookie",)), check(1, has_cookie=True)],
    ),
    "redirect": ([check(0, faults=("redirect-307",), connection=2)], [check(0)]),
}
VISITS = {
    "https": (visit(), visit(hello=None, is_plain_http=True)),
    "tls-version": (visit(), visit(hello=ClientHello(("TLSv1.1",), ("AES128-SHA",)))),
    "tls-suites": (visit(), visit(hello=ClientHello(("TLSv1.3",), ("TLS_AES_128_GCM_SHA256",)))),
}


def journal_of(calls, *visits):
    ended = [dataclasses.replace(each, lasted_until=3.0) for each in visits]
    return Journal(ended, list(calls), responder_waits_s={ApiName.COP: 7.0}, has_rate=True)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_of_calls_is_kept_or_broken_or_never_met(name):
    kept, wrong = CASES[name]
    port = "elsewhere" if name == "redirect" else ""
    judge = RULE[name].judge
    assert judge(journal_of(kept, visit(port))).status is RuleStatus.KEPT
    assert judge(journal_of(wrong, visit(port))).status is RuleStatus.BROKEN
    assert judge(journal_of([])).status is RuleStatus.NEVER_MET


@pytest.mark.parametrize("name", VISITS)
def test_a_rule_of_connections_is_kept_or_broken_or_never_met(name):
    kept, wrong = VISITS[name]
    judge = RULE[name].judge
    assert judge(journal_of([], kept)).status is RuleStatus.KEPT
    assert judge(journal_of([], wrong)).status is RuleStatus.BROKEN
    assert judge(journal_of([])).status is RuleStatus.NEVER_MET


@pytest.mark.parametrize("name", [name for name in RULE if name.startswith("tls-") and name not in VISITS])
def test_nothing_may_be_sent_to_a_port_whose_tls_is_wrong(name):
    port = visit(name.removeprefix("tls-"))
    judge = RULE[name].judge
    assert judge(journal_of([], port)).status is RuleStatus.KEPT
    assert judge(journal_of([check(0)], port)).status is RuleStatus.BROKEN
    assert judge(journal_of([check(0)], visit())).status is RuleStatus.NEVER_MET


def test_every_rule_is_tried_here_and_says_where_it_is_written():
    ports = {name for name in RULE if name.startswith("tls-")}
    assert set(RULE) == {*CASES, *VISITS, *ports}
    sources = ("reference, ", "RFC ", "manners")
    assert all(rule.source.startswith(sources) for rule in RULES)


def test_an_empty_document_breaks_the_rule_as_any_other_does():
    empty = refused(Refusal.DOCUMENT, api="vop_standard", byte_count=len(b"{}"))
    assert RULE["document"].judge(journal_of([empty])).status is RuleStatus.BROKEN


def test_the_last_reply_need_not_be_asked_again_where_nothing_follows():
    calls = [check(0, "two"), check(1, faults=("wrong-echo",))]
    assert RULE["echo"].judge(journal_of(calls)).status is RuleStatus.KEPT


def test_a_question_is_not_asked_again_within_its_own_pause():
    calls = [check(0, **PAUSE), check(0.1)]
    assert RULE["retry-after"].judge(journal_of(calls)).status is RuleStatus.BROKEN


def test_other_questions_may_be_on_their_way_for_half_of_a_pause():
    calls = [check(0, **PAUSE), check(0.9, "two"), check(2.1)]
    assert RULE["retry-after"].judge(journal_of(calls)).status is RuleStatus.KEPT


def test_a_client_that_gets_no_token_after_a_401_breaks_the_rule_though_it_stops():
    assert RULE["token-renewal"].judge(journal_of([check(0, status=401)])).status is RuleStatus.BROKEN


def test_many_breaches_are_counted_and_the_first_ones_shown():
    calls = [refused(Refusal.TIMESTAMP) for _ in range(100)]
    judgement = RULE["timestamp"].judge(journal_of(calls))
    assert (judgement.breach_count, len(judgement.breaches)) == (100, BREACHES_MAX)
    assert "and 80 more" in as_text(verdict_on(journal_of(calls)))


@pytest.mark.parametrize(
    ("sent", "is_plain"),
    [(b"POST / HTTP/1.1\r\n", True), (b"GET /x", True), (b"\x16\x03\x01", False), (b"nonsense here", False)],
)
def test_plain_http_is_told_from_other_nonsense(sent, is_plain):
    greeting = Greeting()
    assert greeting.feed(sent) is None
    assert greeting.is_plain_http is is_plain


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_client_hello_is_read_in_whatever_pieces_it_comes(size):
    suites = bytes.fromhex("0a0a13021301c02cc00900ff")
    extensions = b"\x2a\x2a\x00\x00" + b"\x00\x2b\x00\x07\x06\x1a\x1a\x03\x04\x03\x03"
    content = b"\x03\x03" + bytes(32) + b"\x00" + len(suites).to_bytes(2, "big") + suites + b"\x01\x00"
    content += len(extensions).to_bytes(2, "big") + extensions
    message = b"\x01" + len(content).to_bytes(3, "big") + content
    sent = b"".join(
        b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (message[:20], message[20:])
    )
    greeting = Greeting()
    hellos = [greeting.feed(sent[at : at + size]) for at in range(0, len(sent), size)]
    [hello] = [hello for hello in hellos if hello is not None]
    assert hello.versions == ("TLSv1.3", "TLSv1.2")
    assert hello.suites == (
        "TLS_AES_256_GCM_SHA384",
        "TLS_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES128-SHA",
    )


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"]
)
def test_a_hello_that_is_none_ends_the_reading(sent):
    greeting = Greeting()
    assert greeting.feed(sent) is None
    assert greeting.is_over
