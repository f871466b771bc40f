"""Seal, encrypt, verify and read the lines of a ledger in PostgreSQL."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self
from uuid import UUID

import psycopg
from pydantic import SecretStr

from pipeline.errors import DiskError
from pipeline.frames import Answer, AnswerState
from pipeline.stores.ledger_keys import KEY_BYTE_COUNT, Cipher, KeyedHash, keyed_hash
from pipeline.stores.postgres.connection import Database
from pipeline.stores.postgres.recording import AnswerLine, FailureLine, IntentLine
from pipeline.stores.postgres.schema import STATEMENTS
from pipeline.stores.protocols import StoredRun
from pipeline.stores.values import (
    ABOUT_THE_QUESTION,
    ChunkLease,
    FinalAnswer,
    FruitlessQuestion,
    QuestionHistory,
    RecordedRequest,
    ReusedAnswer,
)
from pipeline.wording import Sentence

_SEAL_BYTE_COUNT = 16
_WRAPPED_FOR = b"the key of this ledger"

Seal = Callable[[bytes, str], bytes]  # (32-byte hash of a line's subject, the line's content) -> its seal


class StoreKeys:
    """All keys that are derived from the key of one ledger.

    That key is random, and stored in the database, encrypted under a key that scrypt derives from the user's
    secret. So the secret can change without changing any line, and a wrong one is detected at once.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.question: KeyedHash = keyed_hash(self._derived(b"questions"))
        """The key of a question: equal for equal questions, in every run on every host."""
        self.plan: KeyedHash = keyed_hash(self._derived(b"plans"))
        prepared = blake2b(key=self._derived(b"seals"), digest_size=_SEAL_BYTE_COUNT)

        def seal(about: bytes, content: str) -> bytes:
            copy = prepared.copy()
            copy.update(about)
            copy.update(content.encode())
            return copy.digest()

        self.seal: Seal = seal

    @classmethod
    def unwrapped(cls, salt: bytes, hidden: bytes, secret: SecretStr) -> Self | None:
        """Decrypt the key that the database holds, and derive its keys; None if the secret is wrong."""
        key = Cipher.under(secret, salt).decrypt(hidden, _WRAPPED_FOR)
        return None if key is None else cls(key)

    def wrapped(self, secret: SecretStr) -> tuple[bytes, bytes]:
        """Encrypt the key under a secret, for storing it in the database, and return it after its salt."""
        salt = os.urandom(KEY_BYTE_COUNT)
        return (salt, Cipher.under(secret, salt).encrypt(self._key, _WRAPPED_FOR))

    def names_of(self, run: UUID) -> Cipher:
        """The encryption of texts that servers returned in one run."""
        return Cipher(self._derived(b"names", run.bytes))

    def _derived(self, purpose: bytes, of: bytes = b"") -> bytes:
        return blake2b(of, key=self._key, person=purpose, digest_size=KEY_BYTE_COUNT).digest()


class RunLines:
    """Makes and reads the lines of one run."""

    def __init__(self, keys: StoreKeys, run: StoredRun, place: str) -> None:
        self._seal = keys.seal
        self._names = keys.names_of(run.id)
        self._run = run.number
        self._place = place

    def intent(  # noqa: PLR0913, PLR0917
        self, lease: ChunkLease, question: bytes, attempt: int, request_id: str, time: str, api: str
    ) -> IntentLine:
        """Make the line of a request about to be sent."""
        seal = self._seal(question, f"intent\n{self._run}\n{attempt}\n{request_id}\n{time}")
        return IntentLine(lease, question, attempt, request_id, time, seal, api)

    def failure(  # noqa: PLR0913, PLR0917
        self, lease: ChunkLease, question: bytes, attempt: int, round_: int, code: str, time: str, detail: str
    ) -> FailureLine:
        """Make the line of a request whose result is unusable."""
        seal = self._seal(question, self._failure(attempt, round_, code, time))
        hidden = self._hidden(detail, "problem", question, attempt)
        return FailureLine(lease, question, attempt, round_, str(code), time, hidden, seal)

    def answer(self, lease: ChunkLease, question: bytes, answer: Answer, detail: str) -> AnswerLine:
        """Make the line of a final answer."""
        _, state, code, matched_name, _, time, attempt = answer
        name = self._hidden(matched_name, "answer", question, attempt)
        hidden = self._hidden(detail, "problem", question, attempt)
        seal = self._seal(question, self._answer(attempt, state, code, time or "", name is not None))
        return AnswerLine(lease, question, attempt, str(state), str(code), time or "", name, hidden, seal)

    def reused(self, answer: ReusedAnswer) -> bytes:
        """Seal an answer of an earlier run."""
        question, code, *fields = answer
        return self._seal(question, "\n".join(("reuse", str(self._run), *fields, code)))

    def require_intent(self, question: bytes, attempt: int, request_id: str, time: str, seal: bytes) -> None:
        """Verify the seal of a request's line (DiskError: the line is corrupt)."""
        self._require(question, f"intent\n{self._run}\n{attempt}\n{request_id}\n{time}", seal)

    def require_failure(  # noqa: PLR0913, PLR0917
        self, question: bytes, attempt: int, round_: int, code: str, time: str, seal: bytes
    ) -> None:
        """Verify the seal of a failure, like `require_intent`."""
        self._require(question, self._failure(attempt, round_, code, time), seal)

    def require_reused(self, answer: ReusedAnswer, seal: bytes) -> None:
        """Verify the seal of an earlier run's answer, like `require_intent`."""
        if self.reused(answer) != seal:
            raise self._damaged()

    def final_answer(  # noqa: PLR0913, PLR0917
        self,
        question: bytes,
        attempt: int,
        request_id: str,
        state: str,
        code: str,
        time: str,
        is_named: bool,
        name: bytes | None,
        seal: bytes,
    ) -> FinalAnswer:
        """Read a line as a final answer (DiskError: the line is corrupt)."""
        self._require(question, self._answer(attempt, state, code, time, is_named), seal)
        shown = self.shown(name, "answer", question, attempt)
        return FinalAnswer(question, AnswerState(state), code, shown, request_id, time, attempt)

    def shown(self, hidden: bytes | None, what: str, question: bytes, attempt: int) -> str | None:
        """Decrypt a name or detail (DiskError: it does not belong to this line)."""
        if hidden is None:
            return None
        text = self._names.decrypt(hidden, _line(what, question, attempt))
        if text is None:
            raise self._damaged()
        return text.decode()

    def _hidden(self, text: str | None, what: str, question: bytes, attempt: int) -> bytes | None:
        return self._names.encrypt(text.encode(), _line(what, question, attempt)) if text else None

    # The server's code comes last, so that no code can make two different lines look equal.

    def _failure(self, attempt: int, round_: int, code: str, time: str) -> str:
        return f"failure\n{self._run}\n{attempt}\n{round_}\n{time}\n{code}"

    def _answer(self, attempt: int, state: str, code: str, time: str, is_named: bool) -> str:
        return f"answer\n{self._run}\n{attempt}\n{state}\n{time}\n{is_named:d}\n{code}"

    def _require(self, question: bytes, content: str, seal: bytes) -> None:
        if self._seal(question, content) != seal:
            raise self._damaged()

    def _damaged(self) -> DiskError:
        return damaged(self._place, self._run)


def _line(what: str, question: bytes, attempt: int) -> bytes:
    return f"{what} {attempt} ".encode() + question


def damaged(place: str, run: int) -> DiskError:
    """Return the error for a ledger that cannot be trusted."""
    return DiskError(Sentence("stores.ledger_line_changed", place=place, run=run))


_AT_ONCE = 1_000


def known(
    db: psycopg.Connection, lines: RunLines, run: int, questions: Sequence[bytes]
) -> dict[bytes, QuestionHistory]:
    """Return the history of these questions, without those that have none."""
    found: dict[bytes, QuestionHistory] = {}
    for start in range(0, len(questions), _AT_ONCE):
        some = list(questions[start : start + _AT_ONCE])
        for row in db.cursor(binary=True).execute(STATEMENTS["lines.asked"], (some, run)):
            question, attempt, request_id, time, seal, *ended = row
            lines.require_intent(question, attempt, request_id, time, seal)
            round_, failed_with, failed_at, failure_seal, answered, state, code, *fields = ended
            if failed_with is not None:
                lines.require_failure(question, attempt, round_, failed_with, failed_at, failure_seal)
            answer = None
            if state is not None:
                answer = lines.final_answer(question, answered, request_id, state, code, *fields)
            found[question] = QuestionHistory(answer, attempt, failed_with)
        for question, *rest, seal in db.cursor(binary=True).execute(STATEMENTS["lines.reused"], (run, some)):
            used = ReusedAnswer(question, *rest)
            lines.require_reused(used, seal)
            attempts = found[question].attempts if question in found else 0
            found[question] = QuestionHistory(used.as_answer(attempts), attempts, None)
    return found


def fruitless(db: psycopg.Connection, run: int) -> Mapping[bytes, FruitlessQuestion]:
    """Return the open questions whose rounds ended with a reply about the question itself."""
    found: dict[bytes, FruitlessQuestion] = {}
    codes = [str(code) for code in ABOUT_THE_QUESTION]
    for question, code, attempt in db.cursor(binary=True).execute(
        STATEMENTS["lines.fruitless"], (run, codes, run)
    ):
        before = found.get(question)
        found[question] = FruitlessQuestion(1 if before is None else before.run_count + 1, code, attempt)
    return found


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
        for row in db.cursor(binary=True).execute(STATEMENTS["lines.latest"], values):
            source, number, run_id, version, *fields = row
            if number not in lines:
                lines[number] = RunLines(keys, StoredRun(number, run_id, version, "", None), place)
            question, attempt, request_id, sent_at, seal, state, code, time, is_named, _, answer_seal = fields
            lines[number].require_intent(question, attempt, request_id, sent_at, seal)
            answered = state, code, time, is_named, None, answer_seal
            answer = lines[number].final_answer(question, attempt, request_id, *answered)
            found.setdefault(source, []).append(answer)
    return found


def recorded(
    database: Database, keys: StoreKeys, run: StoredRun, *, at_once: int = 5_000
) -> Iterator[RecordedRequest]:
    """Yield a run's requests in the order of recording, then the answers of earlier runs."""
    lines = RunLines(keys, run, database.address.place)
    with database.another() as own:
        requests = _Requests(run.number, at_once)
        while some := own.run(requests.more):
            for row in some:
                yield _request(lines, row)
            requests.latest = some[-1][0]
        reused = own.run(
            lambda db: (
                db.cursor(binary=True).execute(STATEMENTS["lines.recorded_reused"], (run.number,)).fetchall()
            )
        )
        for row in reused:
            attempts, *fields, seal = row
            used = ReusedAnswer(*fields)
            lines.require_reused(used, seal)
            of_question = used.question, 0, used.request_id, used.time, None, None
            yield RecordedRequest(*of_question, used.as_answer(attempts), "", reused=used)


@dataclass(slots=True)
class _Requests:
    """A run's rows in batches, sorted once by the server; reading continues after a lost connection."""

    run: int
    at_once: int
    latest: int = 0  # number of the last row read
    _reading: psycopg.Connection | None = None  # the connection of the cursor

    def more(self, db: psycopg.Connection) -> list[tuple[Any, ...]]:
        if self._reading is not db:
            db.execute(STATEMENTS["lines.recorded"], (self.run, self.latest), prepare=False)
            self._reading = db
        fetch = f"FETCH {self.at_once} FROM requests".encode()
        return db.cursor(binary=True).execute(fetch, prepare=False).fetchall()


def _request(lines: RunLines, row: tuple[Any, ...]) -> RecordedRequest:
    _, question, attempt, request_id, time, seal, *ended = row
    round_, failed_with, failed_at, failure_detail, failure_seal, *answered = ended
    state, code, answered_at, is_named, name, answer_seal, answer_detail = answered
    lines.require_intent(question, attempt, request_id, time, seal)
    answer = None
    if failed_with is not None:
        lines.require_failure(question, attempt, round_, failed_with, failed_at, failure_seal)
    if state is not None:
        answer = lines.final_answer(
            question, attempt, request_id, state, code, answered_at, is_named, name, answer_seal
        )
    hidden = failure_detail if state is None else answer_detail
    detail = lines.shown(hidden, "problem", question, attempt) or ""
    return RecordedRequest(question, attempt, request_id, time, failed_with, failed_at, answer, detail)
