"""The queries of a ledger, whether it is open for writing or only for reading."""

import json
import sqlite3
from collections.abc import Callable, Iterator

from pipeline.frames import TURNED_AWAY_CODES, AnswerState, Check, OwnCode
from pipeline.stores.keyed_hash import KeyedHash
from pipeline.stores.values import (
    FinalAnswer,
    FinishRecord,
    FruitlessQuestion,
    LedgerCounts,
    RequestAttempt,
    RunIdentity,
)

_ABOUT_THE_QUESTION = TURNED_AWAY_CODES | {OwnCode.CONTRACT}
"""Codes that are no sign of a server or a network in trouble, and so may come back for ever."""

DETAIL_IS_DUE = (
    "(SELECT time FROM failure WHERE failure.intent = problem.intent"
    " UNION ALL SELECT ifnull(time, '') FROM answer WHERE answer.intent = problem.intent) < ?"
)
"""SQL: whether the detail of a problem came before a time."""


def identity(db: sqlite3.Connection) -> RunIdentity:
    """What the ledger is the record of."""
    row = db.execute("SELECT input_sha256, profile_sha256, environment, tool_version FROM run").fetchone()
    return RunIdentity(*row)


def question_key(hashed: KeyedHash, check: Check) -> bytes:
    """What a ledger with this hash knows a question by: 32 bytes.

    Made of every field but the check's number, so that a file that is planned again, in another
    order or by a newer version, never takes another question's answer for its own.
    """
    return hashed(json.dumps(check[1:]).encode())


def final_answers(
    db: sqlite3.Connection, name_of: Callable[[str | bytes | None, int], str | None]
) -> Iterator[FinalAnswer]:
    """Every final answer, in the order in which their requests were recorded; then those of earlier runs.

    Args:
        db: the ledger.
        name_of: reads the matched name as it is stored in the row of an intent's answer.
    """
    for intent, question, state, code, name, *rest in db.execute(
        "SELECT intent.id, question, state, code, matched_name, answer.request_id, answer.time, attempt"
        " FROM answer JOIN intent ON intent.id = answer.intent ORDER BY answer.intent"
    ):
        yield FinalAnswer(question, AnswerState(state), code, name_of(name, intent), *rest)
    for question, code, request_id, time, attempts in db.execute(
        "SELECT question, code, request_id, time,"
        " (SELECT count(*) FROM intent WHERE intent.question = reuse.question) FROM reuse ORDER BY rowid"
    ):
        yield FinalAnswer(question, AnswerState.REUSED, code, None, request_id, time, attempts)


def last_finish(db: sqlite3.Connection) -> FinishRecord | None:
    """The latest outcome file on record, or None."""
    row = db.execute(
        "SELECT time, question_count, unanswered_count, outcome_sha256 FROM finish ORDER BY id DESC LIMIT 1"
    ).fetchone()
    return FinishRecord(*row) if row else None


def counts(db: sqlite3.Connection) -> LedgerCounts:
    """How much the ledger holds."""
    row = db.execute(
        "SELECT (SELECT count(*) FROM intent), (SELECT count(*) FROM answer), (SELECT count(*) FROM reuse)"
    ).fetchone()
    return LedgerCounts(*row)


def created_at(db: sqlite3.Connection) -> str:
    """When the first run in the folder began."""
    [time] = db.execute("SELECT created_at FROM run").fetchone()
    return str(time)


def fruitless(db: sqlite3.Connection) -> dict[bytes, FruitlessQuestion]:
    """The questions that runs left unanswered after a reply which is about the question.

    A run ends with its outcome file; one that was killed counts as one with the next.
    """
    found: dict[bytes, FruitlessQuestion] = {}
    for question, code, attempt, _ in db.execute(
        "WITH ended AS (SELECT intent.id, question, code, attempt,"
        " (SELECT count(*) FROM finish WHERE finish.time < failure.time) AS run"
        " FROM failure JOIN intent ON intent.id = failure.intent"
        " WHERE question NOT IN (SELECT question FROM answer JOIN intent ON intent.id = answer.intent))"
        " SELECT question, code, attempt, max(id) FROM ended GROUP BY question, run ORDER BY max(id)"
    ):
        if code in _ABOUT_THE_QUESTION:
            before = found.get(question)
            found[question] = FruitlessQuestion(1 if before is None else before.run_count + 1, code, attempt)
    return found


def attempts(
    db: sqlite3.Connection, question: bytes, detail_of: Callable[[str | bytes, int], str | None]
) -> Iterator[RequestAttempt]:
    """Every request for a question, first to last.

    Args:
        db: the ledger.
        question: its key.
        detail_of: reads the detail as it is stored in the row of an intent; None where it is encrypted and
            there is no key.
    """
    for intent, written, *row in db.execute(
        "SELECT intent.id, detail, attempt, intent.request_id, intent.time,"
        " coalesce(state, iif(failure.intent IS NULL, 'in doubt', 'failed')),"
        " coalesce(answer.code, failure.code), coalesce(answer.time, failure.time)"
        " FROM intent LEFT JOIN answer ON answer.intent = intent.id"
        " LEFT JOIN failure ON failure.intent = intent.id"
        " LEFT JOIN problem ON problem.intent = intent.id WHERE question = ? ORDER BY attempt",
        (question,),
    ):
        detail = None if written is None else detail_of(written, intent)
        is_hidden = written is not None and detail is None
        yield RequestAttempt(*row)._replace(detail=detail, has_hidden_detail=is_hidden)
