"""The table of faults: what the server does, and how a correct client reacts.

Source: API reference for correct answers; RFC 9110 and RFC 6749 if it is silent.
"""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from textwrap import wrap

from pipeline.sandbox.faults import effects
from pipeline.sandbox.faults.effects import ConnectionFault, Delivery, Effect
from pipeline.sandbox.http_connection import Reply
from pipeline.sandbox.problems import TIMESTAMP_INVALID, TOO_MANY_REQUESTS, UNAVAILABLE
from pipeline.wording import Sentence, SurfaceKind, rendered
from schemas.outcomes import ApiName
from schemas.problem import ProblemCode

RETRY_AFTER_S = 2  # the pause requested in the faults with Retry-After
SKEW_S = 600.0  # how far the clock is off in the faults of clocks
_DRIP_S = 0.5
_DAY_S = 24 * 3600.0
_ONE_STAMP = "uses the answer; a single timestamp moves no cap"

_VOP = frozenset({ApiName.VOP_GATEWAY, ApiName.VOP_STANDARD})


class Reach(Enum):
    """The requests that a fault can affect."""

    CHECKS = frozenset[ApiName | None](ApiName)
    COP = frozenset[ApiName | None]({ApiName.COP})
    VOP = frozenset[ApiName | None](_VOP)
    TOKENS = frozenset[ApiName | None]({None})
    CONNECTIONS = frozenset[ApiName | None]()  # no API: the fault affects every connection


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that a server can do wrong."""

    name: str
    reach: Reach
    what: str  # what the server does
    client: str  # how a correct client reacts
    effects: tuple[Effect, ...]

    @property
    def befalls_checks(self) -> bool:
        """True if the fault affects checks rather than token requests or connections."""
        return self.reach not in {Reach.TOKENS, Reach.CONNECTIONS}

    def befalls(self, api: ApiName | None) -> bool:
        """True if the fault can affect requests to this API; None means the token endpoint."""
        return api in self.reach.value


_AGAIN = "retries a few times with growing waits; then the row has no answer"
NO_ANSWER = "treats it as no answer, never as a match; may ask once more"
_ONE_OR_ALL = (
    "sends single questions to see whether all fail, and if so ends the run; otherwise the row has no answer"
)

_LATE = "header X-Request-Timestamp: too far from the time of this server"
_TEMPTING_COP = {"matched": True}
_TEMPTING_VOP = {"partyNameMatch": "MTCH"}
_TECHNICAL = effects.problem(
    500, ProblemCode.SERVER_ERROR, "a technical problem in the gateway prevented execution"
)
_TIMEOUT = effects.problem(
    504, ProblemCode.TIMEOUT_ERROR, "no response from the responder within the time for it"
)
_MALFORMED = effects.problem(400, ProblemCode.FORMAT_ERROR, "the request is not valid")
_REFUSED_TOKEN = effects.problem(401, ProblemCode.CLIENT_INVALID, "the access token is not valid")
_BUSY = effects.problem(503, UNAVAILABLE, "the service is not available at the moment")
_CLOSED = Delivery(lambda _head, _body: [])
_SILENCE = Delivery(lambda _head, _body: [b""] * 60, 1.0)
_UNASKED = Reply(
    400, {"Content-Type": "application/problem+json"}, b'{"code":"FORMAT_ERROR","status":400}'
).whole()
_TOO_MANY = effects.problem(429, TOO_MANY_REQUESTS, "too many requests")


def _fault(reach: Reach, name: str, what: str, client: str, *effects: Effect) -> Fault:
    return Fault(name, reach, what, client, effects)


_checks, _cop = partial(_fault, Reach.CHECKS), partial(_fault, Reach.COP)
_vop, _token = partial(_fault, Reach.VOP), partial(_fault, Reach.TOKENS)

_STATUSES = (
    _checks("400", "400 FORMAT_ERROR", "never sends this question again", _MALFORMED),
    _checks(
        "html-400", "400 with the page of nginx for a refused client certificate", _ONE_OR_ALL,
        effects.status(400), effects.body(effects.REFUSAL_PAGE, "text/html"),
    ),
    _checks(
        "client-invalid-400", "400 CLIENT_INVALID", _ONE_OR_ALL,
        effects.problem(400, ProblemCode.CLIENT_INVALID, "the client is not known"),
    ),
    _checks(
        "431", "431 with a page", _ONE_OR_ALL,
        effects.status(431), effects.body(b"<h1>431</h1>", "text/html"),
    ),
    _checks(
        "401", "401 CLIENT_INVALID, whatever the token",
        f"gets one new token and asks once more; then {_ONE_OR_ALL}", _REFUSED_TOKEN,
    ),
    _checks(
        "tokens-revoked", "401; all tokens issued so far are revoked",
        "gets one new token for all requests in flight, and continues", effects.revocation(), _REFUSED_TOKEN,
    ),
    _checks(
        "403", "403 without a code", _ONE_OR_ALL,
        effects.status(403, b'{"status":403,"title":"Forbidden"}'),
    ),
    _checks(
        "404", "404 without a code", _ONE_OR_ALL, effects.status(404, b'{"status":404,"title":"Not Found"}')
    ),
    _checks(
        "429-seconds", f"429 with Retry-After: {RETRY_AFTER_S}",
        "sends nothing for that long, then one request, then more",
        _TOO_MANY, effects.retry_after(RETRY_AFTER_S),
    ),
    _checks(
        "429-date", f"429 with Retry-After as a date, {RETRY_AFTER_S} s from now",
        "sends nothing until then, then one request, then more",
        _TOO_MANY, effects.retry_after(RETRY_AFTER_S, as_date=True),
    ),
    _checks(
        "429-hours", "429 with a Retry-After of a day",
        "sends nothing more in this run; a later run asks the rest",
        _TOO_MANY, effects.retry_after(24 * 3600),
    ),
    _checks(
        "503-seconds", f"503 with Retry-After: {RETRY_AFTER_S}",
        "sends nothing for that long, then retries", _BUSY, effects.retry_after(RETRY_AFTER_S),
    ),
    _checks(
        "503-date", f"503 with Retry-After as a date, {RETRY_AFTER_S} s from now",
        "sends nothing until then, then retries", _BUSY, effects.retry_after(RETRY_AFTER_S, as_date=True),
    ),
    _checks(
        "503-doubled", f"503 with Retry-After twice: 0.5 and {RETRY_AFTER_S}.0",
        "sends nothing for the longer time, then retries",
        _BUSY, effects.header(Retry_After=f"0.5, {RETRY_AFTER_S}.0"),
    ),
    _checks(
        "503-year-9999999999", "503 with Retry-After in the year 9999999999", _AGAIN,
        _BUSY, effects.header(Retry_After="Thu, 01 Jan 9999999999 00:00:00 GMT"),
    ),
    _checks("500", "500 SERVER_ERROR", _AGAIN, _TECHNICAL),
    _checks(
        "502", "502 SSL_ERROR", _AGAIN,
        effects.problem(502, ProblemCode.SSL_ERROR, "the TLS handshake with the responder failed"),
    ),
    _checks("503", "503 without Retry-After", _AGAIN, _BUSY),
    _checks("504", "504 TIMEOUT_ERROR, at once", _AGAIN, _TIMEOUT),
    _checks(
        "504-after-wait", "504 TIMEOUT_ERROR after the responder wait: 7 s CoP, 5 s VoP",
        f"waits longer than the responder wait, then {_AGAIN}", effects.pause(), _TIMEOUT,
    ),
    _checks(
        "outage", "503 to everything; after= and for= set when",
        "soon sends only a probe now and then, and continues when one is answered", _BUSY,
    ),
)  # fmt: skip

_CONNECTIONS = (
    _checks(
        "reset-before-headers", "TCP reset instead of an answer", _AGAIN,
        replace(_CLOSED, is_reset=True),
    ),
    _checks(
        "reset-after-headers", "TCP reset after the headers", _AGAIN,
        Delivery(lambda head, _body: [head], is_reset=True),
    ),
    _checks(
        "truncated-body", "closes after half of the promised body", _AGAIN,
        Delivery(lambda head, body: [head + body[: len(body) // 2]]),
    ),
    _checks("closed-without-answer", "closes instead of answering", _AGAIN, _CLOSED),
    _checks(
        "silence", "says nothing for a minute, then closes", f"stops waiting at its deadline; {_AGAIN}",
        _SILENCE,
    ),
    _checks(
        "slow-body", f"a byte of the body every {_DRIP_S:g} s", f"stops reading at its deadline; {_AGAIN}",
        Delivery(lambda head, body: [head, *effects.by_bytes(body)], _DRIP_S),
    ),
    _checks(
        "slow-headers", f"a byte every {_DRIP_S:g} s, from the first on",
        f"stops reading at its deadline; {_AGAIN}",
        Delivery(lambda head, body: effects.by_bytes(head + body), _DRIP_S),
    ),
    _fault(
        Reach.CONNECTIONS, "half-close", "keeps a connection open after the close_notify of the client",
        "does not wait for the other side", ConnectionFault.HALF_CLOSE,
    ),
    _fault(
        Reach.CONNECTIONS, "close-in-handshake", "closes every connection instead of its TLS handshake",
        "retries a few times after a wait; then ends the run, which can be resumed",
        ConnectionFault.CLOSE_IN_HANDSHAKE,
    ),
    _fault(
        Reach.CONNECTIONS, "late-client-certificate",
        "asks for the client certificate after the handshake, when a request has arrived",
        "presents it", ConnectionFault.LATE_CERTIFICATE,
    ),
)  # fmt: skip

_SIZES = (
    _checks(
        "oversized-body", f"a good answer in {effects.PADDING_BYTES // 2**20} MiB of JSON",
        f"stops reading early; {NO_ANSWER}", effects.rewritten(effects.padded),
    ),
    _checks(
        "gzip-body", "a good answer, compressed although not requested", NO_ANSWER,
        effects.rewritten(gzip.compress, Content_Encoding="gzip"),
    ),
    _checks(
        "gzip-bomb", f"4 KiB that unpack to {effects.PADDING_BYTES // 2**20} MiB",
        f"never unpacks it; {NO_ANSWER}", effects.rewritten(effects.bomb, Content_Encoding="gzip"),
    ),
    _checks(
        "header-bomb", "a good answer with a header of 200 KiB", f"stops reading early; {NO_ANSWER}",
        effects.header(X_Padding=effects.HEADER_PADDING),
    ),
)  # fmt: skip

_BODIES = (
    _checks(
        "duplicate-keys", "two verdicts under one name: no match, then match", NO_ANSWER,
        effects.written(
            cop=b'{"matched":false,"reasonCode":"ANNM","matched":true}',
            vop=b'{"partyNameMatch":"NMTC","partyNameMatch":"MTCH"}',
        ),
    ),
    _checks(
        "not-a-number", "a match beside a number that JSON does not allow", NO_ANSWER,
        effects.written(cop=b'{"matched":true,"score":NaN}', vop=b'{"partyNameMatch":"MTCH","score":NaN}'),
    ),
    _checks("deep-nesting", "30,000 nested arrays", NO_ANSWER, effects.body(b"[" * 30_000 + b"]" * 30_000)),
    _checks("not-json", "a match as text that is not JSON", NO_ANSWER, effects.body(b"matched=true MTCH")),
    _checks("empty-body", "200 without a body", NO_ANSWER, effects.body(b"")),
    _checks(
        "two-documents", "a match, and a second document after it", NO_ANSWER,
        effects.rewritten(lambda content: content + content),
    ),
    _checks(
        "html-page", "200 with a login page, text/html", NO_ANSWER,
        effects.body(effects.LOGIN_PAGE, "text/html"),
    ),
    _checks(
        "no-content-type", "a good answer without Content-Type", NO_ANSWER,
        effects.header(Content_Type=None),
    ),
    _checks(
        "redirect-307", "307 to another port", f"sends nothing there; {_ONE_OR_ALL}", effects.redirect(307)
    ),
    _checks(
        "redirect-302", "302 to another port", f"sends nothing there; {_ONE_OR_ALL}", effects.redirect(302)
    ),
    _checks(
        "set-cookie", "a good answer with a cookie", "keeps no cookie and sends none",
        effects.header(Set_Cookie="sid=1; Path=/; Secure"),
    ),
)  # fmt: skip

_CORRELATION = (
    _checks(
        "missing-echo", "a good answer without its correlation id", f"{NO_ANSWER}, on another connection",
        effects.echo(missing=True),
    ),
    _checks(
        "wrong-echo", "a good answer with another correlation id",
        f"{NO_ANSWER}, on another connection; ends the run if nearly all replies are like this",
        effects.echo(),
    ),
    _checks(
        "swapped-answers", "two requests in flight get each other's answer",
        f"{NO_ANSWER}, on another connection; ends the run if nearly all replies are like this",
        effects.swap(),
    ),
    _checks(
        "foreign-id-400", "400 FORMAT_ERROR with another correlation id",
        "rejects no row; may ask once more, on another connection", _MALFORMED, effects.echo(),
    ),
    _checks(
        "no-id-400", "400 FORMAT_ERROR without a correlation id",
        "asks once more, on a connection of its own; then never again",
        _MALFORMED, effects.echo(missing=True),
    ),
    _checks(
        "unasked-400", "a good answer, then an unsolicited 400 FORMAT_ERROR",
        "uses the answer, but not the connection again",
        Delivery(lambda head, body: [head + body, _UNASKED, *[b""] * 100], 0.05),
    ),
    _checks(
        "doubled-echo", "a good answer with its correlation id twice in the header", "uses the answer",
        effects.doubled_echo(),
    ),
)  # fmt: skip

_CONTRADICTIONS = (
    _cop(
        "matched-with-reason-code", "matched true beside ANNM", NO_ANSWER,
        effects.verdict(cop={**_TEMPTING_COP, "reasonCode": "ANNM"}),
    ),
    _cop(
        "unmatched-without-reason-code", "matched false and no reason", NO_ANSWER,
        effects.verdict(cop={"matched": False}),
    ),
    _checks(
        "close-match-without-name", "MBAM or CMTC without a name", NO_ANSWER,
        effects.verdict(cop={"matched": False, "reasonCode": "MBAM"}, vop={"partyNameMatch": "CMTC"}),
    ),
    _checks(
        "no-match-with-name", "ANNM or NMTC with a name", NO_ANSWER,
        effects.verdict(
            cop={"matched": False, "reasonCode": "ANNM", "name": "Invented Payee"},
            vop={"partyNameMatch": "NMTC", "matchedName": "Invented Payee"},
        ),
    ),
    _checks(
        "match-with-name", "a full match with a name", NO_ANSWER,
        effects.verdict(
            cop={**_TEMPTING_COP, "name": "Invented Payee"},
            vop={**_TEMPTING_VOP, "matchedName": "Invented Payee"},
        ),
    ),
    _cop("matched-as-text", 'matched "true", as text', NO_ANSWER, effects.verdict(cop={"matched": "true"})),
    _cop("matched-as-number", "matched 1", NO_ANSWER, effects.verdict(cop={"matched": 1})),
    _checks(
        "unknown-code", "a code that the reference does not list", NO_ANSWER,
        effects.verdict(cop={"matched": False, "reasonCode": "YESM"}, vop={"partyNameMatch": "FULL"}),
    ),
    _checks(
        "code-in-small-letters", "annm or mtch", NO_ANSWER,
        effects.verdict(cop={"matched": False, "reasonCode": "annm"}, vop={"partyNameMatch": "mtch"}),
    ),
    _checks("no-verdict", "neither a verdict nor a code", NO_ANSWER, effects.verdict(cop={}, vop={})),
    _checks(
        "null-verdict", "null as the verdict", NO_ANSWER,
        effects.verdict(cop={"matched": None}, vop={"partyNameMatch": None}),
    ),
    _vop(
        "verdict-on-both", "verdicts on both name and identification, though only one was requested",
        NO_ANSWER, effects.verdict(vop={**_TEMPTING_VOP, "partyIdMatch": "NMTC"}),
    ),
)  # fmt: skip

_CLOCKS = (
    _checks(
        "no-response-timestamp", "a good answer without X-Response-Timestamp", "uses the answer",
        effects.header(X_Response_Timestamp=None),
    ),
    _checks(
        "odd-response-timestamp", "X-Response-Timestamp: yesterday", "uses the answer",
        effects.header(X_Response_Timestamp="yesterday"),
    ),
    _checks(
        "clock-ahead", "a clock ten minutes ahead", "uses the answer, and reports that a clock is wrong",
        effects.clock(SKEW_S),
    ),
    _checks(
        "clock-behind", "a clock ten minutes behind", "uses the answer, and reports that a clock is wrong",
        effects.clock(-SKEW_S),
    ),
    _checks(
        "clock-days-ahead", "a clock two days ahead",
        "uses the answers; under a daily cap it ends the run once three replies agree",
        effects.clock(2 * _DAY_S),
    ),
    _checks(
        "stamp-18-hours-ago", "X-Response-Timestamp of 18 hours ago", _ONE_STAMP,
        effects.clock(-0.75 * _DAY_S),
    ),
    _checks(
        "stamp-next-summer", "X-Response-Timestamp half a year ahead", _ONE_STAMP, effects.clock(180 * _DAY_S)
    ),
    _checks(
        "stamp-year-1", "X-Response-Timestamp: 0001-01-01T00:00:00.000Z", "uses the answer; moves no cap",
        effects.header(X_Response_Timestamp="0001-01-01T00:00:00.000Z"),
    ),
    _checks(
        "stamp-year-9999", "X-Response-Timestamp: 9999-12-31T23:59:59.999Z", "uses the answer; moves no cap",
        effects.header(X_Response_Timestamp="9999-12-31T23:59:59.999Z"),
    ),
    _checks(
        "timestamp-refused", "400 TIMESTAMP_INVALID, and a clock ten minutes ahead",
        f"{_ONE_OR_ALL}; reports both times",
        effects.problem(400, TIMESTAMP_INVALID, _LATE), effects.clock(SKEW_S),
    ),
    _checks(
        "timestamp-refused-in-detail", "400 FORMAT_ERROR that names X-Request-Timestamp in its detail",
        f"{_ONE_OR_ALL}; reports both times",
        effects.problem(400, ProblemCode.FORMAT_ERROR, _LATE), effects.clock(-SKEW_S),
    ),
)  # fmt: skip

_PROBLEMS = (
    _checks("problem-without-members", "500 with {}", _AGAIN, effects.status(500, b"{}")),
    _checks("problem-not-json", "500 with text", _AGAIN, effects.status(500, b"Internal Server Error")),
    _checks(
        "problem-as-page", "502 with a proxy's page, text/html", _AGAIN,
        effects.status(502), effects.body(b"<html><h1>Bad Gateway</h1></html>", "text/html"),
    ),
    _checks(
        "problem-with-unknown-code", "500 with a code that the reference does not list", _AGAIN,
        effects.status(500, b'{"code":"MISHAP_42","status":500}'),
    ),
    _checks(
        "problem-that-says-match", "500 with the code of a match", f"{_AGAIN}; never a match",
        effects.status(500, b'{"code":"MTCH","status":500}'),
    ),
)  # fmt: skip

_TOKENS = (
    _token(
        "token-down", "the token endpoint closes without an answer",
        "retries a few times; then ends the run before any question, which can be resumed",
        _CLOSED,
    ),
    _token(
        "token-silent", "the token endpoint says nothing for a minute",
        "as token-down, each time at its deadline", _SILENCE,
    ),
    _token("token-slow", "a token after 3 s", "waits for it", effects.pause(3.0)),
    _token("token-500", "500 from the token endpoint", "as token-down", _TECHNICAL),
    _token(
        "token-503-seconds", f"503 with Retry-After: {RETRY_AFTER_S} from the token endpoint",
        "requests no token for that long", _BUSY, effects.retry_after(RETRY_AFTER_S),
    ),
    _token(
        "token-429-date", f"429 from the token endpoint, Retry-After as a date {RETRY_AFTER_S} s from now",
        "requests no token until then", _TOO_MANY, effects.retry_after(RETRY_AFTER_S, as_date=True),
    ),
    _token(
        "token-later", "400 temporarily_unavailable from the token endpoint", "as token-down",
        effects.status(400, b'{"error":"temporarily_unavailable","error_description":"AADSTS90033: later"}'),
    ),
    _token(
        "token-401", "401 from the token endpoint", "asks once more; then ends the run",
        effects.status(401, b'{"error":"invalid_client","error_description":"AADSTS7000215: wrong secret"}'),
    ),
    _token(
        "token-life-as-text", 'a token with expires_in "3599"', "uses it for that long",
        effects.token_said(expires_in="3599"),
    ),
    _token(
        "token-of-endless-life", "a token with an expires_in of 401 digits", "uses it for a day at most",
        effects.token_said(expires_in=10**400),
    ),
    _token(
        "token-page", "200 with a login page from the token endpoint", "ends the run: there is no token",
        effects.body(effects.LOGIN_PAGE, "text/html"),
    ),
    _token(
        "token-without-life", "a token without expires_in", "assumes a life of a few minutes",
        effects.token_said(expires_in=None),
    ),
    _token(
        "token-of-no-life", "a token with expires_in 0", "uses it, and does not fetch one for every question",
        effects.token_said(expires_in=0),
    ),
    _token(
        "token-of-another-type", "a token with token_type mac", "ends the run: there is no token to use",
        effects.token_said(token_type="mac"),  # noqa: S106 (the word of RFC 6749 for another type)
    ),
    _token(
        "token-missing", "an answer without access_token", "ends the run: there is no token",
        effects.token_said(access_token=None),
    ),
    _token(
        "token-forged", "a token that the APIs refuse", "as 401", effects.token_said(access_token="forged"),  # noqa: S106
    ),
)  # fmt: skip

SECTIONS: tuple[tuple[str, tuple[Fault, ...]], ...] = (
    ("Statuses", _STATUSES),
    ("Connections", _CONNECTIONS),
    ("Sizes", _SIZES),
    ("Bodies and headers", _BODIES),
    ("Correlation", _CORRELATION),
    ("Contradictions", _CONTRADICTIONS),
    ("Clocks", _CLOCKS),
    ("Problem details", _PROBLEMS),
    ("Token endpoint", _TOKENS),
)
"""Every fault, by section, in listing order."""

FAULTS = {fault.name: fault for _, section in SECTIONS for fault in section}  # the faults by name

FORM = Sentence("sandbox.fault_form")
_WIDTH = 80


def lines(translate: Callable[[str], str]) -> Iterator[str]:
    """List the faults by section, translated; only names start at the beginning of a line."""
    width = max(map(len, FAULTS))
    server, client = translate("server: "), translate("client: ")
    yield from _beside("--fault ", rendered(FORM, SurfaceKind.COMMAND))
    for title, section in SECTIONS:
        yield ""
        yield translate(title).upper()
        for fault in section:
            yield from _beside(f"{fault.name:<{width}}  {server}", translate(fault.what))
            yield from _beside(f"    {client}", translate(fault.client))


def _beside(head: str, text: str) -> list[str]:
    """Wrap a text for a terminal, to the right of its head."""
    wrapped = wrap(text, _WIDTH - len(head), break_long_words=False, break_on_hyphens=False)
    return [f"{' ' * len(head) if number else head}{line}" for number, line in enumerate(wrapped)]
