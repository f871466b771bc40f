"""The rules of a request: its form, its headers, who sends it."""

from collections.abc import Callable

from pipeline.sandbox.calls import TOKEN, Call
from pipeline.sandbox.journal import Journal
from pipeline.sandbox.problems import Refusal
from pipeline.sandbox.verdict.judgement import Judgement, checks, judged, shown_call
from schemas.outcomes import ApiName

_TOKEN_FAULTS = {"token-forged", "tokens-revoked"}


def never_refused(*refusals: Refusal, of: Callable[[Journal], list[Call]]) -> Callable[[Journal], Judgement]:
    """The rule that none of some calls is refused for one of these reasons."""

    def judge(journal: Journal) -> Judgement:
        calls = of(journal)
        return judged(len(calls), (shown_call(call) for call in calls if call.refused in refusals))

    return judge


def all_calls(journal: Journal) -> list[Call]:
    """Every call, also what was no HTTP."""
    return journal.calls


def token_calls(journal: Journal) -> list[Call]:
    """The calls for a token."""
    return [call for call in journal.calls if call.api == TOKEN]


def gateway_checks(journal: Journal) -> list[Call]:
    """The checks that carry a token."""
    return [call for call in checks(journal) if call.asked is not ApiName.VOP_STANDARD]


def standard_checks(journal: Journal) -> list[Call]:
    """The checks that come with a certificate."""
    return [call for call in checks(journal) if call.asked is ApiName.VOP_STANDARD]


def carries_its_token(journal: Journal) -> Judgement:
    """Every check of a gateway carries a token of this issuer for this server."""
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
