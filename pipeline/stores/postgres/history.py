"""What the ledger of one run knows of its questions."""

from collections.abc import Mapping, Sequence

import psycopg

from pipeline.frames import TURNED_AWAY_CODES, AnswerState, OwnCode
from pipeline.stores.postgres.lines import RunLines
from pipeline.stores.values import FinalAnswer, FruitlessQuestion, LedgerCounts, QuestionHistory, ReusedAnswer

ABOUT_THE_QUESTION = TURNED_AWAY_CODES | {OwnCode.CONTRACT}
"""Codes that are no sign of a server or a network in trouble, and so may come back for ever."""
_AT_ONCE = 1_000
_ASKED = """
SELECT intent.question, intent.attempt, intent.request_id, intent.time, intent.seal,
 failure.round, failure.code, failure.time, failure.seal,
 answer.attempt, answer.state, answer.code, answer.time, answer.is_named, answer.matched_name, answer.seal
FROM unnest(%b::bytea[]) AS wanted(question)
CROSS JOIN LATERAL (SELECT * FROM precheck.intent AS one WHERE one.run = %b AND one.question = wanted.question
 ORDER BY attempt DESC LIMIT 1) AS intent
LEFT JOIN precheck.failure ON failure.run = intent.run AND failure.question = intent.question
 AND failure.attempt = intent.attempt
LEFT JOIN precheck.answer ON answer.run = intent.run AND answer.question = intent.question
"""
_REUSED = """
SELECT question, code, request_id, time, source_sha256, reused_at, seal FROM precheck.reuse
WHERE run = %b AND question = ANY(%b::bytea[])
"""
_FRUITLESS = """
SELECT question, code, attempt FROM (
 SELECT DISTINCT ON (question, round) question, round, code, attempt FROM precheck.failure JOIN precheck.round
 USING (run, round) WHERE run = %b AND ended_at IS NOT NULL ORDER BY question, round, attempt DESC) AS last
WHERE code = ANY(%b) AND NOT EXISTS (
 SELECT FROM precheck.answer WHERE answer.run = %b AND answer.question = last.question)
ORDER BY question, round
"""
_COUNTS = """
SELECT (SELECT count(*) FROM precheck.intent WHERE run = %(run)b),
 (SELECT count(*) FROM precheck.answer WHERE run = %(run)b),
 (SELECT count(*) FROM precheck.reuse WHERE run = %(run)b)
"""


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
