"""An index from a question's key to its history; the file itself is in the order of requests.

It is a temporary table in memory, for this connection, with 50 bytes per question. It is built when first
used, which does not happen in a run's first attempt, and does not change the file.
"""

import sqlite3
from collections.abc import Sequence

from pipeline.frames import AnswerState
from pipeline.stores.sqlite.open_ledger import NameOf
from pipeline.stores.values import FinalAnswer, QuestionHistory, ReusedAnswer

_AT_ONCE = 1_000
_STATES = {state.value: state for state in AnswerState}
_MADE = (
    "CREATE TEMP TABLE IF NOT EXISTS latest(question BLOB PRIMARY KEY, attempt INTEGER NOT NULL,"
    " intent INTEGER NOT NULL) WITHOUT ROWID"
)
# The latest by number: a folder may get another process's earlier request after a later one.
_GROWN = (
    "INSERT INTO temp.latest SELECT question, max(attempt), id FROM intent WHERE id > ? GROUP BY question"
    " ON CONFLICT (question) DO UPDATE SET attempt = excluded.attempt, intent = excluded.intent"
    " WHERE excluded.attempt > latest.attempt"
)
_ASKED = (
    "SELECT latest.question, intent.id, intent.attempt, state, answer.code, matched_name, answer.request_id,"
    " answer.time, failure.code FROM temp.latest JOIN intent ON intent.id = latest.intent"
    " LEFT JOIN answer ON answer.intent = intent.id LEFT JOIN failure ON failure.intent = intent.id"
    " WHERE latest.question IN ({})"
)
_REUSED = (
    "SELECT question, code, request_id, time, source_sha256, reused_at FROM reuse WHERE question IN ({})"
)


class QuestionIndex:
    """Finds the latest request for each question."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._indexed_to = 0
        self._has_reused = False

    def known(self, questions: Sequence[bytes], name_of: NameOf) -> dict[bytes, QuestionHistory]:
        """Return the histories of these questions."""
        self._grow()
        known: dict[bytes, QuestionHistory] = {}
        for start in range(0, len(questions), _AT_ONCE):
            self._look_up(questions[start : start + _AT_ONCE], name_of, known)
        return known

    def _grow(self) -> None:
        """Add the rows written since the index was last used."""
        self._db.execute(_MADE)
        self._db.execute(_GROWN, (self._indexed_to,))
        [self._indexed_to] = self._db.execute("SELECT ifnull(max(id), 0) FROM intent").fetchone()
        [self._has_reused] = self._db.execute("SELECT EXISTS(SELECT 1 FROM reuse)").fetchone()

    def _look_up(self, some: Sequence[bytes], name_of: NameOf, known: dict[bytes, QuestionHistory]) -> None:
        placeholders = ", ".join("?" * len(some))
        for question, intent, attempts, state, code, name, request_id, time, failed in self._db.execute(
            _ASKED.format(placeholders), some
        ):
            answer = None
            if state is not None:
                found = name_of(name, intent)
                answer = FinalAnswer(question, _STATES[state], code, found, request_id, time, attempts)
            known[question] = QuestionHistory(answer, attempts, failed)
        reused = self._db.execute(_REUSED.format(placeholders), some) if self._has_reused else ()
        for used in map(ReusedAnswer._make, reused):
            attempts = known[used.question].attempts if used.question in known else 0
            known[used.question] = QuestionHistory(used.as_answer(attempts), attempts, None)
