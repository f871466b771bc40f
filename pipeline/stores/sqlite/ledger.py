"""The crash-safe record of one run: which questions may have been sent, and what came back.

The rule it serves: an answered check is never asked again, whatever kills the run. A request leaves
only after its intent is on disk, and a check counts as done only after its answer is on disk. What a
crash leaves in doubt is therefore known exactly: intents with neither failure nor answer.

The ledger is append-only, and it holds no name or account that the payer sent: a question is known by
a keyed hash. The only personal data in it are what servers sent: the matched names, and perhaps the detail
of a problem, from which the caller removes what was asked. They are also the only thing that can ever be
deleted from it, by `pipeline.stores.sqlite.purge`; the answer they came with stays final. With a secret of
the user's they are encrypted (`pipeline.stores.encryption`).

It is a SQLite file on a *local* disk. Its write-ahead log and both of its locks are unsafe on NFS and
SMB shares. One process and one connection work on it at a time: SQLite before 3.51.3 can corrupt a
write-ahead log that two connections checkpoint, and with a single connection the question does not
arise.
"""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from pydantic import SecretStr

from pipeline.files.disk_errors import write_failed
from pipeline.frames import Answer, AnswerState, Check
from pipeline.stores.encryption import NameEncryption
from pipeline.stores.keyed_hash import keyed_hash, payee_key
from pipeline.stores.sqlite import ledger_queries
from pipeline.stores.sqlite.copied_requests import RequestCopier
from pipeline.stores.sqlite.group_commit import FileCommit, Insert
from pipeline.stores.sqlite.ledger_file import opened
from pipeline.stores.sqlite.question_index import QuestionIndex
from pipeline.stores.sqlite.seals import damaged, insertion
from pipeline.stores.values import (
    FinalAnswer,
    FinishRecord,
    FruitlessQuestion,
    LedgerCounts,
    QuestionHistory,
    RecordedRequest,
    ReusedAnswer,
    RunIdentity,
)

__all__ = [
    "FinalAnswer",
    "FinishRecord",
    "FruitlessQuestion",
    "LedgerCounts",
    "ReusedAnswer",
    "RunIdentity",
    "SqliteLedger",
]

_INTEND, _FAIL, _SETTLE, _DETAIL = map(insertion, ("intent", "failure", "answer", "problem"))
_FINISH, _REUSE = map(insertion, ("finish", "reuse"))
_FINAL = frozenset({AnswerState.ANSWERED, AnswerState.REFUSED})


class _Intent(NamedTuple):
    """The latest intent of a question that has no final answer."""

    id: int
    attempt: int


class SqliteLedger:
    """The ledger of one run, open. Made by `SqliteLedger.open`.

    Writes are accepted inside `writing()` only, from any number of tasks of one event loop.

    Attributes:
        run: what it is the record of.
        created_at: when the first run in this folder began.
        payee_key: under which this folder knows payees and accounts.
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection, secret: SecretStr | None, resources: ExitStack
    ) -> None:
        self._path = path
        self._db = connection
        [run_key, name_proof] = connection.execute("SELECT run_key, name_proof FROM run").fetchone()
        self._hashed = keyed_hash(run_key)
        self.payee_key = payee_key(run_key)
        self._names = NameEncryption.under(secret, run_key, path)
        self._names.require(name_proof)
        self._commits = FileCommit(path, connection)
        self._unsettled = _unsettled(path, connection)
        self._index = QuestionIndex(connection)
        self._copier = RequestCopier(connection, self._names)
        self.run = ledger_queries.identity(connection)
        self.created_at = ledger_queries.created_at(connection)
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
        """Start the ledger of a run, or resume it.

        The folder is created if it is missing, and locked before anything in it is touched.

        Args:
            path: the ledger's file, conventionally `ledger.db` in the output folder.
            identity: the input, profile and environment of this run.
            now: UTC, ISO 8601 with Z.
            fresh: forget the run that the folder holds, and every answer in it.
            secret: what matched names are encrypted with; None: they are stored in clear.

        Raises:
            ConfigurationError: the ledger was begun with another secret, or with one where none is given, or
                without one where one is.
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
        """Fold the write-ahead log into the file and release the folder. Safe to call twice.

        Raises:
            DiskError: the log could not be folded. It stays beside the file, and nothing is lost.
        """
        self._resources.close()

    def question_key(self, check: Check) -> bytes:
        """What the ledger knows a question by: 32 bytes, the same for the same question in this run.

        The key of the hash lives in the ledger: two runs cannot be linked by their questions, but
        whoever holds the file can try names on it, which is why the file is 0600.
        """
        return ledger_queries.question_key(self._hashed, check)

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer, in the order in which their requests left. Not while `writing()`.

        Those of earlier runs, which `reuse` recorded, come last.
        """
        assert not self._commits.accepting, f"{self._path}: not to be read while it is written to"
        return ledger_queries.final_answers(self._db, self._names.read)

    async def known(self, questions: Sequence[bytes]) -> dict[bytes, QuestionHistory]:
        """The history of these questions; one without a history is left out. Not while `writing()`."""
        assert not self._commits.accepting, f"{self._path}: not to be read while it is written to"
        return self._index.known(questions, self._names.read)

    async def fruitless(self) -> dict[bytes, FruitlessQuestion]:
        """The open questions that earlier runs, and this one, got nowhere with. Not while `writing()`."""
        assert not self._commits.accepting, f"{self._path}: not to be read while it is written to"
        return ledger_queries.fruitless(self._db)

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Accept writes until the block ends; the last of them is on disk when it has ended."""
        return self._commits.writing()

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        """Record that a request is about to leave. It may leave once this has returned.

        Args:
            question: the question's key.
            attempt: one more than `known` has for it, 1 where it has none.
            request_id: the correlation id of the request.
            time: UTC, ISO 8601 with Z.

        Raises:
            DiskError: this or an earlier write did not reach the disk; nothing more is accepted.
        """
        earlier = self._unsettled.get(question)
        assert attempt == (earlier.attempt if earlier else 0) + 1, f"{self._path}: an attempt was skipped"
        self._last_id += 1
        self._unsettled[question] = _Intent(self._last_id, attempt)
        await self._commits.write((_INTEND, (self._last_id, question, attempt, request_id, time)))

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        """Record that an attempt gave nothing usable. The question stays open.

        Args:
            question: the question's key.
            attempt: the number of its latest intent.
            code: how it failed.
            time: UTC, ISO 8601 with Z.
            detail: the server's description of the problem, without personal data of the question.

        Raises:
            DiskError: as `intend`.
        """
        intent = self._latest_intent(question, attempt)
        await self._commits.write((_FAIL, (intent.id, code, time)), *self._problem(intent, detail))

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Record the final answer, to the latest intent; `answer.attempts` is that intent's number.

        A question is settled once: settling it again is a mistake of the caller's, even with the
        same answer.

        Args:
            question: the question's key.
            answer: what came back.
            detail: the server's description of a refusal, without personal data of the question.

        Raises:
            DiskError: as `intend`.
        """
        _, state, code, matched_name, request_id, time, attempts = answer
        assert state in _FINAL, f"{self._path}: {state} is not a final answer"
        intent = self._latest_intent(question, attempts)
        del self._unsettled[question]
        written = self._names.write(matched_name, intent.id)
        settled = (_SETTLE, (intent.id, str(state), code, written, request_id, time))
        await self._commits.write(settled, *self._problem(intent, detail))

    @property
    def counts(self) -> LedgerCounts:
        """How much it holds."""
        return ledger_queries.counts(self._db)

    @property
    def last_finish(self) -> FinishRecord | None:
        """The latest outcome file on record, or None."""
        return ledger_queries.last_finish(self._db)

    @property
    def finished_at(self) -> str | None:
        """When the run was finished, or None where a question still lacks its final answer."""
        last = self.last_finish
        return last.time if last is not None and last.unanswered_count == 0 else None

    def finish(
        self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str
    ) -> FinishRecord:
        """Record that the outcome file is in place; again after each resumption.

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
            "SELECT count(*), count(DISTINCT question) FROM"
            " (SELECT question FROM answer JOIN intent ON intent.id = answer.intent"
            " UNION ALL SELECT question FROM reuse)"
        ).fetchone()
        assert answer_count == distinct_count, f"{self._path}: a question was answered twice"
        assert answer_count >= question_count - unanswered_count, f"{self._path}: answers are missing"
        try:
            self._db.execute(_FINISH, (time, question_count, unanswered_count, outcome_sha256))
        except sqlite3.OperationalError as error:
            raise write_failed(self._path, error) from error
        return FinishRecord(time, question_count, unanswered_count, outcome_sha256)

    def reuse(self, answers: Collection[ReusedAnswer]) -> None:
        """Record that these questions are not asked, because an earlier run had their answers.

        Such an answer is final in this run too. All of them are on disk when this returns, or none.

        Raises:
            DiskError: they could not be recorded.
        """
        assert not self._commits.accepting, f"{self._path}: not to be written to by two hands"
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(_REUSE, answers)
        except sqlite3.OperationalError as error:
            raise write_failed(self._path, error) from error

    def earlier_answers(
        self,
        questions: Sequence[bytes],  # noqa: ARG002
        not_before: str,  # noqa: ARG002
    ) -> Mapping[str, Sequence[FinalAnswer]]:
        """None: the ledger of a folder holds one run."""
        return {}

    def copy(self, requests: Sequence[RecordedRequest]) -> None:
        """Add requests of this run that other processes recorded elsewhere, as far as they are not here.

        All of them are on disk when this returns, or none.

        Args:
            requests: those for one question in the order in which they left, as far as they are known; their
                questions are keys of this ledger.

        Raises:
            DiskError: they could not be recorded.
        """
        assert not self._commits.accepting, f"{self._path}: not to be written to by two hands"
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                intents = self._copier.add(requests)
        except sqlite3.OperationalError as error:
            raise write_failed(self._path, error) from error
        for request, intent in zip(requests, intents, strict=True):
            self._last_id = max(self._last_id, intent)
            if request.answer is None:
                self._unsettled[request.question] = _Intent(intent, request.attempt)
            else:
                self._unsettled.pop(request.question, None)

    def allow(self, reason: str, *, time: str) -> None:
        """Record why this run may ask in spite of a warning that would have stopped it.

        Args:
            reason: as the user gave it.
            time: UTC, ISO 8601 with Z.

        Raises:
            DiskError: it could not be recorded.
        """
        assert not self._commits.accepting, f"{self._path}: not to be written to by two hands"
        try:
            self._db.execute(insertion("allowance"), (time, reason))
        except sqlite3.OperationalError as error:
            raise write_failed(self._path, error) from error

    def _problem(self, intent: _Intent, detail: str) -> Iterator[Insert]:
        """The row for the detail of a problem, where there is one."""
        if detail:
            yield _DETAIL, (intent.id, self._names.write(detail, intent.id, "problem"))

    def _latest_intent(self, question: bytes, attempt: int) -> _Intent:
        intent = self._unsettled.get(question)
        assert intent is not None, f"{self._path}: the question was not intended, or is settled"
        assert intent.attempt == attempt, f"{self._path}: attempt {attempt} is not the latest"
        return intent

    def _fold(self) -> None:
        if self._commits.refusal is not None:
            return  # a disk that refused a write is left alone; the log is replayed at the next opening
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise write_failed(self._path, error) from error


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
