"""The contents of an open ledger, and one opened for reading: to show, verify or reuse its answers."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from pipeline.frames import AnswerState, Check
from pipeline.stores import values
from pipeline.stores.ledger_keys import keyed_hash, payee_key
from pipeline.stores.sqlite.ledger_file import opened_to_read, sqlite_errors
from pipeline.stores.sqlite.seals import NameEncryption, digests

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


class OpenLedger:
    """An intact ledger that is open; `created_at` is when the first run in this folder began."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db
        *identity, self.created_at, self._run_key, self._name_proof = db.execute(_RUN).fetchone()
        self.run = values.RunIdentity(*identity)
        self.payee_key = payee_key(self._run_key)
        self._hashed = keyed_hash(self._run_key)
        self._indexed_to = 0
        self._has_reused = False

    def question_key(self, check: Check) -> bytes:
        """Return the 32-byte hash of a question, from every field but the check's number.

        Its key is random and stored in the ledger, so questions of different runs cannot be linked. Anyone
        who can read the ledger could test names, hence mode 0600.
        """
        return self._hashed(json.dumps(check[1:]).encode())

    @property
    def counts(self) -> values.LedgerCounts:
        row = self._db.execute(
            "SELECT (SELECT count(*) FROM intent), (SELECT count(*) FROM answer),"
            " (SELECT count(*) FROM reuse)"
        ).fetchone()
        return values.LedgerCounts(*row)

    @property
    def finish_count(self) -> int:
        [count] = self._db.execute("SELECT count(*) FROM finish").fetchone()
        return int(count)

    def digests(self, finish_count: int) -> dict[str, str]:
        """Return table -> SHA-256 of the seals of its lines up to an outcome file, counted from 1."""
        return digests(self._db, finish_count)

    @property
    def last_finish(self) -> values.FinishRecord | None:
        row = self._db.execute(
            "SELECT time, question_count, unanswered_count, outcome_sha256 FROM finish"
            " ORDER BY id DESC LIMIT 1"
        ).fetchone()
        return values.FinishRecord(*row) if row else None

    def _final_answers(self, name_of: NameOf) -> Iterator[values.FinalAnswer]:
        """Yield every final answer, in the recorded order of requests, then those of earlier runs."""
        for intent, question, state, code, name, *rest in self._db.execute(
            "SELECT intent.id, question, state, code, matched_name, answer.request_id, answer.time, attempt"
            " FROM answer JOIN intent ON intent.id = answer.intent ORDER BY answer.intent"
        ):
            yield values.FinalAnswer(question, AnswerState(state), code, name_of(name, intent), *rest)
        for *reused, attempts in self._db.execute(
            "SELECT question, code, request_id, time, source_sha256, reused_at,"
            " (SELECT count(*) FROM intent WHERE intent.question = reuse.question) FROM reuse ORDER BY rowid"
        ):
            yield values.ReusedAnswer(*reused).as_answer(attempts)

    def _known(self, questions: Sequence[bytes], name_of: NameOf) -> dict[bytes, values.QuestionHistory]:
        """Return these histories by an index in memory, 50 bytes per question, built when first used."""
        self._grow_index()
        known: dict[bytes, values.QuestionHistory] = {}
        for start in range(0, len(questions), _AT_ONCE):
            self._look_up(questions[start : start + _AT_ONCE], name_of, known)
        return known

    def _grow_index(self) -> None:
        self._db.execute(_MADE)
        self._db.execute(_GROWN, (self._indexed_to,))
        [self._indexed_to] = self._db.execute("SELECT ifnull(max(id), 0) FROM intent").fetchone()
        [self._has_reused] = self._db.execute("SELECT EXISTS(SELECT 1 FROM reuse)").fetchone()

    def _look_up(
        self, some: Sequence[bytes], name_of: NameOf, known: dict[bytes, values.QuestionHistory]
    ) -> None:
        placeholders = ", ".join("?" * len(some))
        for question, intent, attempts, state, code, name, request_id, time, failed in self._db.execute(
            _ASKED.format(placeholders), some
        ):
            answer = None
            if state is not None:
                found = name_of(name, intent)
                answer = values.FinalAnswer(question, _STATES[state], code, found, request_id, time, attempts)
            known[question] = values.QuestionHistory(answer, attempts, failed)
        reused = self._db.execute(_REUSED.format(placeholders), some) if self._has_reused else ()
        for used in map(values.ReusedAnswer._make, reused):
            attempts = known[used.question].attempts if used.question in known else 0
            known[used.question] = values.QuestionHistory(used.as_answer(attempts), attempts, None)


_ATTEMPTS = """
SELECT intent.id, detail, attempt, intent.request_id, intent.time,
 coalesce(state, iif(failure.intent IS NULL, 'in doubt', 'failed')),
 coalesce(answer.code, failure.code), coalesce(answer.time, failure.time)
FROM intent LEFT JOIN answer ON answer.intent = intent.id
LEFT JOIN failure ON failure.intent = intent.id
LEFT JOIN problem ON problem.intent = intent.id WHERE question = ? ORDER BY attempt
"""


def _no_name(_written: str | bytes | None, _intent: int) -> None:
    """Return None, without reading the name."""


class LedgerReader(OpenLedger):
    """A ledger that is open for reading only. Made by `ledger_reader`."""

    def answers(self) -> Iterator[values.FinalAnswer]:
        """Yield every final answer, reused ones last; without names, so no key is needed."""
        return self._final_answers(_no_name)

    @property
    def is_encrypted(self) -> bool:
        """True if a key is needed to read its names."""
        return self._name_proof is not None

    def opens_with(self, secret: SecretStr) -> bool:
        """True if this secret decrypts its names."""
        return NameEncryption.under(secret, self._run_key, self.path).proves(self._name_proof)

    def answers_to(
        self, questions: Sequence[bytes], secret: SecretStr | None = None, *, with_names: bool = False
    ) -> dict[bytes, values.FinalAnswer]:
        """Return final answers by question key and, if requested, the names that are left."""
        read = NameEncryption.under(secret, self._run_key, self.path).read if with_names else _no_name
        known = self._known(questions, read)
        return {question: one.answer for question, one in known.items() if one.answer is not None}

    @property
    def purged_before(self) -> str | None:
        """Names of answers from before this time were purged; None if no names were."""
        [time] = self._db.execute("SELECT max(answers_before) FROM purge").fetchone()
        return None if time is None else str(time)

    def name_count(self, before: str) -> int:
        """Count the matched names in answers from before a time."""
        [count] = self._db.execute(
            "SELECT count(*) FROM answer WHERE matched_name IS NOT NULL AND ifnull(time, '') < ?", (before,)
        ).fetchone()
        return int(count)

    @property
    def has_purged_names(self) -> bool:
        [has_any] = self._db.execute("SELECT EXISTS(SELECT 1 FROM purge WHERE name_count > 0)").fetchone()
        return bool(has_any)

    def detail_count(self, before: str) -> int:
        """Count the details of problems from before a time."""
        [count] = self._db.execute(
            f"SELECT count(*) FROM problem WHERE {DETAIL_IS_DUE}",  # noqa: S608 (a constant)
            (before,),
        ).fetchone()
        return int(count)

    def attempts(self, check: Check, secret: SecretStr | None = None) -> list[values.RequestAttempt]:
        """Return a question's requests, oldest first; without the key, encrypted details stay hidden."""
        names = NameEncryption.under(secret, self._run_key, self.path)
        is_hidden = self.is_encrypted and secret is None

        found = []
        for intent, written, *row in self._db.execute(_ATTEMPTS, (self.question_key(check),)):
            detail = None if written is None or is_hidden else names.read(written, intent, "problem")
            hides = written is not None and detail is None
            found.append(values.RequestAttempt(*row)._replace(detail=detail, has_hidden_detail=hides))
        return found


@contextmanager
def ledger_reader(
    path: Path, *, now: str, alone: bool = False, proof: values.LedgerProof = values.NO_PROOF
) -> Iterator[LedgerReader]:
    """Open a folder's ledger for reading; no run can start during the block. See `opened_to_read`."""
    with opened_to_read(path, now=now, alone=alone, proof=proof) as db:
        with sqlite_errors(path):
            record = LedgerReader(path, db)
        yield record
