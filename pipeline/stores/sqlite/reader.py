"""A ledger opened for reading only: to show a row's history, verify evidence, or reuse answers."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from pipeline.frames import Check
from pipeline.stores.encryption import NameEncryption
from pipeline.stores.sqlite.ledger_file import opened_to_read, sqlite_errors
from pipeline.stores.sqlite.open_ledger import DETAIL_IS_DUE, OpenLedger
from pipeline.stores.sqlite.question_index import QuestionIndex
from pipeline.stores.values import NO_PROOF, FinalAnswer, LedgerProof, RequestAttempt

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

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        super().__init__(path, db)
        self._index = QuestionIndex(db)

    def answers(self) -> Iterator[FinalAnswer]:
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
    ) -> dict[bytes, FinalAnswer]:
        """Return final answers by question key and, if requested, the names that are left."""
        read = NameEncryption.under(secret, self._run_key, self.path).read if with_names else _no_name
        known = self._index.known(questions, read)
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
        """True if names were purged from the ledger."""
        [has_any] = self._db.execute("SELECT EXISTS(SELECT 1 FROM purge WHERE name_count > 0)").fetchone()
        return bool(has_any)

    def detail_count(self, before: str) -> int:
        """Count the details of problems from before a time."""
        [count] = self._db.execute(
            f"SELECT count(*) FROM problem WHERE {DETAIL_IS_DUE}",  # noqa: S608 (a constant)
            (before,),
        ).fetchone()
        return int(count)

    def attempts(self, check: Check, secret: SecretStr | None = None) -> list[RequestAttempt]:
        """Return a question's requests, oldest first; without the key, encrypted details stay hidden."""
        names = NameEncryption.under(secret, self._run_key, self.path)
        is_hidden = self.is_encrypted and secret is None

        found = []
        for intent, written, *row in self._db.execute(_ATTEMPTS, (self.question_key(check),)):
            detail = None if written is None or is_hidden else names.read(written, intent, "problem")
            hides = written is not None and detail is None
            found.append(RequestAttempt(*row)._replace(detail=detail, has_hidden_detail=hides))
        return found


@contextmanager
def ledger_reader(
    path: Path, *, now: str, alone: bool = False, proof: LedgerProof = NO_PROOF
) -> Iterator[LedgerReader]:
    """Open a folder's ledger for reading; no run can start during the block. See `opened_to_read`."""
    with opened_to_read(path, now=now, alone=alone, proof=proof) as db:
        with sqlite_errors(path):
            record = LedgerReader(path, db)
        yield record
