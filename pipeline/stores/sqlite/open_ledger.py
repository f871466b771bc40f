"""The contents of an open ledger, for writing or only for reading."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.frames import AnswerState, Check
from pipeline.stores.keyed_hash import keyed_hash, payee_key
from pipeline.stores.sqlite.seals import digests
from pipeline.stores.values import FinalAnswer, FinishRecord, LedgerCounts, ReusedAnswer, RunIdentity

NameOf = Callable[[str | bytes | None, int], str | None]
"""Reads a matched name as stored with an intent's answer: (stored, intent) -> name."""

DETAIL_IS_DUE = (
    "(SELECT time FROM failure WHERE failure.intent = problem.intent"
    " UNION ALL SELECT ifnull(time, '') FROM answer WHERE answer.intent = problem.intent) < ?"
)
"""SQL condition: the detail of a problem is from before a time."""

_RUN = (
    "SELECT input_sha256, profile_sha256, environment, tool_version, created_at, run_key, name_proof FROM run"
)


class OpenLedger:
    """An intact ledger that is open.

    Attributes:
        path: its file.
        run: the identity of its run.
        created_at: when the first run in this folder began.
        payee_key: the key that this folder hashes payees and accounts with.
    """

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db
        *identity, self.created_at, self._run_key, self._name_proof = db.execute(_RUN).fetchone()
        self.run = RunIdentity(*identity)
        self.payee_key = payee_key(self._run_key)
        self._hashed = keyed_hash(self._run_key)

    def question_key(self, check: Check) -> bytes:
        """Return the 32-byte hash of a question, from every field but the check's number.

        A file that is planned again finds its answers by these hashes. Their key is random and stored in the
        ledger, so questions of different runs cannot be linked. Anyone who can read the ledger could test
        names, hence mode 0600.
        """
        return self._hashed(json.dumps(check[1:]).encode())

    @property
    def counts(self) -> LedgerCounts:
        """The number of requests and answers."""
        row = self._db.execute(
            "SELECT (SELECT count(*) FROM intent), (SELECT count(*) FROM answer),"
            " (SELECT count(*) FROM reuse)"
        ).fetchone()
        return LedgerCounts(*row)

    @property
    def finish_count(self) -> int:
        """The number of recorded outcome files."""
        [count] = self._db.execute("SELECT count(*) FROM finish").fetchone()
        return int(count)

    def digests(self, finish_count: int) -> dict[str, str]:
        """Return table -> SHA-256 of the seals of its lines up to an outcome file, counted from 1."""
        return digests(self._db, finish_count)

    @property
    def last_finish(self) -> FinishRecord | None:
        """The latest recorded outcome file, or None."""
        row = self._db.execute(
            "SELECT time, question_count, unanswered_count, outcome_sha256 FROM finish"
            " ORDER BY id DESC LIMIT 1"
        ).fetchone()
        return FinishRecord(*row) if row else None

    def _final_answers(self, name_of: NameOf) -> Iterator[FinalAnswer]:
        """Yield every final answer, in the recorded order of requests, then those of earlier runs."""
        for intent, question, state, code, name, *rest in self._db.execute(
            "SELECT intent.id, question, state, code, matched_name, answer.request_id, answer.time, attempt"
            " FROM answer JOIN intent ON intent.id = answer.intent ORDER BY answer.intent"
        ):
            yield FinalAnswer(question, AnswerState(state), code, name_of(name, intent), *rest)
        for *reused, attempts in self._db.execute(
            "SELECT question, code, request_id, time, source_sha256, reused_at,"
            " (SELECT count(*) FROM intent WHERE intent.question = reuse.question) FROM reuse ORDER BY rowid"
        ):
            yield ReusedAnswer(*reused).as_answer(attempts)
