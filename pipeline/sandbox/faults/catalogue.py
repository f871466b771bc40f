"""The table of faults: the effects of each, and how a correct client reacts.

The catalogues `fault.po` and `reaction.po` say what the server does, and what each reaction is.
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
_FIGURES = {"pause_s": RETRY_AFTER_S, "drip_s": _DRIP_S, "size_mib": effects.PADDING_BYTES // 2**20}
"""The values in the sentences about faults."""

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
    reaction: str  # the name of a correct client's reaction
    effects: tuple[Effect, ...]

    @property
    def what(self) -> Sentence:
        """What the server does."""
        return Sentence(f"fault.{self.name.replace('-', '_')}", **_FIGURES)

    @property
    def client(self) -> Sentence:
        """How a correct client reacts."""
        return Sentence(f"reaction.{self.reaction}")

    @property
    def befalls_checks(self) -> bool:
        """True if the fault affects checks rather than token requests or connections."""
        return self.reach not in {Reach.TOKENS, Reach.CONNECTIONS}

    def befalls(self, api: ApiName | None) -> bool:
        """True if the fault can affect requests to this API; None means the token endpoint."""
        return api in self.reach.value


NO_ANSWER = "no_answer"  # the start of reactions to a reply that is no answer
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


def _fault(reach: Reach, name: str, reaction: str, *effects: Effect) -> Fault:
    return Fault(name, reach, reaction, effects)


_checks, _cop = partial(_fault, Reach.CHECKS), partial(_fault, Reach.COP)
_vop, _token = partial(_fault, Reach.VOP), partial(_fault, Reach.TOKENS)

_STATUSES = (
    _checks("400", "never_again", _MALFORMED),
    _checks("html-400", "one_or_all", effects.status(400), effects.body(effects.REFUSAL_PAGE, "text/html")),
    _checks(
        "client-invalid-400",
        "one_or_all",
        effects.problem(400, ProblemCode.CLIENT_INVALID, "the client is not known"),
    ),
    _checks("431", "one_or_all", effects.status(431), effects.body(b"<h1>431</h1>", "text/html")),
    _checks("401", "new_token_then_one_or_all", _REFUSED_TOKEN),
    _checks("tokens-revoked", "new_token", effects.revocation(), _REFUSED_TOKEN),
    _checks("403", "one_or_all", effects.status(403, b'{"status":403,"title":"Forbidden"}')),
    _checks("404", "one_or_all", effects.status(404, b'{"status":404,"title":"Not Found"}')),
    _checks("429-seconds", "pause_then_one", _TOO_MANY, effects.retry_after(RETRY_AFTER_S)),
    _checks("429-date", "pause_until_then_one", _TOO_MANY, effects.retry_after(RETRY_AFTER_S, as_date=True)),
    _checks("429-hours", "later_run", _TOO_MANY, effects.retry_after(24 * 3600)),
    _checks("503-seconds", "pause", _BUSY, effects.retry_after(RETRY_AFTER_S)),
    _checks("503-date", "pause_until", _BUSY, effects.retry_after(RETRY_AFTER_S, as_date=True)),
    _checks("503-doubled", "longer_pause", _BUSY, effects.header(Retry_After=f"0.5, {RETRY_AFTER_S}.0")),
    _checks(
        "503-year-9999999999",
        "again",
        _BUSY,
        effects.header(Retry_After="Thu, 01 Jan 9999999999 00:00:00 GMT"),
    ),
    _checks("500", "again", _TECHNICAL),
    _checks(
        "502",
        "again",
        effects.problem(502, ProblemCode.SSL_ERROR, "the TLS handshake with the responder failed"),
    ),
    _checks("503", "again", _BUSY),
    _checks("504", "again", _TIMEOUT),
    _checks("504-after-wait", "waits_then_again", effects.pause(), _TIMEOUT),
    _checks("outage", "probes", _BUSY),
)

_CONNECTIONS = (
    _checks("reset-before-headers", "again", replace(_CLOSED, is_reset=True)),
    _checks("reset-after-headers", "again", Delivery(lambda head, _body: [head], is_reset=True)),
    _checks("truncated-body", "again", Delivery(lambda head, body: [head + body[: len(body) // 2]])),
    _checks("closed-without-answer", "again", _CLOSED),
    _checks("silence", "stops_waiting", _SILENCE),
    _checks(
        "slow-body", "stops_reading", Delivery(lambda head, body: [head, *effects.by_bytes(body)], _DRIP_S)
    ),
    _checks(
        "slow-headers", "stops_reading", Delivery(lambda head, body: effects.by_bytes(head + body), _DRIP_S)
    ),
    _fault(Reach.CONNECTIONS, "half-close", "does_not_wait", ConnectionFault.HALF_CLOSE),
    _fault(Reach.CONNECTIONS, "close-in-handshake", "ends_run", ConnectionFault.CLOSE_IN_HANDSHAKE),
    _fault(Reach.CONNECTIONS, "late-client-certificate", "presents_it", ConnectionFault.LATE_CERTIFICATE),
)

_SIZES = (
    _checks("oversized-body", "no_answer_read_early", effects.rewritten(effects.padded)),
    _checks("gzip-body", "no_answer", effects.rewritten(gzip.compress, Content_Encoding="gzip")),
    _checks("gzip-bomb", "no_answer_unpacked", effects.rewritten(effects.bomb, Content_Encoding="gzip")),
    _checks("header-bomb", "no_answer_read_early", effects.header(X_Padding=effects.HEADER_PADDING)),
)

_BODIES = (
    _checks(
        "duplicate-keys",
        "no_answer",
        effects.written(
            cop=b'{"matched":false,"reasonCode":"ANNM","matched":true}',
            vop=b'{"partyNameMatch":"NMTC","partyNameMatch":"MTCH"}',
        ),
    ),
    _checks(
        "not-a-number",
        "no_answer",
        effects.written(cop=b'{"matched":true,"score":NaN}', vop=b'{"partyNameMatch":"MTCH","score":NaN}'),
    ),
    _checks("deep-nesting", "no_answer", effects.body(b"[" * 30_000 + b"]" * 30_000)),
    _checks("not-json", "no_answer", effects.body(b"matched=true MTCH")),
    _checks("empty-body", "no_answer", effects.body(b"")),
    _checks("two-documents", "no_answer", effects.rewritten(lambda content: content + content)),
    _checks("html-page", "no_answer", effects.body(effects.LOGIN_PAGE, "text/html")),
    _checks("no-content-type", "no_answer", effects.header(Content_Type=None)),
    _checks("redirect-307", "sends_nothing_there", effects.redirect(307)),
    _checks("redirect-302", "sends_nothing_there", effects.redirect(302)),
    _checks("set-cookie", "no_cookie", effects.header(Set_Cookie="sid=1; Path=/; Secure")),
)

_CORRELATION = (
    _checks("missing-echo", "no_answer_elsewhere", effects.echo(missing=True)),
    _checks("wrong-echo", "no_answer_or_ends_run", effects.echo()),
    _checks("swapped-answers", "no_answer_or_ends_run", effects.swap()),
    _checks("foreign-id-400", "rejects_no_row", _MALFORMED, effects.echo()),
    _checks("no-id-400", "once_more_alone", _MALFORMED, effects.echo(missing=True)),
    _checks(
        "unasked-400",
        "uses_answer_alone",
        Delivery(lambda head, body: [head + body, _UNASKED, *[b""] * 100], 0.05),
    ),
    _checks("doubled-echo", "uses_answer", effects.doubled_echo()),
)

_CONTRADICTIONS = (
    _cop(
        "matched-with-reason-code", "no_answer", effects.verdict(cop={**_TEMPTING_COP, "reasonCode": "ANNM"})
    ),
    _cop("unmatched-without-reason-code", "no_answer", effects.verdict(cop={"matched": False})),
    _checks(
        "close-match-without-name",
        "no_answer",
        effects.verdict(cop={"matched": False, "reasonCode": "MBAM"}, vop={"partyNameMatch": "CMTC"}),
    ),
    _checks(
        "no-match-with-name",
        "no_answer",
        effects.verdict(
            cop={"matched": False, "reasonCode": "ANNM", "name": "Invented Payee"},
            vop={"partyNameMatch": "NMTC", "matchedName": "Invented Payee"},
        ),
    ),
    _checks(
        "match-with-name",
        "no_answer",
        effects.verdict(
            cop={**_TEMPTING_COP, "name": "Invented Payee"},
            vop={**_TEMPTING_VOP, "matchedName": "Invented Payee"},
        ),
    ),
    _cop("matched-as-text", "no_answer", effects.verdict(cop={"matched": "true"})),
    _cop("matched-as-number", "no_answer", effects.verdict(cop={"matched": 1})),
    _checks(
        "unknown-code",
        "no_answer",
        effects.verdict(cop={"matched": False, "reasonCode": "YESM"}, vop={"partyNameMatch": "FULL"}),
    ),
    _checks(
        "code-in-small-letters",
        "no_answer",
        effects.verdict(cop={"matched": False, "reasonCode": "annm"}, vop={"partyNameMatch": "mtch"}),
    ),
    _checks("no-verdict", "no_answer", effects.verdict(cop={}, vop={})),
    _checks(
        "null-verdict", "no_answer", effects.verdict(cop={"matched": None}, vop={"partyNameMatch": None})
    ),
    _vop("verdict-on-both", "no_answer", effects.verdict(vop={**_TEMPTING_VOP, "partyIdMatch": "NMTC"})),
)

_CLOCKS = (
    _checks("no-response-timestamp", "uses_answer", effects.header(X_Response_Timestamp=None)),
    _checks("odd-response-timestamp", "uses_answer", effects.header(X_Response_Timestamp="yesterday")),
    _checks("clock-ahead", "reports_clock", effects.clock(SKEW_S)),
    _checks("clock-behind", "reports_clock", effects.clock(-SKEW_S)),
    _checks("clock-days-ahead", "ends_under_cap", effects.clock(2 * _DAY_S)),
    _checks("stamp-18-hours-ago", "one_stamp", effects.clock(-0.75 * _DAY_S)),
    _checks("stamp-next-summer", "one_stamp", effects.clock(180 * _DAY_S)),
    _checks("stamp-year-1", "moves_no_cap", effects.header(X_Response_Timestamp="0001-01-01T00:00:00.000Z")),
    _checks(
        "stamp-year-9999", "moves_no_cap", effects.header(X_Response_Timestamp="9999-12-31T23:59:59.999Z")
    ),
    _checks(
        "timestamp-refused",
        "reports_both_times",
        effects.problem(400, TIMESTAMP_INVALID, _LATE),
        effects.clock(SKEW_S),
    ),
    _checks(
        "timestamp-refused-in-detail",
        "reports_both_times",
        effects.problem(400, ProblemCode.FORMAT_ERROR, _LATE),
        effects.clock(-SKEW_S),
    ),
)

_PROBLEMS = (
    _checks("problem-without-members", "again", effects.status(500, b"{}")),
    _checks("problem-not-json", "again", effects.status(500, b"Internal Server Error")),
    _checks(
        "problem-as-page",
        "again",
        effects.status(502),
        effects.body(b"<html><h1>Bad Gateway</h1></html>", "text/html"),
    ),
    _checks("problem-with-unknown-code", "again", effects.status(500, b'{"code":"MISHAP_42","status":500}')),
    _checks(
        "problem-that-says-match", "again_never_match", effects.status(500, b'{"code":"MTCH","status":500}')
    ),
)

_TOKENS = (
    _token("token-down", "ends_before_questions", _CLOSED),
    _token("token-silent", "as_token_down_late", _SILENCE),
    _token("token-slow", "waits_for_it", effects.pause(3.0)),
    _token("token-500", "as_token_down", _TECHNICAL),
    _token("token-503-seconds", "token_pause", _BUSY, effects.retry_after(RETRY_AFTER_S)),
    _token(
        "token-429-date", "token_pause_until", _TOO_MANY, effects.retry_after(RETRY_AFTER_S, as_date=True)
    ),
    _token(
        "token-later",
        "as_token_down",
        effects.status(400, b'{"error":"temporarily_unavailable","error_description":"AADSTS90033: later"}'),
    ),
    _token(
        "token-401",
        "once_more",
        effects.status(401, b'{"error":"invalid_client","error_description":"AADSTS7000215: wrong secret"}'),
    ),
    _token("token-life-as-text", "uses_it", effects.token_said(expires_in="3599")),
    _token("token-of-endless-life", "uses_it_a_day", effects.token_said(expires_in=10**400)),
    _token("token-page", "no_token", effects.body(effects.LOGIN_PAGE, "text/html")),
    _token("token-without-life", "assumes_life", effects.token_said(expires_in=None)),
    _token("token-of-no-life", "uses_it_again", effects.token_said(expires_in=0)),
    _token(
        "token-of-another-type",
        "no_token_to_use",
        effects.token_said(token_type="mac"),  # noqa: S106 (the word of RFC 6749 for another type)
    ),
    _token("token-missing", "no_token", effects.token_said(access_token=None)),
    _token(
        "token-forged",
        "as_401",
        effects.token_said(access_token="forged"),  # noqa: S106
    ),
)

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
            yield from _beside(f"{fault.name:<{width}}  {server}", rendered(fault.what, SurfaceKind.COMMAND))
            yield from _beside(f"    {client}", rendered(fault.client, SurfaceKind.COMMAND))


def _beside(head: str, text: str) -> list[str]:
    """Wrap a text for a terminal, to the right of its head."""
    wrapped = wrap(text, _WIDTH - len(head), break_long_words=False, break_on_hyphens=False)
    return [f"{' ' * len(head) if number else head}{line}" for number, line in enumerate(wrapped)]
