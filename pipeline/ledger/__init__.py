"""The crash-safe record of one run: which questions may have been sent, and what came back.

The rule it serves: an answered check is never asked again, whatever kills the run. A request leaves
only after its intent is on disk, and a check counts as done only after its answer is on disk. What a
crash leaves in doubt is therefore known exactly: intents with neither failure nor answer.

The ledger is append-only, and it holds no name or account that the payer sent: a question is known by
a keyed hash. The only personal data in it are the matched names that banks returned. They are also the
only thing that can ever leave it, by `pipeline.ledger.purge`; the answer they came with stays final. With
a secret of the user's they are encrypted (`pipeline.ledger.names`).

It is a SQLite file on a *local* disk. Its write-ahead log and both of its locks are unsafe on NFS and
SMB shares. One process and one connection work on it at a time: SQLite before 3.51.3 can corrupt a
write-ahead log that two connections checkpoint, and with a single connection the question does not
arise.
"""

import hmac
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from pydantic import SecretStr

from pipeline.disks import unwritten
from pipeline.errors import UsageError
from pipeline.frames import Answer, AnswerState, Check
from pipeline.ledger.commits import Commits
from pipeline.ledger.files import RunIdentity, opened
from pipeline.ledger.names import Names
from pipeline.ledger.seals import damaged, insertion

__all__ = ["FinalAnswer", "Finish", "Ledger", "RunIdentity", "held"]

_INTEND, _FAIL, _SETTLE, _FINISH = map(insertion, ("intent", "failure", "answer", "finish"))
_FINAL = frozenset({AnswerState.ANSWERED, AnswerState.REFUSED})


class FinalAnswer(NamedTuple):
    """An `Answer`, with its question's key in the place of a check number."""

    question: bytes
    state: AnswerState
    code: str
    matched_name: str | None
    request_id: str | None
    time: str | None
    attempts: int


class Finish(NamedTuple):
    """That an outcome file was written, and how much of it was decided then."""

    time: str
    question_count: int
    unanswered_count: int
    outcome_sha256: str


class _Intent(NamedTuple):
    """The latest intent of a question that has no final answer."""

    id: int
    attempt: int


class Ledger:
    """The ledger of one run, open. Made by `Ledger.open`.

    Writes are accepted inside `writing()` only, from any number of tasks of one event loop.
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection, secret: SecretStr | None, resources: ExitStack
    ) -> None:
        self._path = path
        self._db = connection
        [self._run_key, name_proof] = connection.execute("SELECT run_key, name_proof FROM run").fetchone()
        self._names = Names.under(secret, self._run_key, path)
        self._names.require(name_proof)
        self._commits = Commits(path, connection)
        self._unsettled = _unsettled(path, connection)
        [self._last_id] = connection.execute("SELECT ifnull(max(id), 0) FROM intent").fetchone()
        self._resources = resources.pop_all()
        self._resources.callback(self._fold)

    @classmethod
    def open(
        cls,
        path: Path,
        identity: RunIdentity,
        *,
        now: str,
        fresh: bool = False,
        secret: SecretStr | None = None,
    ) -> Self:
        """Start the ledger of a run, or take it up again.

        The folder is created if it is missing, and locked before anything in it is touched.

        Args:
            path: the ledger's file, conventionally `ledger.db` in the output folder.
            identity: what this run is the run of.
            now: UTC, ISO 8601 with Z.
            fresh: forget the run that the folder holds, and every answer in it.
            secret: what matched names are encrypted with; None: they lie in clear.

        Raises:
            ConfigurationError: the ledger was begun with another secret, or with one and none is given,
                or without one.
            LockedError: another process works in this folder.
            UsageError: the folder holds a run of another input, profile or environment.
            OutputError: the ledger cannot be created, or the file there is not one of ours.
            DiskError: the ledger is damaged or cannot be read.
        """
        with ExitStack() as stack:
            connection = stack.enter_context(opened(path, identity, now=now, fresh=fresh, secret=secret))
            return cls(path, connection, secret, stack)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Fold the write-ahead log into the file and let the folder go. Safe to call twice.

        Raises:
            DiskError: the log could not be folded. It stays beside the file, and nothing is lost.
        """
        self._resources.close()

    def question_key(self, check: Check) -> bytes:
        """What the ledger knows a question by: 32 bytes, the same for the same question in this run.

        Made of every field but the check's number, so that a file that is planned anew, in another
        order or by a newer version, never takes another question's answer for its own. The key of
        the hash lives in the ledger: two runs cannot be linked by their questions, but whoever
        holds the file can try names on it, which is why the file is 0600.
        """
        return hmac.digest(self._run_key, json.dumps(check[1:]).encode(), "sha256")

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer, in the order in which their requests left. Not while `writing()`."""
        assert not self._commits.accepting, f"{self._path}: not to be read while it is written to"
        for intent, question, state, code, name, *rest in self._db.execute(
            "SELECT intent.id, question, state, code, matched_name, answer.request_id, answer.time, attempt"
            " FROM answer JOIN intent ON intent.id = answer.intent ORDER BY answer.intent"
        ):
            yield FinalAnswer(question, AnswerState(state), code, self._names.read(name, intent), *rest)

    def open_attempts(self) -> dict[bytes, int]:
        """Attempts so far of every question that was intended and has no final answer.

        A question in doubt, whose intent has no ending because the run was killed, counts as sent.
        """
        return {question: intent.attempt for question, intent in self._unsettled.items()}

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Accept writes until the block ends; the last of them is on disk when it has ended."""
        return self._commits.writing()

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record that a request is about to leave. It may leave once this has returned.

        Args:
            question: the question's key.
            attempt: one more than `open_attempts()` has for it, 1 where it has none.
            request_id: the correlation id of the request.
            time: UTC, ISO 8601 with Z.

        Raises:
            DiskError: this or an earlier write did not reach the disk; nothing more is accepted.
        """
        earlier = self._unsettled.get(question)
        assert attempt == (earlier.attempt if earlier else 0) + 1, f"{self._path}: an attempt was skipped"
        self._last_id += 1
        self._unsettled[question] = _Intent(self._last_id, attempt)
        await self._commits.write(_INTEND, (self._last_id, question, attempt, request_id, time))

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str) -> None:
        """Record that an attempt gave nothing usable. The question stays open.

        Raises:
            DiskError: as `intend`.
        """
        intent = self._latest_intent(question, attempt)
        await self._commits.write(_FAIL, (intent.id, code, time))

    async def settle(self, question: bytes, answer: Answer) -> None:
        """Record the final answer, to the latest intent; `answer.attempts` is that intent's number.

        A question is settled once: settling it again is a mistake of the caller's, even with the
        same answer.

        Raises:
            DiskError: as `intend`.
        """
        _, state, code, matched_name, request_id, time, attempts = answer
        assert state in _FINAL, f"{self._path}: {state} is not a final answer"
        intent = self._latest_intent(question, attempts)
        del self._unsettled[question]
        written = self._names.write(matched_name, intent.id)
        await self._commits.write(_SETTLE, (intent.id, str(state), code, written, request_id, time))

    @property
    def last_finish(self) -> Finish | None:
        """The latest outcome file on record, or None."""
        return _last_finish(self._db)

    @property
    def finished_at(self) -> str | None:
        """When the run was finished, or None where a question still lacks its final answer."""
        last = self.last_finish
        return last.time if last is not None and last.unanswered_count == 0 else None

    def finish(self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str) -> None:
        """Record that the outcome file is in place. May be said again after each resumption.

        Args:
            time: UTC, ISO 8601 with Z.
            question_count: distinct questions of the run.
            unanswered_count: those without a final answer: deferred or unanswered. Only with 0 is
                the run finished.
            outcome_sha256: hex digest of the outcome file.

        Raises:
            DiskError: it could not be recorded.
        """
        assert not self._commits.accepting, f"{self._path}: not to be read while it is written to"
        [answer_count, distinct_count] = self._db.execute(
            "SELECT count(*), count(DISTINCT question) FROM answer JOIN intent ON intent.id = answer.intent"
        ).fetchone()
        assert answer_count == distinct_count, f"{self._path}: a question was answered twice"
        assert answer_count >= question_count - unanswered_count, f"{self._path}: answers are missing"
        try:
            self._db.execute(_FINISH, (time, question_count, unanswered_count, outcome_sha256))
        except sqlite3.OperationalError as error:
            raise unwritten(self._path, error) from error

    def allow(self, reason: str, *, time: str) -> None:
        """Record why this run may ask what would otherwise have stopped it.

        Args:
            reason: what the person said who allowed it.
            time: UTC, ISO 8601 with Z.

        Raises:
            DiskError: it could not be recorded.
        """
        assert not self._commits.accepting, f"{self._path}: not to be written to by two hands"
        try:
            self._db.execute("INSERT INTO allowance VALUES(NULL, ?, ?)", (time, reason))
        except sqlite3.OperationalError as error:
            raise unwritten(self._path, error) from error

    def _latest_intent(self, question: bytes, attempt: int) -> _Intent:
        intent = self._unsettled.get(question)
        assert intent is not None, f"{self._path}: the question was not intended, or is settled"
        assert intent.attempt == attempt, f"{self._path}: attempt {attempt} is not the latest"
        return intent

    def _fold(self) -> None:
        if self._commits.refusal is not None:
            return  # a disk that refused a write is left alone; the log is played when it is opened again
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise unwritten(self._path, error) from error


@contextmanager
def held(path: Path, *, now: str) -> Iterator[tuple[RunIdentity, Finish | None]]:
    """What the run in a folder is the run of, and its latest outcome file on record.

    The folder is locked until the block ends. No name is read, so that no key is needed.

    Raises:
        UsageError: there is no ledger.
        LockedError, OutputError, DiskError: as `Ledger.open`.
    """
    if not os.path.lexists(path):
        raise UsageError(f"{path.parent}: no ledger.db in this folder; give the folder of a run")
    with opened(path, None, now=now, fresh=False) as db:
        identity = db.execute("SELECT input_sha256, profile_sha256, environment, tool_version FROM run")
        yield RunIdentity(*identity.fetchone()), _last_finish(db)


def _last_finish(db: sqlite3.Connection) -> Finish | None:
    row = db.execute(
        "SELECT time, question_count, unanswered_count, outcome_sha256 FROM finish ORDER BY id DESC LIMIT 1"
    ).fetchone()
    return Finish(*row) if row else None


def _unsettled(path: Path, db: sqlite3.Connection) -> dict[bytes, _Intent]:
    """The latest intent of every question that has no final answer."""
    unsettled = {}
    for question, latest, attempt, answer_count in db.execute(
        "SELECT question, max(id), max(attempt), count(answer.intent)"
        " FROM intent LEFT JOIN answer ON answer.intent = intent.id"
        " GROUP BY question HAVING count(answer.intent) <> 1"
    ):
        if answer_count:
            raise damaged(path, "a question has two answers")
        unsettled[question] = _Intent(latest, attempt)
    return unsettled
