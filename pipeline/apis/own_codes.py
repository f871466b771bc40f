"""The meaning of payments without an answer: by our own code, or by the code of the service's error.

The codes of problems are those of the API reference, "Errors"; others that a server may send are explained by
the state of the question alone.
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
    "anything about the payee or the account: no bank was asked.",
    "Correct the row. If nothing is wrong with it, ask the provider: it broke none of the local rules, and "
    "precheck show --row N gives the correlation id of the request.",
)
TOO_LARGE, WRONG_FORM = "HTTP_413", "HTTP_415"
_ASK_PROVIDER = (
    "Ask the provider: precheck show --row N gives the correlation id of the request. The refusal is kept: "
    "the same command does not ask again. Once the provider has fixed it, run the file with --out OTHER "
    "--reuse-from DIR, where DIR is the folder of this run."
)
_THREE_RUNS = (
    "Run the same command again: it asks about this row last. After three such runs it is not asked about "
    "any more: ask the provider, for which precheck show --row N has the correlation id of every request, "
    "then run the same command with --retry-unanswered."
)
_NOT_ASKED = "anything about the row: it was not asked about."
_NOTHING_HEARD = "anything about the payee: no usable reply came."


def _deferred(reason: Sentence, not_said: str = _NOT_ASKED, advice: Sentence | str = RETRY_HERE) -> Meaning:
    return Meaning(Outcome.DEFERRED, Action.RETRY_LATER, reason, not_said, advice)


def _unanswered(
    reason: Sentence, not_said: str = _NOTHING_HEARD, advice: Sentence | str = RETRY_HERE
) -> Meaning:
    return Meaning(Outcome.UNANSWERED, Action.RETRY_LATER, reason, not_said, advice)


def _not_let_in(reason: Sentence) -> Meaning:
    return _unanswered(
        reason,
        "anything about the payee, nor that anything is wrong with the row: no bank was asked. Something "
        "before the server, such as a filter, may dislike what the row says.",
        _THREE_RUNS,
    )


_TURNED_AWAY = {
    "HTTP_400": Sentence("answer.http_400"),
    "HTTP_401": Sentence("answer.http_401"),
    "HTTP_403": Sentence("answer.http_403"),
    "HTTP_404": Sentence("answer.http_404"),
    "HTTP_405": Sentence("answer.http_405"),
    "HTTP_406": Sentence("answer.http_406"),
    "HTTP_407": Sentence("answer.http_407"),
    "HTTP_410": Sentence("answer.http_410"),
    "HTTP_421": Sentence("answer.http_421"),
    "HTTP_431": Sentence("answer.http_431"),
    "HTTP_451": Sentence("answer.http_451"),
    **{f"HTTP_{status}": Sentence("answer.http_3xx", status=status) for status in (301, 302, 303, 307, 308)},
}
"""HTTP status by which a question is refused access -> what the server did."""


def _not_the_row(reason: Sentence) -> Meaning:
    return Meaning(
        Outcome.REJECTED,
        Action.CORRECT_ROW,
        reason,
        "that anything is wrong with the row, nor anything about the payee: no bank was asked.",
        _ASK_PROVIDER,
    )


BY_STATE: Mapping[AnswerState, Meaning] = {
    AnswerState.REFUSED: REFUSED,
    AnswerState.UNANSWERED: _unanswered(Sentence("answer.unanswered")),
    AnswerState.DEFERRED: _deferred(Sentence("answer.deferred")),
}
"""The meaning where the code has none of its own."""

MEANINGS: Mapping[tuple[AnswerState, str], Meaning] = {
    (AnswerState.DEFERRED, OwnCode.DAILY_CAP): _deferred(
        Sentence("answer.daily_cap"),
        advice="Run the same command again when the next day of the cap has begun; precheck quota says when.",
    ),
    (AnswerState.DEFERRED, OwnCode.SERVER_PAUSE): _deferred(
        Sentence("answer.server_pause"),
        advice="Run the same command again later, such as in an hour.",
    ),
    (AnswerState.DEFERRED, OwnCode.LIMIT): _deferred(
        Sentence("answer.limit"),
        advice="Run the same command again, with a higher --limit or without it.",
    ),
    (AnswerState.DEFERRED, OwnCode.TURNED_AWAY): _deferred(
        Sentence("answer.turned_away"),
        advice="The run has said which HTTP status it was. Have precheck doctor try the profile, put right "
        "what is wrong, then run the same command again.",
    ),
    (AnswerState.DEFERRED, OwnCode.RUN_ENDED): _deferred(Sentence("answer.run_ended")),
    (AnswerState.UNANSWERED, OwnCode.RUN_ENDED): _unanswered(Sentence("answer.run_ended_in_flight")),
    (AnswerState.UNANSWERED, OwnCode.CONTRACT): _unanswered(
        Sentence("answer.contract"),
        "whether the payee matches: whatever the reply said is not used.",
        _THREE_RUNS,
    ),
    (AnswerState.UNANSWERED, OwnCode.CLOCK): _not_let_in(Sentence("answer.clock")),
    **{(AnswerState.UNANSWERED, code): _not_let_in(said) for code, said in _TURNED_AWAY.items()},
    (AnswerState.UNANSWERED, OwnCode.NETWORK): _unanswered(Sentence("answer.network")),
    (AnswerState.UNANSWERED, OwnCode.DEADLINE): _unanswered(Sentence("answer.deadline")),
    (AnswerState.UNANSWERED, "TIMEOUT_ERROR"): _unanswered(
        Sentence("answer.timeout_error"),
        "anything about the payee, whose bank was silent.",
    ),
    (AnswerState.UNANSWERED, "SSL_ERROR"): _unanswered(
        Sentence("answer.ssl_error"),
        "that your own connection is unsafe: it is the one from the service to the bank that failed.",
    ),
    (AnswerState.UNANSWERED, "SERVER_ERROR"): _unanswered(Sentence("answer.server_error")),
    (AnswerState.UNANSWERED, "CLIENT_INVALID"): _unanswered(
        Sentence("answer.client_invalid"),
        "anything about the payee. With status 401 the code is HTTP_401 instead.",
        "Run precheck doctor, which tries the credentials of the profile; if it finds nothing, ask the "
        "provider.",
    ),
    (AnswerState.REFUSED, "FORMAT_ERROR"): REFUSED,
    (AnswerState.REFUSED, TOO_LARGE): _not_the_row(Sentence("answer.http_413")),
    (AnswerState.REFUSED, WRONG_FORM): _not_the_row(Sentence("answer.http_415")),
}
"""The meaning of a code in a state; the same word means nothing in another state."""


def meaning_of(
    answers: Mapping[tuple[Basis, str], Meaning], basis: Basis, state: AnswerState, code: str
) -> Meaning:
    """What a code means in this state; an answered code without a meaning is our own mistake."""
    if state in (AnswerState.ANSWERED, AnswerState.REUSED):
        assert (basis, code) in answers, "a code that no table knows was accepted"
        return answers[basis, code]
    return MEANINGS.get((state, code), BY_STATE[state])
