"""The meaning of payments without an answer: by our own code, or by the code of the service's error.

The codes of problems are those of the API reference, "Errors"; others that a server may send are explained by
the state of the question alone.
"""

from collections.abc import Mapping

from pipeline.apis import RETRY_HERE, Basis
from pipeline.frames import AnswerState, OwnCode
from schemas.outcomes import Action, Meaning, Outcome

REFUSED = Meaning(
    Outcome.REJECTED,
    Action.CORRECT_ROW,
    "The API refused the request as malformed; look at the fields of this row.",
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


def _deferred(reason: str, not_said: str = _NOT_ASKED, advice: str = RETRY_HERE) -> Meaning:
    return Meaning(Outcome.DEFERRED, Action.RETRY_LATER, reason, not_said, advice)


def _unanswered(reason: str, not_said: str = _NOTHING_HEARD, advice: str = RETRY_HERE) -> Meaning:
    return Meaning(Outcome.UNANSWERED, Action.RETRY_LATER, reason, not_said, advice)


def _not_let_in(said: str) -> Meaning:
    return _unanswered(
        f"Asked about this row, the server {said}.",
        "anything about the payee, nor that anything is wrong with the row: no bank was asked. Something "
        "before the server, such as a filter, may dislike what the row says.",
        _THREE_RUNS,
    )


_TURNED_AWAY = {
    "HTTP_401": "did not accept us (HTTP 401)",
    "HTTP_403": "gave no permission (HTTP 403)",
    "HTTP_404": "found nothing at the address (HTTP 404)",
    "HTTP_405": "did not take the request at the address (HTTP 405)",
    **{f"HTTP_{status}": f"named another address (HTTP {status})" for status in (301, 302, 303, 307, 308)},
}
"""HTTP status by which a question is refused access -> what the server did."""


def _not_the_row(why: str) -> Meaning:
    return Meaning(
        Outcome.REJECTED,
        Action.CORRECT_ROW,
        f"The server refused the request {why}, and nothing in the row is the cause; ask the provider.",
        "that anything is wrong with the row, nor anything about the payee: no bank was asked.",
        _ASK_PROVIDER,
    )


BY_STATE: Mapping[AnswerState, Meaning] = {
    AnswerState.REFUSED: REFUSED,
    AnswerState.UNANSWERED: _unanswered("The service answered with an error."),
    AnswerState.DEFERRED: _deferred("Left for a later run."),
}
"""The meaning where the code has none of its own."""

MEANINGS: Mapping[tuple[AnswerState, str], Meaning] = {
    (AnswerState.DEFERRED, OwnCode.DAILY_CAP): _deferred(
        "The day's requests are used up.",
        advice="Run the same command again when the next day of the cap has begun; precheck quota says when.",
    ),
    (AnswerState.DEFERRED, OwnCode.SERVER_PAUSE): _deferred(
        "The server asked for more or longer pauses than a run sits out; run again later.",
        advice="Run the same command again later, such as in an hour.",
    ),
    (AnswerState.DEFERRED, OwnCode.LIMIT): _deferred(
        "Left for a later run by --limit.",
        advice="Run the same command again, with a higher --limit or without it.",
    ),
    (AnswerState.DEFERRED, OwnCode.TURNED_AWAY): _deferred(
        "The server accepted none of the questions before this one.",
        advice="The run has said which HTTP status it was. Have precheck doctor try the profile, put right "
        "what is wrong, then run the same command again.",
    ),
    (AnswerState.DEFERRED, OwnCode.RUN_ENDED): _deferred("The run ended before this row was asked about."),
    (AnswerState.UNANSWERED, OwnCode.RUN_ENDED): _unanswered("The run ended before a reply came."),
    (AnswerState.UNANSWERED, OwnCode.CONTRACT): _unanswered(
        "The reply contradicts the API's own rules, so it is not used.",
        "whether the payee matches: whatever the reply said is not used.",
        _THREE_RUNS,
    ),
    (AnswerState.UNANSWERED, OwnCode.CLOCK): _not_let_in("refused the time of the request"),
    **{(AnswerState.UNANSWERED, code): _not_let_in(said) for code, said in _TURNED_AWAY.items()},
    (AnswerState.UNANSWERED, OwnCode.NETWORK): _unanswered(
        "The connection failed before a whole reply came."
    ),
    (AnswerState.UNANSWERED, OwnCode.DEADLINE): _unanswered("No whole reply came in time."),
    (AnswerState.UNANSWERED, "TIMEOUT_ERROR"): _unanswered(
        "The payee's bank did not answer the service in time.",
        "anything about the payee, whose bank was silent.",
    ),
    (AnswerState.UNANSWERED, "SSL_ERROR"): _unanswered(
        "The service could not connect to the payee's bank securely.",
        "that your own connection is unsafe: it is the one from the service to the bank that failed.",
    ),
    (AnswerState.UNANSWERED, "SERVER_ERROR"): _unanswered("The service had a technical error."),
    (AnswerState.UNANSWERED, "CLIENT_INVALID"): _unanswered(
        "The service did not accept us: our token, or our client certificate.",
        "anything about the payee. With status 401 the code is HTTP_401 instead.",
        "Run precheck doctor, which tries the credentials of the profile.",
    ),
    (AnswerState.REFUSED, "FORMAT_ERROR"): REFUSED,
    (AnswerState.REFUSED, TOO_LARGE): _not_the_row("as too large (HTTP 413)"),
    (AnswerState.REFUSED, WRONG_FORM): _not_the_row("for its media type (HTTP 415)"),
}
"""The meaning of a code in a state; the same word means nothing in another state."""


def meaning_of(
    answers: Mapping[tuple[Basis, str], Meaning], basis: Basis, state: AnswerState, code: str
) -> Meaning:
    """What a code means in this state; an answered code without a meaning is our own mistake.

    Args:
        answers: the meanings of the API that was asked.
        basis: what it was asked by.
        state: what became of the question.
        code: of the answer.
    """
    if state in (AnswerState.ANSWERED, AnswerState.REUSED):
        assert (basis, code) in answers, "a code that no table knows was accepted"
        return answers[basis, code]
    return MEANINGS.get((state, code), BY_STATE[state])
