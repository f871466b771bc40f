"""Rules for a client's next action: after an error, a refusal, or an impossible answer."""

from collections import defaultdict
from collections.abc import Callable, Collection

from pipeline.sandbox.faults.catalogue import FAULTS, NO_ANSWER, SECTIONS
from pipeline.sandbox.journal import TOKEN, Call, Journal
from pipeline.sandbox.problems import Refusal
from pipeline.sandbox.verdict.judgement import Judgement, checks, judged, shown_call

IN_FLIGHT_S = 0.5
"""Grace period after an answer, for requests that were already on their way."""
ATTEMPTS_MAX = 12
"""How often a question may be sent in a row; a pause requested by the server resets the count."""
_TOKEN_IN_FLIGHT_S = 2.0
"""Grace period after a new token: requests with the old one may have been waiting for a connection."""
_PAUSE_IN_FLIGHT_S = 2.0
"""Maximum grace period after the server requests a pause: a busy client reads the answer late."""
_PUNCTUAL_S = 0.05
_SINGLE_USE_TOKENS_MAX = 4

ECHO_FAULTS = frozenset(fault.name for fault in dict(SECTIONS)["Correlation"])
CONTENT_FAULTS = frozenset(fault.name for fault in FAULTS.values() if NO_ANSWER in fault.client) - ECHO_FAULTS
CONNECTION_FAULTS = frozenset(fault.name for fault in dict(SECTIONS)["Connections"])
_FAILURES = (500, 502, 503, 504)


def never_repeats_after_400(journal: Journal) -> Judgement:
    """A question refused with 400 is not sent again."""
    refused: dict[str, Call] = {}
    again = []
    for call in checks(journal):
        if call.question in refused and call.monotonic > _end(refused[call.question]):
            again.append(call)
        if (
            call.question
            and call.status == 400
            and (call.refused == Refusal.DOCUMENT or "400" in call.faults)
        ):
            refused.setdefault(call.question, call)
    return judged(len(refused), map(shown_call, again))


def gets_a_new_token_after_401(journal: Journal) -> Judgement:
    """A refused token is not used again; the client requests a new one."""
    refused: dict[str, Call] = {}
    for call in checks(journal):
        if call.token and call.status == 401 and call.refused != Refusal.TOKEN_OF_ANOTHER_SERVER:
            refused.setdefault(call.token, call)
    issued_s = [_end(call) for call in journal.calls if call.api == TOKEN]
    over_s = {}
    for token, call in refused.items():
        renewed_s = next((moment for moment in issued_s if moment > _end(call)), _end(call))
        over_s[token] = renewed_s + _TOKEN_IN_FLIGHT_S
    breaches = [
        shown_call(call, "with the token that was refused")
        for call in checks(journal)
        if call.token in over_s and call.monotonic > over_s[call.token]
    ]
    first = min(refused.values(), key=_end, default=None)
    if first is not None and not any(moment > _end(first) for moment in issued_s):
        breaches.append(shown_call(first, "no token was asked for afterwards"))
    return judged(len(refused), breaches)


def waits_as_asked(journal: Journal) -> Judgement:
    """After 429 or 503 with Retry-After, no request goes to that API for the stated time."""
    met, early = 0, []
    pauses: dict[tuple[str | None, str | None], list[Call]] = defaultdict(list)
    for call in checks(journal):
        for earlier in pauses[call.role, call.api]:
            asked_s = earlier.retry_after_s or 0.0
            waited_s = call.monotonic - _end(earlier)
            # Only other questions can have been on their way; allow them half of a short pause.
            is_again = call.question is not None and call.question == earlier.question
            spared_s = 0.0 if is_again else min(max(IN_FLIGHT_S, asked_s / 2), _PAUSE_IN_FLIGHT_S)
            if spared_s < waited_s < asked_s - _PUNCTUAL_S:
                early.append(shown_call(call, f"after {waited_s:.1f} s of {asked_s:.1f} s"))
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
    return judged(met, early)


def asks_again_after(faulty: Collection[str]) -> Callable[[Journal], Judgement]:
    """The rule that the client repeats a question after a reply with one of these faults, or stops."""

    def judge(journal: Journal) -> Judgement:
        spoilt = [call for call in checks(journal) if not set(faulty).isdisjoint(call.faults)]
        return _asked_again(journal, spoilt)

    return judge


def asks_again_after_a_failure(journal: Journal) -> Judgement:
    """After a technical failure, the client repeats the question or stops."""
    failed = [
        call
        for call in checks(journal)
        if (call.status in _FAILURES and call.refused is None)
        or not CONNECTION_FAULTS.isdisjoint(call.faults)
    ]
    return _asked_again(journal, failed)


def gives_up_in_the_end(journal: Journal) -> Judgement:
    """The client does not repeat a question endlessly."""
    attempts: dict[str, list[Call]] = defaultdict(list)
    for call in checks(journal):
        if call.question and call.retry_after_s is None and call.status != 200:
            attempts[call.question].append(call)
    repeated = [calls for calls in attempts.values() if len(calls) > 1]
    endless = [calls for calls in repeated if len(calls) > ATTEMPTS_MAX]
    return judged(len(repeated), (shown_call(calls[-1], f"attempt {len(calls)}") for calls in endless))


def waits_for_the_responder(journal: Journal) -> Judgement:
    """The client keeps the connection open while the gateway waits for the responder."""
    ends = {visit.number: visit.lasted_until for visit in journal.visits}
    slow, hasty = [], []
    for call in checks(journal):
        wait_s = journal.responder_waits_s.get(call.asked) if call.asked else None
        if wait_s is None or _end(call) - call.monotonic < 0.8 * wait_s:
            continue
        slow.append(call)
        gone = ends.get(call.connection)
        if call.is_abandoned and gone is not None and gone - call.monotonic < wait_s - _PUNCTUAL_S:
            hasty.append(shown_call(call, f"hung up after {gone - call.monotonic:.1f} s of {wait_s:g} s"))
    return judged(len(slow), hasty)


def keeps_no_cookie(journal: Journal) -> Judgement:
    """The client does not return the server's cookies."""
    met = [call for call in journal.calls if "set-cookie" in call.faults]
    return judged(len(met), (shown_call(call) for call in journal.calls if call.has_cookie))


def uses_a_token_again(journal: Journal) -> Judgement:
    """Each token serves many questions, not just one."""
    uses: dict[str, list[Call]] = defaultdict(list)
    for call in checks(journal):
        if call.token and call.status == 200:
            uses[call.token].append(call)
    single = [calls[0] for calls in uses.values() if len(calls) == 1]
    is_habit = len(single) > _SINGLE_USE_TOKENS_MAX
    met = sum(len(calls) > 1 for calls in uses.values()) + len(single) * is_habit
    return judged(met, map(shown_call, single if is_habit else ()))


def _asked_again(journal: Journal, spoilt: list[Call]) -> Judgement:
    """Require that these questions are sent once more, except those after the client's last request."""
    latest = {call.question: call for call in checks(journal) if call.question}
    last_s = max((call.monotonic for call in checks(journal)), default=0.0)
    first = {call.question: call for call in reversed(spoilt) if call.question}
    given_up = [
        call
        for question, call in first.items()
        if latest[question] is call and last_s > _end(call) + IN_FLIGHT_S
    ]
    return judged(len(first), (shown_call(call, "not asked again") for call in given_up))


def _end(call: Call) -> float:
    return call.monotonic if call.answered is None else call.answered
