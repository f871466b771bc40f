"""What the ledger of one run knows of its questions."""

from collections.abc import Mapping, Sequence

import psycopg

from pipeline.frames import TURNED_AWAY_CODES, AnswerState, OwnCode
from pipeline.stores.postgres.lines import RunLines
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.values import FinalAnswer, FruitlessQuestion, LedgerCounts, QuestionHistory, ReusedAnswer

ABOUT_THE_QUESTION = TURNED_AWAY_CODES | {OwnCode.CONTRACT}
"""Codes that are no sign of a server or a network in trouble, and so may come back for ever."""
_AT_ONCE = 1_000
_ASKED = STATEMENTS["history.asked"]
_REUSED = STATEMENTS["history.reused"]
_FRUITLESS = STATEMENTS["history.fruitless"]
_COUNTS = STATEMENTS["history.counts"]


def known(
    db: psycopg.Connection, lines: RunLines, run: int, questions: Sequence[bytes]
) -> dict[bytes, QuestionHistory]:
    """The history of these questions; one without a history is left out."""
    found: dict[bytes, QuestionHistory] = {}
    for start in range(0, len(questions), _AT_ONCE):
        some = list(questions[start : start + _AT_ONCE])
        for row in db.cursor(binary=True).execute(_ASKED, (some, run)):
            question, attempt, request_id, time, seal, *ended = row
            lines.require_intent(question, attempt, request_id, time, seal)
            round_, failed_with, failed_at, failure_seal, answered, state, code, *said = ended
            if failed_with is not None:
                lines.require_failure(question, attempt, round_, failed_with, failed_at, failure_seal)
            answer = None
            if state is not None:
                answer = lines.final_answer(question, answered, request_id, state, code, *said)
            found[question] = QuestionHistory(answer, attempt, failed_with)
        for question, *rest, seal in db.cursor(binary=True).execute(_REUSED, (run, some)):
            used = ReusedAnswer(question, *rest)
            lines.require_reused(used, seal)
            attempts = found[question].attempts if question in found else 0
            found[question] = QuestionHistory(reused_answer(used, attempts), attempts, None)
    return found


def reused_answer(used: ReusedAnswer, attempts: int) -> FinalAnswer:
    """An answer of an earlier run as one of this run, which made so many requests for the question."""
    state = AnswerState.REUSED
    return FinalAnswer(used.question, state, used.code, None, used.request_id, used.time, attempts)


def fruitless(db: psycopg.Connection, run: int) -> Mapping[bytes, FruitlessQuestion]:
    """The open questions whose rounds ended by a reply that is about the question."""
    found: dict[bytes, FruitlessQuestion] = {}
    codes = [str(code) for code in ABOUT_THE_QUESTION]
    for question, code, attempt in db.cursor(binary=True).execute(_FRUITLESS, (run, codes, run)):
        before = found.get(question)
        found[question] = FruitlessQuestion(1 if before is None else before.run_count + 1, code, attempt)
    return found


def counts(db: psycopg.Connection, run: int) -> LedgerCounts:
    """How many requests and answers a run has."""
    row = db.cursor(binary=True).execute(_COUNTS, {"run": run}).fetchone()
    assert row is not None
    return LedgerCounts(*row)
