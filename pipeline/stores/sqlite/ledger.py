"""The crash-safe record of one run: which questions may have been sent, and the replies.

An answered check is never asked again, however the run dies: a request is sent only after its intent is on
disk, and a check is done only after its answer is. So a crash leaves in doubt exactly the intents with
neither failure nor answer. The ledger is append-only, and contains no name or account from the payer:
questions are stored as keyed hashes. Servers send the only personal data in it, matched names and details of
problems, which can be deleted (`purge`) and encrypted (`seals`).

It is a SQLite file on a *local* disk: the write-ahead log and both locks are unsafe on NFS and SMB shares.
Only one connection of one process may use it: SQLite before 3.51.3 can corrupt a log that two connections
checkpoint.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import anyio.to_thread
from pydantic import SecretStr

from pipeline.errors import DiskError
from pipeline.files.disk_errors import write_failed
from pipeline.frames import Answer
from pipeline.stores import values
from pipeline.stores.group_commit import Batch, GroupCommit
from pipeline.stores.protocols import Closing
from pipeline.stores.sqlite.ledger_file import opened
from pipeline.stores.sqlite.reader import OpenLedger
from pipeline.stores.sqlite.seals import NameEncryption, altered, insertion, sealed_name
from pipeline.wording import Sentence

Row = tuple[str | bytes | int | None, ...]
Insert = tuple[str, Row]  # an INSERT and its parameters
_AT_ONCE = 1_000
_INTEND, _FAIL, _SETTLE, _DETAIL = map(insertion, ("intent", "failure", "answer", "problem"))
# Existing requests are indexed in memory, for this connection.
_MADE = "CREATE TEMP TABLE copied(request_id TEXT PRIMARY KEY, intent INTEGER NOT NULL) WITHOUT ROWID"
_FILLED = "INSERT OR REPLACE INTO temp.copied SELECT request_id, id FROM intent"
_FOUND = (
    "SELECT copied.request_id, copied.intent, failure.intent IS NOT NULL OR answer.intent IS NOT NULL"
    " FROM temp.copied LEFT JOIN failure ON failure.intent = copied.intent"
    " LEFT JOIN answer ON answer.intent = copied.intent WHERE copied.request_id IN ({})"
)
_FINISH, _REUSE = map(insertion, ("finish", "reuse"))
# A run ends with its outcome file; a killed run counts together with the next one.
_FRUITLESS = """
WITH ended AS (
 SELECT intent.id, question, code, attempt,
  (SELECT count(*) FROM finish WHERE finish.time < failure.time) AS run
 FROM failure JOIN intent ON intent.id = failure.intent
 WHERE question NOT IN (SELECT question FROM answer JOIN intent ON intent.id = answer.intent))
SELECT question, code, attempt, max(id) FROM ended GROUP BY question, run ORDER BY max(id)
"""


class _Intent(NamedTuple):
    """The latest intent for a question without a final answer."""

    id: int
    attempt: int


class SqliteLedger(OpenLedger, Closing):
    """The open ledger of one run; a `RunLedger`. Made by `SqliteLedger.open`.

    Writes are accepted only inside `writing()`, from any number of tasks of one event loop, and reach the
    disk even if the run stops. After a failed write (DiskError), no more are accepted.
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection, secret: SecretStr | None, resources: ExitStack
    ) -> None:
        super().__init__(path, connection)
        self._names = NameEncryption.under(secret, self._run_key, path)
        self._names.require(self._name_proof)
        self._commits: GroupCommit[Insert, Batch[Insert]]
        self._commits = GroupCommit(Batch, self._commit, is_shielded=True)
        self._unsettled = _unsettled(path, connection)
        self._has_copied = False
        [self._last_id] = connection.execute("SELECT ifnull(max(id), 0) FROM intent").fetchone()
        self._resources = resources.pop_all()
        self._resources.callback(self._fold)

    @classmethod
    def open(  # noqa: PLR0913 (everything that a ledger is opened with)
        cls,
        path: Path,
        identity: values.RunIdentity,
        *,
        now: str,
        fresh: bool = False,
        secret: SecretStr | None = None,
        proof: values.LedgerProof = values.NO_PROOF,
    ) -> Self:
        """Start or resume the ledger of a run; with `fresh`, delete the existing run first.

        The folder is created if missing, and locked before anything else (LockedError: by another process).
        Without `secret`, matched names are stored in plain text. A resumed ledger must satisfy `proof`
        (InputError: it does not, or was changed). `now` is UTC, ISO 8601 with Z. ConfigurationError: the
        secret is another, given or missing, or a signing key is missing. UsageError: the run has another
        input, profile or environment. OutputError: no ledger can be created, or another file is there.
        DiskError: damaged or unreadable.
        """
        with ExitStack() as stack:
            connection = stack.enter_context(
                opened(path, identity, now=now, fresh=fresh, secret=secret, proof=proof)
            )
            return cls(path, connection, secret, stack)

    def close(self) -> None:
        """Merge the write-ahead log, release the folder (DiskError: the log stays; nothing is lost)."""
        self._resources.close()

    def answers(self) -> Iterator[values.FinalAnswer]:
        self._require_no_writing()
        return self._final_answers(self._names.read)

    async def known(self, questions: Sequence[bytes]) -> dict[bytes, values.QuestionHistory]:
        self._require_no_writing()
        return self._known(questions, self._names.read)

    async def fruitless(self) -> dict[bytes, values.FruitlessQuestion]:
        self._require_no_writing()
        found: dict[bytes, values.FruitlessQuestion] = {}
        for question, code, attempt, _ in self._db.execute(_FRUITLESS):
            if code in values.ABOUT_THE_QUESTION:
                run_count = found[question].run_count + 1 if question in found else 1
                found[question] = values.FruitlessQuestion(run_count, code, attempt)
        return found

    def writing(self) -> AbstractAsyncContextManager[None]:
        return self._commits.writing()

    async def intend(self, question: bytes, *, attempt: int, request_id: str, time: str) -> None:
        earlier = self._unsettled.get(question)
        assert attempt == (earlier.attempt if earlier else 0) + 1, f"{self.path}: an attempt was skipped"
        self._last_id += 1
        self._unsettled[question] = _Intent(self._last_id, attempt)
        await self._commits.write((_INTEND, (self._last_id, question, attempt, request_id, time)))

    async def fail(self, question: bytes, *, attempt: int, code: str, time: str, detail: str = "") -> None:
        intent = self._latest_intent(question, attempt)
        await self._commits.write((_FAIL, (intent.id, code, time)), *self._problem(intent, detail))

    async def settle(self, question: bytes, answer: Answer, detail: str = "") -> None:
        """Repeating it is a bug of the caller, even with the same answer."""
        _, state, code, matched_name, request_id, time, attempts = answer
        assert state in values.FINAL, f"{self.path}: {state} is not a final answer"
        intent = self._latest_intent(question, attempts)
        del self._unsettled[question]
        written = self._names.write(matched_name, intent.id)
        settled = (_SETTLE, (intent.id, str(state), code, request_id, time, *sealed_name(written)))
        await self._commits.write(settled, *self._problem(intent, detail))

    @property
    def finished_at(self) -> str | None:
        last = self.last_finish
        return last.time if last is not None and last.unanswered_count == 0 else None

    def finish(
        self, time: str, *, question_count: int, unanswered_count: int, outcome_sha256: str
    ) -> values.FinishRecord:
        [answer_count, distinct_count] = self._db.execute(
            "SELECT count(*), count(DISTINCT question) FROM"
            " (SELECT question FROM answer JOIN intent ON intent.id = answer.intent"
            " UNION ALL SELECT question FROM reuse)"
        ).fetchone()
        assert answer_count == distinct_count, f"{self.path}: a question was answered twice"
        assert answer_count >= question_count - unanswered_count, f"{self.path}: answers are missing"
        record = values.FinishRecord(time, question_count, unanswered_count, outcome_sha256)
        with self._transaction():
            self._db.execute(_FINISH, record)
        return record

    def reuse(self, answers: Collection[values.ReusedAnswer]) -> None:
        with self._transaction():
            self._db.executemany(_REUSE, answers)

    def earlier_answers(
        self,
        questions: Sequence[bytes],  # noqa: ARG002
        not_before: str,  # noqa: ARG002
    ) -> Mapping[str, Sequence[values.FinalAnswer]]:
        """Return nothing: the ledger of a folder holds only one run."""
        return {}

    def copy(self, requests: Sequence[values.RecordedRequest]) -> None:
        """Add missing requests of other processes, all or none; those of a question in their order."""
        with self._transaction():
            if not self._has_copied:
                self._db.execute(_MADE)
                self._db.execute(_FILLED)
            parts = [requests[start : start + _AT_ONCE] for start in range(0, len(requests), _AT_ONCE)]
            intents = [intent for part in parts for intent in self._copied(part)]
        self._has_copied = True
        for request, intent in zip(requests, intents, strict=True):
            self._last_id = max(self._last_id, intent)
            if request.answer is None:
                self._unsettled[request.question] = _Intent(intent, request.attempt)
            else:
                self._unsettled.pop(request.question, None)

    def allow(self, reason: str, *, time: str) -> None:
        with self._transaction():
            self._db.execute(insertion("allowance"), (time, reason))

    @property
    def language(self) -> str | None:
        found = self._db.execute("SELECT code FROM language ORDER BY id DESC LIMIT 1").fetchone()
        return None if found is None else str(found[0])

    def speak(self, language: str, *, time: str) -> None:
        with self._transaction():
            self._db.execute(insertion("language"), (time, language))

    def _require_no_writing(self) -> None:
        assert not self._commits.accepting, f"{self.path}: not to be used while it is written to"

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """When the block ends, either all of its writes are on disk, or none."""
        self._require_no_writing()
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.OperationalError as error:
            raise write_failed(self.path, error) from error

    def _problem(self, intent: _Intent, detail: str) -> Iterator[Insert]:
        if detail:
            yield _DETAIL, (intent.id, self._names.write(detail, intent.id, "problem"))

    def _latest_intent(self, question: bytes, attempt: int) -> _Intent:
        intent = self._unsettled.get(question)
        assert intent is not None, f"{self.path}: the question was not intended, or is settled"
        assert intent.attempt == attempt, f"{self.path}: attempt {attempt} is not the latest"
        return intent

    async def _commit(self, batch: Batch[Insert]) -> None:
        if self._commits.refusal is not None:
            raise self._commits.refusal
        try:
            await anyio.to_thread.run_sync(self._insert, batch.lines)
        except sqlite3.DatabaseError as error:
            if not isinstance(error, sqlite3.IntegrityError):
                raise write_failed(self.path, error) from error
            refusal = DiskError(Sentence("stores.earlier_write_failed", path=self.path))
            batch.failure = self._commits.refusal = refusal
            raise  # a bug of ours, not a disk error

    def _insert(self, lines: Sequence[Insert]) -> None:
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        for statement, row in lines:
            rows[statement].append(row)
        with self._db as db:
            db.execute("BEGIN IMMEDIATE")
            for statement, its_rows in rows.items():
                db.executemany(statement, its_rows)

    def _copied(self, requests: Sequence[values.RecordedRequest]) -> list[int]:
        """Add missing requests, in this order, or their missing results; return their intents."""
        query = _FOUND.format(", ".join("?" * len(requests)))
        rows = self._db.execute(query, [request.request_id for request in requests]).fetchall()
        intents = {request_id: intent for request_id, intent, _ in rows}
        ended = {request_id for request_id, _, is_ended in rows if is_ended}
        [last_id] = self._db.execute("SELECT ifnull(max(id), 0) FROM intent").fetchone()
        missing = [request for request in requests if request.request_id not in intents]
        new = {request.request_id: intent for intent, request in enumerate(missing, start=last_id + 1)}
        intents |= new
        sent = [
            (new[one.request_id], one.question, one.attempt, one.request_id, one.sent_at) for one in missing
        ]
        self._db.executemany(_INTEND, sent)
        self._db.executemany("INSERT INTO temp.copied VALUES(?, ?)", list(new.items()))
        for request in requests:
            if request.request_id not in ended:
                self._copy_result(intents[request.request_id], request)
        return [intents[one.request_id] for one in requests]

    def _copy_result(self, intent: int, request: values.RecordedRequest) -> None:
        if request.answer is not None:
            _, state, code, name, request_id, time, _ = request.answer
            written = sealed_name(self._names.write(name, intent))
            self._db.execute(_SETTLE, (intent, str(state), code, request_id, time, *written))
        elif request.failed_with is not None:
            self._db.execute(_FAIL, (intent, request.failed_with, request.failed_at))
        else:
            return
        if request.detail:
            self._db.execute(_DETAIL, (intent, self._names.write(request.detail, intent, "problem")))

    def _fold(self) -> None:
        if self._commits.refusal is not None:
            return  # leave a disk that refused a write alone; the next opening replays the log
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise write_failed(self.path, error) from error


def _unsettled(path: Path, db: sqlite3.Connection) -> dict[bytes, _Intent]:
    unsettled = {}
    for question, latest, attempt, answer_count in db.execute(
        "SELECT question, max(id), max(attempt), count(answer.intent)"
        " FROM intent LEFT JOIN answer ON answer.intent = intent.id"
        " GROUP BY question HAVING count(answer.intent) <> 1"
    ):
        if answer_count:
            raise altered(path, Sentence("stores.found_two_answers"))
        unsettled[question] = _Intent(latest, attempt)
    return unsettled
