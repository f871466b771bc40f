"""Copy the requests of a shared run into a folder's ledger, each once.

Existing requests are indexed in memory, for this connection, as in `question_index`.
"""

import sqlite3
from collections.abc import Sequence

from pipeline.stores.encryption import NameEncryption
from pipeline.stores.sqlite.seals import insertion, sealed_name
from pipeline.stores.values import RecordedRequest

_AT_ONCE = 1_000
_INTEND, _FAIL, _SETTLE, _DETAIL = map(insertion, ("intent", "failure", "answer", "problem"))
_MADE = "CREATE TEMP TABLE copied(request_id TEXT PRIMARY KEY, intent INTEGER NOT NULL) WITHOUT ROWID"
_FILLED = "INSERT OR REPLACE INTO temp.copied SELECT request_id, id FROM intent"
_FOUND = (
    "SELECT copied.request_id, copied.intent, failure.intent IS NOT NULL OR answer.intent IS NOT NULL"
    " FROM temp.copied LEFT JOIN failure ON failure.intent = copied.intent"
    " LEFT JOIN answer ON answer.intent = copied.intent WHERE copied.request_id IN ({})"
)


class RequestCopier:
    """Adds missing requests, or their missing results, to a ledger."""

    def __init__(self, db: sqlite3.Connection, names: NameEncryption) -> None:
        self._db = db
        self._names = names
        self._is_indexed = False

    def add(self, requests: Sequence[RecordedRequest]) -> list[int]:
        """Add missing requests, in this order, within the caller's transaction; return their intents."""
        if not self._is_indexed:
            self._db.execute(_MADE)
            self._db.execute(_FILLED)
            self._is_indexed = True
        return [
            intent
            for start in range(0, len(requests), _AT_ONCE)
            for intent in self._add(requests[start : start + _AT_ONCE])
        ]

    def _add(self, requests: Sequence[RecordedRequest]) -> list[int]:
        placeholders = ", ".join("?" * len(requests))
        rows = self._db.execute(
            _FOUND.format(placeholders), [request.request_id for request in requests]
        ).fetchall()
        intents = {request_id: intent for request_id, intent, _ in rows}
        ended = {request_id for request_id, _, is_ended in rows if is_ended}
        [last_id] = self._db.execute("SELECT ifnull(max(id), 0) FROM intent").fetchone()
        missing = [request for request in requests if request.request_id not in intents]
        new = {request.request_id: intent for intent, request in enumerate(missing, start=last_id + 1)}
        intents |= new
        self._db.executemany(_INTEND, [(new[one.request_id], *_sent(one)) for one in missing])
        self._db.executemany("INSERT INTO temp.copied VALUES(?, ?)", list(new.items()))
        self._end([(intents[one.request_id], one) for one in requests if one.request_id not in ended])
        return [intents[one.request_id] for one in requests]

    def _end(self, requests: Sequence[tuple[int, RecordedRequest]]) -> None:
        """Record the results of requests that have ended."""
        failures, answers, details = [], [], []
        for intent, request in requests:
            if request.answer is not None:
                _, state, code, name, request_id, time, _ = request.answer
                written = sealed_name(self._names.write(name, intent))
                answers.append((intent, str(state), code, request_id, time, *written))
            elif request.failed_with is not None:
                failures.append((intent, request.failed_with, request.failed_at))
            else:
                continue
            if request.detail:
                details.append((intent, self._names.write(request.detail, intent, "problem")))
        for statement, rows in ((_FAIL, failures), (_SETTLE, answers), (_DETAIL, details)):
            self._db.executemany(statement, rows)


def _sent(request: RecordedRequest) -> tuple[bytes, int, str, str]:
    return request.question, request.attempt, request.request_id, request.sent_at
