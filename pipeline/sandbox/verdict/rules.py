"""The rules: what a correct client does on its connections, in requests and after an answer, and why."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from pipeline.sandbox.client_hello import REFERENCE_SUITES, ClientHello
from pipeline.sandbox.faults.catalogue import FAULTS, NO_ANSWER, SECTIONS
from pipeline.sandbox.journal import TOKEN, Call, Journal, Visit
from pipeline.sandbox.problems import Refusal
from schemas.outcomes import ApiName, Environment

BREACHES_MAX = 20  # how many breaches of a rule are listed; all of them are counted

IN_FLIGHT_S = 0.5  # grace period after an answer, for requests that were already on their way
ATTEMPTS_MAX = 12  # how often a question may be sent in a row; a requested pause resets the count
_TOKEN_IN_FLIGHT_S = 2.0  # after a new token: requests with the old one may be waiting for a connection
_PAUSE_IN_FLIGHT_S = 2.0  # at most, after the server requests a pause: a busy client reads it late
_PUNCTUAL_S = 0.05
_SINGLE_USE_TOKENS_MAX = 4

ECHO_FAULTS = frozenset(fault.name for fault in dict(SECTIONS)["Correlation"])
CONTENT_FAULTS = (
    frozenset(fault.name for fault in FAULTS.values() if fault.reaction.startswith(NO_ANSWER)) - ECHO_FAULTS
)
CONNECTION_FAULTS = frozenset(fault.name for fault in dict(SECTIONS)["Connections"])
_TOKEN_FAULTS = {"token-forged", "tokens-revoked"}
ELSEWHERE = "elsewhere"  # name of the port that redirects lead to
WRONG_PORTS = ("wrong-authority", "expired", "wrong-host", "1.1-only", "other-suite")  # by their TLS fault


class RuleStatus(StrEnum):
    """Whether a client kept a rule."""

    KEPT = "kept"
    BROKEN = "broken"
    NEVER_MET = "never met"


@dataclass(frozen=True, slots=True)
class Judgement:
    """How often a rule was met, and how often it was broken."""

    met_count: int
    breach_count: int = 0
    breaches: tuple[str, ...] = ()  # the first calls or connections that broke the rule

    @property
    def status(self) -> RuleStatus:
        """Kept, broken or never met."""
        if self.breach_count:
            return RuleStatus.BROKEN
        return RuleStatus.KEPT if self.met_count else RuleStatus.NEVER_MET


@dataclass(frozen=True, slots=True)
class Duty:
    """One thing that a correct client does."""

    name: str
    what: str
    source: str  # a part of the API reference, an RFC, or "manners", which are our choice
    judge: Callable[[Journal], Judgement]


def _judged(met_count: int, breaches: Iterable[str]) -> Judgement:
    found = list(breaches)
    return Judgement(met_count, len(found), tuple(found[:BREACHES_MAX]))


def _shown_call(call: Call, note: str = "") -> str:
    moment = datetime.fromtimestamp(call.time, UTC).isoformat(timespec="milliseconds")[11:-6]
    words = [moment, f"connection {call.connection}", call.method, call.path]
    words.append("no whole answer" if call.status is None else str(call.status))
    words += [f"({call.refused})"] if call.refused else []
    words += [f"request id {call.request_id}"] if call.request_id else []
    words += [f"question {call.question[:12]}"] if call.question else []
    words += [f"fault {', '.join(call.faults)}"] if call.faults else []
    return " ".join(filter(None, words)) + (f": {note}" if note else "")


def _shown_visit(visit: Visit, note: str) -> str:
    port = f" to the port {visit.port}" if visit.port else ""
    return f"connection {visit.number}{port}: {note}"


def _never_refused(
    *refusals: Refusal, of: Callable[[Journal], list[Call]] = lambda journal: journal.checks
) -> Callable[[Journal], Judgement]:
    """The rule that no call is refused for any of these reasons."""

    def judge(journal: Journal) -> Judgement:
        calls = of(journal)
        return _judged(len(calls), (_shown_call(call) for call in calls if call.refused in refusals))

    return judge


def _carries_its_token(journal: Journal) -> Judgement:
    calls = [call for call in journal.checks if call.asked is not ApiName.VOP_STANDARD]
    is_forged = any(_TOKEN_FAULTS & set(call.faults) for call in journal.calls)
    wrong = {Refusal.TOKEN_MISSING, Refusal.TOKEN_OF_ANOTHER_SERVER}
    wrong |= set() if is_forged else {Refusal.TOKEN_UNKNOWN}
    return _judged(len(calls), (_shown_call(call) for call in calls if call.refused in wrong))


def _uses_a_correlation_id_once(journal: Journal) -> Judgement:
    calls = [(call.request_id.lower(), call) for call in journal.checks if call.request_id is not None]
    first = dict(reversed(calls))
    again = [call for request_id, call in calls if first[request_id] is not call]
    return _judged(len(calls), map(_shown_call, again))


def _speaks_tls(journal: Journal) -> Judgement:
    plain = [visit for visit in journal.visits if visit.is_plain_http]
    return _judged(len(journal.visits), (_shown_visit(visit, "plain HTTP") for visit in plain))


def _offers_one_of(
    good: Collection[str], offered: Callable[[ClientHello], tuple[str, ...]]
) -> Callable[[Journal], Judgement]:
    """The rule that a client offers one of these TLS versions or suites."""

    def judge(journal: Journal) -> Judgement:
        offers = [(visit, offered(visit.hello)) for visit in journal.visits if visit.hello is not None]
        without = ((visit, words) for visit, words in offers if set(good).isdisjoint(words))
        notes = (
            _shown_visit(visit, f"offers {', '.join(words) or 'nothing known'}") for visit, words in without
        )
        return _judged(len(offers), notes)

    return judge


def _sent_to(port: str, journal: Journal) -> tuple[int, list[Call]]:
    """Return how many connections a port had, and the calls on them."""
    numbers = {visit.number for visit in journal.visits if visit.port == port}
    return len(numbers), [call for call in journal.calls if call.connection in numbers]


def _sends_nothing_to(port: str) -> Callable[[Journal], Judgement]:
    def judge(journal: Journal) -> Judgement:
        connection_count, sent = _sent_to(port, journal)
        return _judged(connection_count, map(_shown_call, sent))

    return judge


def _does_not_pipeline(journal: Journal) -> Judgement:
    calls = [call for call in journal.calls if call.method]
    hurried = [call for call in calls if call.waiting_count]
    return _judged(
        len(calls), (_shown_call(call, f"{call.waiting_count} sent behind it") for call in hurried)
    )


def _follows_no_redirect(journal: Journal) -> Judgement:
    met = [call for call in journal.calls if any(fault.startswith("redirect-") for fault in call.faults)]
    return _judged(len(met), map(_shown_call, _sent_to(ELSEWHERE, journal)[1]))


def _never_repeats_after_400(journal: Journal) -> Judgement:
    refused: dict[str, Call] = {}
    again = []
    for call in journal.checks:
        if call.question in refused and call.monotonic > _end(refused[call.question]):
            again.append(call)
        if (
            call.question
            and call.status == 400
            and (call.refused == Refusal.DOCUMENT or "400" in call.faults)
        ):
            refused.setdefault(call.question, call)
    return _judged(len(refused), map(_shown_call, again))


def _gets_a_new_token_after_401(journal: Journal) -> Judgement:
    refused: dict[str, Call] = {}
    for call in journal.checks:
        if call.token and call.status == 401 and call.refused != Refusal.TOKEN_OF_ANOTHER_SERVER:
            refused.setdefault(call.token, call)
    issued_s = [_end(call) for call in journal.calls if call.api == TOKEN]
    over_s = {}
    for token, call in refused.items():
        renewed_s = next((moment for moment in issued_s if moment > _end(call)), _end(call))
        over_s[token] = renewed_s + _TOKEN_IN_FLIGHT_S
    breaches = [
        _shown_call(call, "with the token that was refused")
        for call in journal.checks
        if call.token in over_s and call.monotonic > over_s[call.token]
    ]
    first = min(refused.values(), key=_end, default=None)
    if first is not None and not any(moment > _end(first) for moment in issued_s):
        breaches.append(_shown_call(first, "no token was asked for afterwards"))
    return _judged(len(refused), breaches)


def _waits_as_asked(journal: Journal) -> Judgement:
    met, early = 0, []
    pauses: dict[tuple[str | None, str | None], list[Call]] = defaultdict(list)
    for call in journal.checks:
        for earlier in pauses[call.role, call.api]:
            asked_s = earlier.retry_after_s or 0.0
            waited_s = call.monotonic - _end(earlier)
            # Only other questions can have been on their way; allow them half of a short pause.
            is_again = call.question is not None and call.question == earlier.question
            spared_s = 0.0 if is_again else min(max(IN_FLIGHT_S, asked_s / 2), _PAUSE_IN_FLIGHT_S)
            if spared_s < waited_s < asked_s - _PUNCTUAL_S:
                early.append(_shown_call(call, f"after {waited_s:.1f} s of {asked_s:.1f} s"))
                break
        if call.retry_after_s is not None:
            met += 1
            pauses[call.role, call.api].append(call)
        if pauses[call.role, call.api]:
            pauses[call.role, call.api] = [
                each
                for each in pauses[call.role, call.api]
                if call.monotonic < _end(each) + (each.retry_after_s or 0.0)
            ]
    return _judged(met, early)


def _asks_again_after(faulty: frozenset[str], *statuses: int) -> Callable[[Journal], Judgement]:
    """The rule that the client repeats a question after a reply with such a fault or status, or stops.

    A question that was sent before the client's last request, and not again, breaks it.
    """

    def judge(journal: Journal) -> Judgement:
        checks = [call for call in journal.checks if call.question]
        latest = {call.question: call for call in checks}
        last_s = max((call.monotonic for call in journal.checks), default=0.0)
        first = {
            call.question: call
            for call in reversed(checks)
            if (call.status in statuses and call.refused is None) or not faulty.isdisjoint(call.faults)
        }
        given_up = (
            _shown_call(call, "not asked again")
            for question, call in first.items()
            if latest[question] is call and last_s > _end(call) + IN_FLIGHT_S
        )
        return _judged(len(first), given_up)

    return judge


def _gives_up_in_the_end(journal: Journal) -> Judgement:
    attempts: dict[str, list[Call]] = defaultdict(list)
    for call in journal.checks:
        if call.question and call.retry_after_s is None and call.status != 200:
            attempts[call.question].append(call)
    repeated = [calls for calls in attempts.values() if len(calls) > 1]
    endless = [calls for calls in repeated if len(calls) > ATTEMPTS_MAX]
    return _judged(len(repeated), (_shown_call(calls[-1], f"attempt {len(calls)}") for calls in endless))


def _waits_for_the_responder(journal: Journal) -> Judgement:
    ends = {visit.number: visit.lasted_until for visit in journal.visits}
    slow, hasty = [], []
    for call in journal.checks:
        wait_s = journal.responder_waits_s.get(call.asked) if call.asked else None
        if wait_s is None or _end(call) - call.monotonic < 0.8 * wait_s:
            continue
        slow.append(call)
        gone = ends.get(call.connection)
        if call.is_abandoned and gone is not None and gone - call.monotonic < wait_s - _PUNCTUAL_S:
            hasty.append(_shown_call(call, f"hung up after {gone - call.monotonic:.1f} s of {wait_s:g} s"))
    return _judged(len(slow), hasty)


def _keeps_no_cookie(journal: Journal) -> Judgement:
    met = [call for call in journal.calls if "set-cookie" in call.faults]
    return _judged(len(met), (_shown_call(call) for call in journal.calls if call.has_cookie))


def _uses_a_token_again(journal: Journal) -> Judgement:
    uses: dict[str, list[Call]] = defaultdict(list)
    for call in journal.checks:
        if call.token and call.status == 200:
            uses[call.token].append(call)
    single = [calls[0] for calls in uses.values() if len(calls) == 1]
    is_habit = len(single) > _SINGLE_USE_TOKENS_MAX
    met = sum(len(calls) > 1 for calls in uses.values()) + len(single) * is_habit
    return _judged(met, map(_shown_call, single if is_habit else ()))


def _end(call: Call) -> float:
    return call.monotonic if call.answered is None else call.answered


def tls_facts(journal: Journal) -> dict[str, list[str]]:
    """TLS parameters that were offered and agreed, each once; for information only."""
    hellos = [visit.hello for visit in journal.visits if visit.hello is not None]
    return {
        "versions offered": _once(version for hello in hellos for version in hello.versions),
        "suites offered": _once(suite for hello in hellos for suite in hello.suites),
        "agreed": _once(f"{visit.version} {visit.suite}" for visit in journal.visits if visit.version),
        "handshakes failed": _once(visit.failure for visit in journal.visits if visit.failure),
    }


def _once(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


_TRANSPORT = "reference, Transport security"
_HEADERS = "reference, Request headers"
_TOKENS = "reference, OAuth 2.0 client credentials"
_MANNERS = "manners"
_R = Refusal


def _standard_checks(journal: Journal) -> list[Call]:
    return [call for call in journal.checks if call.asked is ApiName.VOP_STANDARD]


RULES: tuple[Duty, ...] = (
    Duty("https", "speaks HTTPS and never plain HTTP", "reference, Conventions", _speaks_tls),
    Duty(
        "tls-version", "offers TLS 1.2 or 1.3", _TRANSPORT,
        _offers_one_of({"TLSv1.2", "TLSv1.3"}, lambda hello: hello.versions),
    ),
    Duty(
        "tls-suites", "offers a suite that the reference lists", _TRANSPORT,
        _offers_one_of(REFERENCE_SUITES.values(), lambda hello: hello.suites),
    ),
    *(
        Duty(
            f"tls-{port}",
            f"sends nothing to a server whose TLS is wrong: {port}",
            f"{_TRANSPORT}; RFC 9110, section 4.3.4",
            _sends_nothing_to(port),
        )
        for port in WRONG_PORTS
    ),
    Duty(
        "http", "sends well-formed HTTP/1.1, and in time", "RFC 9112",
        _never_refused(_R.HTTP, _R.SLOW, _R.EXPECTATION, of=lambda journal: journal.calls),
    ),
    Duty(
        "pipelining", "sends no request on a connection before the previous one is answered",
        "RFC 9112, section 9.3.2", _does_not_pipeline,
    ),
    Duty(
        "endpoint", "calls only paths and methods of the reference", "reference, Endpoints",
        _never_refused(_R.PATH, _R.METHOD, of=lambda journal: journal.calls),
    ),
    Duty(
        "token-request", "requests tokens as a known client, with a complete form in the body", _TOKENS,
        _never_refused(
            _R.FORM, _R.QUERY, _R.CLIENT, _R.CONTENT_TYPE,
            of=lambda journal: [call for call in journal.calls if call.api == TOKEN],
        ),
    ),
    Duty("token", "sends a token of this server with every check", _TOKENS, _carries_its_token),
    Duty("token-reuse", "uses a token for more than one question", _MANNERS, _uses_a_token_again),
    Duty(
        "token-renewal", "gets a new token after a 401, and stops using the old one",
        "reference, Errors (CLIENT_INVALID); RFC 6750, section 3.1", _gets_a_new_token_after_401,
    ),
    Duty(
        "client-certificate", "presents a qualified certificate of a participant to VoP Standard",
        "reference, VoP Standard: mutual TLS",
        _never_refused(_R.CERTIFICATE_MISSING, _R.CERTIFICATE, of=_standard_checks),
    ),
    Duty(
        "requesting-bank", "names a BIC that belongs to the participant in its certificate",
        "reference, VoP Standard: mutual TLS",
        _never_refused(_R.REQUESTING_BANK, of=_standard_checks),
    ),
    Duty(
        "correlation-id", "sends a UUID in the header of the API, once", _HEADERS,
        _never_refused(_R.CORRELATION_ID),
    ),
    Duty("correlation-id-once", "sends no correlation id twice", _HEADERS, _uses_a_correlation_id_once),
    Duty(
        "timestamp", "sends X-Request-Timestamp in the form of the reference, from a correct clock",
        _HEADERS, _never_refused(_R.TIMESTAMP),
    ),
    Duty(
        "content-type", "sends JSON in UTF-8 as application/json, not compressed", "reference, Conventions",
        _never_refused(_R.CONTENT_TYPE, _R.CONTENT_ENCODING),
    ),
    Duty(
        "document", "sends only documents whose fields are all valid",
        "reference, Resources and their fields", _never_refused(_R.DOCUMENT),
    ),
    Duty(
        "no-repeat-after-400", "never sends a question again that was refused with 400",
        "reference, Errors (FORMAT_ERROR); RFC 9110, section 15.5.1", _never_repeats_after_400,
    ),
    Duty(
        "retry-after", "sends nothing for as long as Retry-After says", "RFC 9110, section 10.2.3",
        _waits_as_asked,
    ),
    Duty(
        "rate", "keeps to the rate of the server", "reference, Limits",
        _never_refused(_R.RATE, of=lambda journal: journal.checks if journal.has_rate else []),
    ),
    Duty(
        "daily-cap", "keeps to the daily limit of the test server", "reference, Limits",
        _never_refused(
            _R.DAILY_CAP,
            of=lambda journal: [call for call in journal.checks if call.role == Environment.TEST],
        ),
    ),
    Duty(
        "echo", "ignores a reply with another correlation id, or none, and asks again",
        "reference, Response headers", _asks_again_after(ECHO_FAULTS),
    ),
    Duty(
        "content", "ignores a reply that breaks the reference, and asks again",
        "reference, CoP Gateway outcomes and VoP outcomes", _asks_again_after(CONTENT_FAULTS),
    ),
    Duty(
        "retry", "asks again after a technical failure", "reference, Errors (500, 502, 504)",
        _asks_again_after(CONNECTION_FAULTS, 500, 502, 503, 504),
    ),
    Duty(
        "retry-limit", f"sends a question at most {ATTEMPTS_MAX} times without an answer", _MANNERS,
        _gives_up_in_the_end,
    ),
    Duty(
        "responder-wait", "waits for as long as the gateway waits for a responder",
        "reference, Limits (responder wait)", _waits_for_the_responder,
    ),
    Duty("cookie", "keeps no cookie", _MANNERS, _keeps_no_cookie),
    Duty(
        "redirect", "follows no redirect with a payee and a token", "RFC 9110, section 15.4",
        _follows_no_redirect,
    ),
)  # fmt: skip
"""Every rule, in the order of the verdict."""


def judge(journal: Journal) -> list[tuple[Duty, Judgement]]:
    """Judge a journal by every rule; calls are recorded when answered, but judged in order of arrival."""
    in_order = replace(journal, calls=sorted(journal.calls, key=lambda call: call.monotonic))
    return [(rule, rule.judge(in_order)) for rule in RULES]
