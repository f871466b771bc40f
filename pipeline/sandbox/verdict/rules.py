"""The table of rules: what a correct client does, and the source."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeline.sandbox.journal import TOKEN, Call, Journal
from pipeline.sandbox.problems import Refusal
from pipeline.sandbox.verdict import conduct
from pipeline.sandbox.verdict.conduct import Judgement, never_refused
from schemas.outcomes import ApiName, Environment

WRONG_PORTS = ("wrong-authority", "expired", "wrong-host", "1.1-only", "other-suite")
"""Ports of scenario tls, named after their TLS fault."""


@dataclass(frozen=True, slots=True)
class Duty:
    """One thing that a correct client does."""

    name: str
    what: str
    source: str  # a part of the API reference, an RFC, or "manners", which are our choice
    judge: Callable[[Journal], Judgement]


_TRANSPORT = "reference, Transport security"
_HEADERS = "reference, Request headers"
_TOKENS = "reference, OAuth 2.0 client credentials"
_MANNERS = "manners"
_R = Refusal


def _checks(journal: Journal) -> list[Call]:
    return journal.checks


def _standard_checks(journal: Journal) -> list[Call]:
    return [call for call in journal.checks if call.asked is ApiName.VOP_STANDARD]


RULES: tuple[Duty, ...] = (
    Duty("https", "speaks HTTPS and never plain HTTP", "reference, Conventions", conduct.speaks_tls),
    Duty("tls-version", "offers TLS 1.2 or 1.3", _TRANSPORT, conduct.offers_tls_1_2),
    Duty("tls-suites", "offers a suite that the reference lists", _TRANSPORT, conduct.offers_a_listed_suite),
    *(
        Duty(
            f"tls-{port}",
            f"sends nothing to a server whose TLS is wrong: {port}",
            f"{_TRANSPORT}; RFC 9110, section 4.3.4",
            conduct.sends_nothing_to(port),
        )
        for port in WRONG_PORTS
    ),
    Duty(
        "http", "sends well-formed HTTP/1.1, and in time", "RFC 9112",
        never_refused(_R.HTTP, _R.SLOW, _R.EXPECTATION, of=lambda journal: journal.calls),
    ),
    Duty(
        "pipelining", "sends no request on a connection before the last one is answered",
        "RFC 9112, section 9.3.2", conduct.does_not_pipeline,
    ),
    Duty(
        "endpoint", "calls the paths and methods that there are", "reference, Endpoints",
        never_refused(_R.PATH, _R.METHOD, of=lambda journal: journal.calls),
    ),
    Duty(
        "token-request", "asks for a token with a whole form in the body, and with a client that is known",
        _TOKENS,
        never_refused(
            _R.FORM, _R.QUERY, _R.CLIENT, _R.CONTENT_TYPE,
            of=lambda journal: [call for call in journal.calls if call.api == TOKEN],
        ),
    ),
    Duty("token", "sends a token of this server with every check", _TOKENS, conduct.carries_its_token),
    Duty("token-reuse", "uses a token for more than one question", _MANNERS, conduct.uses_a_token_again),
    Duty(
        "token-renewal", "gets a new token after a 401, and uses the old one no more",
        "reference, Errors (CLIENT_INVALID); RFC 6750, section 3.1", conduct.gets_a_new_token_after_401,
    ),
    Duty(
        "client-certificate", "presents a qualified certificate of a participant to VoP Standard",
        "reference, VoP Standard: mutual TLS",
        never_refused(_R.CERTIFICATE_MISSING, _R.CERTIFICATE, of=_standard_checks),
    ),
    Duty(
        "requesting-bank", "names a BIC of the participant of its certificate",
        "reference, VoP Standard: mutual TLS",
        never_refused(_R.REQUESTING_BANK, of=_standard_checks),
    ),
    Duty(
        "correlation-id", "sends a UUID in the header of the API, once", _HEADERS,
        never_refused(_R.CORRELATION_ID, of=_checks),
    ),
    Duty(
        "correlation-id-once", "sends no correlation id twice", _HEADERS, conduct.uses_a_correlation_id_once
    ),
    Duty(
        "timestamp", "sends X-Request-Timestamp in the form of the reference, by a clock that is right",
        _HEADERS, never_refused(_R.TIMESTAMP, of=_checks),
    ),
    Duty(
        "content-type", "sends JSON in UTF-8 as application/json, not compressed", "reference, Conventions",
        never_refused(_R.CONTENT_TYPE, _R.CONTENT_ENCODING, of=_checks),
    ),
    Duty(
        "document", "sends documents that keep the rules of every field",
        "reference, Resources and their fields", never_refused(_R.DOCUMENT, of=_checks),
    ),
    Duty(
        "no-repeat-after-400", "never sends a question again that was refused with 400",
        "reference, Errors (FORMAT_ERROR); RFC 9110, section 15.5.1", conduct.never_repeats_after_400,
    ),
    Duty(
        "retry-after", "sends nothing for as long as Retry-After says", "RFC 9110, section 10.2.3",
        conduct.waits_as_asked,
    ),
    Duty(
        "rate", "keeps to the rate of the server", "reference, Limits",
        never_refused(_R.RATE, of=lambda journal: journal.checks if journal.has_rate else []),
    ),
    Duty(
        "daily-cap", "keeps to the daily limit of the test server", "reference, Limits",
        never_refused(
            _R.DAILY_CAP,
            of=lambda journal: [call for call in journal.checks if call.role == Environment.TEST],
        ),
    ),
    Duty(
        "echo", "takes no reply with another correlation id, or none, for an answer: it asks again",
        "reference, Response headers", conduct.asks_again_after(conduct.ECHO_FAULTS),
    ),
    Duty(
        "content", "takes no reply that breaks the reference for an answer: it asks again",
        "reference, CoP Gateway outcomes and VoP outcomes", conduct.asks_again_after(conduct.CONTENT_FAULTS),
    ),
    Duty(
        "retry", "asks again after a technical failure", "reference, Errors (500, 502, 504)",
        conduct.asks_again_after_a_failure,
    ),
    Duty(
        "retry-limit", f"sends a question at most {conduct.ATTEMPTS_MAX} times in vain", _MANNERS,
        conduct.gives_up_in_the_end,
    ),
    Duty(
        "responder-wait", "waits for as long as the gateway waits for a responder",
        "reference, Limits (responder wait)", conduct.waits_for_the_responder,
    ),
    Duty("cookie", "keeps no cookie", _MANNERS, conduct.keeps_no_cookie),
    Duty(
        "redirect", "follows no redirect with a payee and a token", "RFC 9110, section 15.4",
        conduct.follows_no_redirect,
    ),
)  # fmt: skip
"""Every rule, in the order of the verdict."""


def judge(journal: Journal) -> list[tuple[Duty, Judgement]]:
    """Judge a journal by every rule; calls are recorded when answered, but judged in order of arrival."""
    in_order = replace(journal, calls=sorted(journal.calls, key=lambda call: call.monotonic))
    return [(rule, rule.judge(in_order)) for rule in RULES]
