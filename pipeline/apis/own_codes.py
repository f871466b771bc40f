"""Explain why a payment has no answer, by our own code or the service's (API reference, "Errors").

For other codes that a server sends, only the state of the question is explained.
"""

from collections.abc import Mapping

from pipeline.apis import RETRY_HERE, Basis
from pipeline.frames import AnswerState, Meaning, OwnCode
from pipeline.wording import Sentence
from schemas.outcomes import Action, Outcome

REFUSED = Meaning(
    Outcome.REJECTED,
    Action.CORRECT_ROW,
    Sentence("answer.refused"),
    Sentence("explain.no_bank_was_asked"),
    Sentence("explain.correct_row_or_ask_provider"),
)
TOO_LARGE, WRONG_FORM = "HTTP_413", "HTTP_415"
_ASK_PROVIDER = Sentence("explain.ask_provider")
_THREE_RUNS = Sentence("explain.run_again_three_times")
_NOTHING_HEARD = Sentence("explain.nothing_heard")


def _deferred(reason: Sentence, advice: Sentence = RETRY_HERE) -> Meaning:
    not_said = Sentence("explain.row_not_asked")
    return Meaning(Outcome.DEFERRED, Action.RETRY_LATER, reason, not_said, advice)


def _unanswered(
    reason: Sentence, not_said: Sentence = _NOTHING_HEARD, advice: Sentence = RETRY_HERE
) -> Meaning:
    return Meaning(Outcome.UNANSWERED, Action.RETRY_LATER, reason, not_said, advice)


def _not_let_in(reason: Sentence) -> Meaning:
    return _unanswered(reason, Sentence("explain.filter_may_have_refused"), _THREE_RUNS)


STATUSES_TURNED_AWAY = (400, 401, 403, 404, 405, 406, 407, 410, 421, 431, 451)
_TURNED_AWAY = {
    **{f"HTTP_{status}": Sentence(f"answer.http_{status}") for status in STATUSES_TURNED_AWAY},
    **{f"HTTP_{status}": Sentence("answer.http_3xx", status=status) for status in (301, 302, 303, 307, 308)},
}
"""HTTP status that refuses access -> the key of the sentence about what the server did."""


def _not_the_row(reason: Sentence) -> Meaning:
    return Meaning(
        Outcome.REJECTED, Action.CORRECT_ROW, reason, Sentence("explain.row_not_to_blame"), _ASK_PROVIDER
    )


BY_STATE: Mapping[AnswerState, Meaning] = {
    AnswerState.REFUSED: REFUSED,
    AnswerState.UNANSWERED: _unanswered(Sentence("answer.unanswered")),
    AnswerState.DEFERRED: _deferred(Sentence("answer.deferred")),
}
"""The meaning of a state, for codes that have no meaning of their own."""

_NEXT_REPORT = Sentence("explain.import_next_report")
_ASK_BANK = Sentence("explain.ask_bank_or_run")
_NOT_REPORTED, _NOT_USED = Sentence("explain.not_reported"), Sentence("explain.report_not_used")
OF_REPORTS: Mapping[str, Meaning] = {
    OwnCode.NOT_IN_REPORT: _unanswered(Sentence("answer.not_in_report"), _NOT_REPORTED, _NEXT_REPORT),
    OwnCode.REPORT_AMBIGUOUS: _unanswered(Sentence("answer.report_ambiguous"), _NOT_USED, _ASK_BANK),
    OwnCode.REPORT_DIFFERS: _unanswered(Sentence("answer.report_differs"), _NOT_USED, _ASK_BANK),
    OwnCode.REPORT_STATUS: _unanswered(Sentence("answer.report_status"), _NOT_USED, _ASK_BANK),
    OwnCode.PDNG: _unanswered(Sentence("answer.pdng"), _NOT_REPORTED, _NEXT_REPORT),
    OwnCode.RVNC: _unanswered(Sentence("answer.rvnc"), _NOT_REPORTED, _ASK_BANK),
}
"""The meaning of payments that a bank's report does not answer."""

_OF_STATES: Mapping[AnswerState, Mapping[str, Meaning]] = {
    AnswerState.DEFERRED: {
        OwnCode.DAILY_CAP: _deferred(
            Sentence("answer.daily_cap"), Sentence("explain.run_again_next_cap_day")
        ),
        OwnCode.SERVER_PAUSE: _deferred(
            Sentence("answer.server_pause"), Sentence("explain.run_again_in_an_hour")
        ),
        OwnCode.LIMIT: _deferred(Sentence("answer.limit"), Sentence("explain.run_again_with_higher_limit")),
        OwnCode.TURNED_AWAY: _deferred(
            Sentence("answer.turned_away"), Sentence("explain.status_reported_test_profile")
        ),
        OwnCode.RUN_ENDED: _deferred(Sentence("answer.run_ended")),
    },
    AnswerState.UNANSWERED: {
        OwnCode.RUN_ENDED: _unanswered(Sentence("answer.run_ended_in_flight")),
        OwnCode.CONTRACT: _unanswered(
            Sentence("answer.contract"), Sentence("explain.reply_not_used"), _THREE_RUNS
        ),
        OwnCode.CLOCK: _not_let_in(Sentence("answer.clock")),
        **{code: _not_let_in(text) for code, text in _TURNED_AWAY.items()},
        OwnCode.NETWORK: _unanswered(Sentence("answer.network")),
        OwnCode.DEADLINE: _unanswered(Sentence("answer.deadline")),
        "TIMEOUT_ERROR": _unanswered(Sentence("answer.timeout_error"), Sentence("explain.bank_was_silent")),
        "SSL_ERROR": _unanswered(Sentence("answer.ssl_error"), Sentence("explain.not_your_connection")),
        "SERVER_ERROR": _unanswered(Sentence("answer.server_error")),
        "CLIENT_INVALID": _unanswered(
            Sentence("answer.client_invalid"),
            Sentence("explain.status_401_has_own_code"),
            Sentence("explain.run_doctor"),
        ),
        **OF_REPORTS,
    },
    AnswerState.REFUSED: {
        "FORMAT_ERROR": REFUSED,
        TOO_LARGE: _not_the_row(Sentence("answer.http_413")),
        WRONG_FORM: _not_the_row(Sentence("answer.http_415")),
    },
}
MEANINGS: Mapping[tuple[AnswerState, str], Meaning] = {
    (state, code): meaning for state, meanings in _OF_STATES.items() for code, meaning in meanings.items()
}
"""The meaning of a code in a state; in other states the same code is unknown."""


def meaning_of(
    answers: Mapping[tuple[Basis, str], Meaning], basis: Basis, state: AnswerState, code: str
) -> Meaning:
    """Return what a code means in this state; an answered code without a meaning is a bug of ours."""
    if state in (AnswerState.ANSWERED, AnswerState.REUSED):
        assert (basis, code) in answers, "a code that no table knows was accepted"
        return answers[basis, code]
    return MEANINGS.get((state, code), BY_STATE[state])
