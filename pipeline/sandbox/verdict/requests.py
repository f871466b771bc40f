"""Rules for connections and TLS, and for the form, headers and sender of requests."""

from collections.abc import Callable, Iterable

from pipeline.sandbox.client_hello import REFERENCE_SUITES
from pipeline.sandbox.journal import TOKEN, Call, Journal
from pipeline.sandbox.problems import Refusal
from pipeline.sandbox.verdict.judgement import Judgement, checks, judged, shown_call, shown_visit
from schemas.outcomes import ApiName, Environment

_TOKEN_FAULTS = {"token-forged", "tokens-revoked"}


def never_refused(*refusals: Refusal, of: Callable[[Journal], list[Call]]) -> Callable[[Journal], Judgement]:
    """The rule that no call is refused for any of these reasons."""

    def judge(journal: Journal) -> Judgement:
        calls = of(journal)
        return judged(len(calls), (shown_call(call) for call in calls if call.refused in refusals))

    return judge


def all_calls(journal: Journal) -> list[Call]:
    """Every call, including those that were not HTTP."""
    return journal.calls


def token_calls(journal: Journal) -> list[Call]:
    """Token requests."""
    return [call for call in journal.calls if call.api == TOKEN]


def gateway_checks(journal: Journal) -> list[Call]:
    """Checks that use a token."""
    return [call for call in checks(journal) if call.asked is not ApiName.VOP_STANDARD]


def standard_checks(journal: Journal) -> list[Call]:
    """Checks that use a client certificate."""
    return [call for call in checks(journal) if call.asked is ApiName.VOP_STANDARD]


def rated_checks(journal: Journal) -> list[Call]:
    """Checks on a server with a rate limit."""
    return checks(journal) if journal.has_rate else []


def capped_checks(journal: Journal) -> list[Call]:
    """Checks on the test server, which has a daily cap."""
    return [call for call in checks(journal) if call.role == Environment.TEST]


def carries_its_token(journal: Journal) -> Judgement:
    """Every gateway check carries a token that this issuer made for this server."""
    calls = gateway_checks(journal)
    is_forged = any(_TOKEN_FAULTS & set(call.faults) for call in journal.calls)
    wrong = {Refusal.TOKEN_MISSING, Refusal.TOKEN_OF_ANOTHER_SERVER}
    wrong |= set() if is_forged else {Refusal.TOKEN_UNKNOWN}
    return judged(len(calls), (shown_call(call) for call in calls if call.refused in wrong))


def uses_a_correlation_id_once(journal: Journal) -> Judgement:
    """No correlation id is sent twice."""
    seen: set[str] = set()
    again, met = [], 0
    for call in checks(journal):
        if call.request_id is not None:
            met += 1
            if call.request_id.lower() in seen:
                again.append(call)
            seen.add(call.request_id.lower())
    return judged(met, map(shown_call, again))


ELSEWHERE = "elsewhere"
"""Name of the port that redirects lead to."""


def speaks_tls(journal: Journal) -> Judgement:
    """Every connection begins with TLS."""
    plain = [visit for visit in journal.visits if visit.is_plain_http]
    return judged(len(journal.visits), (shown_visit(visit, "plain HTTP") for visit in plain))


def offers_tls_1_2(journal: Journal) -> Judgement:
    """Every ClientHello offers TLS 1.2 or 1.3."""
    greeted = [(visit, visit.hello) for visit in journal.visits if visit.hello is not None]
    old = [(visit, hello) for visit, hello in greeted if not hello.is_modern]
    notes = (
        shown_visit(visit, f"offers {', '.join(hello.versions) or 'nothing known'}") for visit, hello in old
    )
    return judged(len(greeted), notes)


def offers_a_listed_suite(journal: Journal) -> Judgement:
    """Every ClientHello offers a suite of the reference."""
    greeted = [(visit, visit.hello) for visit in journal.visits if visit.hello is not None]
    without = [
        (visit, hello) for visit, hello in greeted if not set(REFERENCE_SUITES.values()) & set(hello.suites)
    ]
    notes = (shown_visit(visit, f"offers {', '.join(hello.suites)}") for visit, hello in without)
    return judged(len(greeted), notes)


def sends_nothing_to(port: str) -> Callable[[Journal], Judgement]:
    """The rule that no request is sent to a port whose TLS is faulty."""

    def judge(journal: Journal) -> Judgement:
        numbers = {visit.number for visit in journal.visits if visit.port == port}
        sent = [call for call in journal.calls if call.connection in numbers]
        return judged(len(numbers), map(shown_call, sent))

    return judge


def does_not_pipeline(journal: Journal) -> Judgement:
    """No request is sent on a connection before the previous one is answered."""
    calls = [call for call in journal.calls if call.method]
    hurried = [call for call in calls if call.waiting_count]
    return judged(len(calls), (shown_call(call, f"{call.waiting_count} sent behind it") for call in hurried))


def follows_no_redirect(journal: Journal) -> Judgement:
    """No request follows a redirect."""
    met = [call for call in journal.calls if any(fault.startswith("redirect-") for fault in call.faults)]
    numbers = {visit.number for visit in journal.visits if visit.port == ELSEWHERE}
    return judged(len(met), (shown_call(call) for call in journal.calls if call.connection in numbers))


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
