"""Read the history of a run's questions in the ledger, and the answers of other runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from pipeline.stores.postgres.keys import StoreKeys
from pipeline.stores.postgres.lines import RunLines
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import StoredRun
from pipeline.stores.values import (
    ABOUT_THE_QUESTION,
    FinalAnswer,
    FruitlessQuestion,
    LedgerCounts,
    QuestionHistory,
    ReusedAnswer,
)

_AT_ONCE = 1_000
_ASKED = STATEMENTS["history.asked"]
_REUSED = STATEMENTS["history.reused"]
_FRUITLESS = STATEMENTS["history.fruitless"]
_COUNTS = STATEMENTS["history.counts"]
_LATEST = STATEMENTS["history.latest"]


def known(
    db: psycopg.Connection, lines: RunLines, run: int, questions: Sequence[bytes]
) -> dict[bytes, QuestionHistory]:
    """Return the history of these questions, without those that have none."""
    found: dict[bytes, QuestionHistory] = {}
    for start in range(0, len(questions), _AT_ONCE):
        some = list(questions[start : start + _AT_ONCE])
        for row in db.cursor(binary=True).execute(_ASKED, (some, run)):
            question, attempt, request_id, time, seal, *ended = row
            lines.require_intent(question, attempt, request_id, time, seal)
            round_, failed_with, failed_at, failure_seal, answered, state, code, *fields = ended
            if failed_with is not None:
                lines.require_failure(question, attempt, round_, failed_with, failed_at, failure_seal)
            answer = None
            if state is not None:
                answer = lines.final_answer(question, answered, request_id, state, code, *fields)
            found[question] = QuestionHistory(answer, attempt, failed_with)
        for question, *rest, seal in db.cursor(binary=True).execute(_REUSED, (run, some)):
            used = ReusedAnswer(question, *rest)
            lines.require_reused(used, seal)
            attempts = found[question].attempts if question in found else 0
            found[question] = QuestionHistory(used.as_answer(attempts), attempts, None)
    return found


def fruitless(db: psycopg.Connection, run: int) -> Mapping[bytes, FruitlessQuestion]:
    """Return the open questions whose rounds ended with a reply about the question itself."""
    found: dict[bytes, FruitlessQuestion] = {}
    codes = [str(code) for code in ABOUT_THE_QUESTION]
    for question, code, attempt in db.cursor(binary=True).execute(_FRUITLESS, (run, codes, run)):
        before = found.get(question)
        found[question] = FruitlessQuestion(1 if before is None else before.run_count + 1, code, attempt)
    return found


def counts(db: psycopg.Connection, run: int) -> LedgerCounts:
    """Count a run's requests and answers."""
    row = db.cursor(binary=True).execute(_COUNTS, {"run": run}).fetchone()
    assert row is not None
    return LedgerCounts(*row)


def earlier_answers(
    db: psycopg.Connection, keys: StoreKeys, run: StoredRun, questions: Sequence[bytes], not_before: str
) -> dict[str, list[FinalAnswer]]:
    """See `SharedRun.earlier_answers`; a question has the same key in all runs of a ledger."""
    found: dict[str, list[FinalAnswer]] = {}
    lines: dict[int, RunLines] = {}
    place = f"{db.info.host}:{db.info.port}"
    for start in range(0, len(questions), _AT_ONCE):
        some = list(questions[start : start + _AT_ONCE])
        values = {"questions": some, "run": run.number, "after": not_before}
        for row in db.cursor(binary=True).execute(_LATEST, values):
            source, number, run_id, version, *fields = row
            if number not in lines:
                lines[number] = RunLines(keys, StoredRun(number, run_id, version, "", None), place)
            found.setdefault(source, []).append(_proved(lines[number], fields))
    return found


def _proved(lines: RunLines, fields: list[Any]) -> FinalAnswer:
    question, attempt, request_id, sent_at, seal, state, code, time, is_named, _, answer_seal = fields
    lines.require_intent(question, attempt, request_id, sent_at, seal)
    return lines.final_answer(question, attempt, request_id, state, code, time, is_named, None, answer_seal)
