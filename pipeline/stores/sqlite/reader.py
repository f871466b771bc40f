"""A ledger opened for reading only: for the history of a row, the evidence, and answers to reuse."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection

from pydantic import SecretStr

from pipeline.frames import Check
from pipeline.stores.encryption import NameEncryption
from pipeline.stores.keyed_hash import keyed_hash, payee_key
from pipeline.stores.sqlite import ledger_queries
from pipeline.stores.sqlite.ledger_file import opened_to_read, sqlite_errors
from pipeline.stores.sqlite.ledger_queries import DETAIL_IS_DUE
from pipeline.stores.values import FinalAnswer, FinishRecord, LedgerCounts, RequestAttempt

__all__ = ["FinalAnswer", "FinishRecord", "LedgerCounts", "LedgerReader", "RequestAttempt", "ledger_reader"]


class LedgerReader:
    """A sound ledger, open for reading. Made by `ledger_reader`."""

    def __init__(self, path: Path, db: Connection) -> None:
        self.path = path
        self._db = db
        self.run = ledger_queries.identity(db)
        self.created_at = ledger_queries.created_at(db)
        self._run_key, self._name_proof = db.execute("SELECT run_key, name_proof FROM run").fetchone()
        self._hashed = keyed_hash(self._run_key)
        self.payee_key = payee_key(self._run_key)

    def question_key(self, check: Check) -> bytes:
        """What this ledger knows a question by."""
        return ledger_queries.question_key(self._hashed, check)

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer, without its matched name; those of earlier runs come last.

        So no key is needed where the names are encrypted.
        """
        return ledger_queries.final_answers(self._db, lambda _written, _intent: None)

    @property
    def is_encrypted(self) -> bool:
        """Whether reading its names takes a key."""
        return self._name_proof is not None

    def opens_with(self, secret: SecretStr) -> bool:
        """Whether this is the key of its names."""
        return NameEncryption.under(secret, self._run_key, self.path).proves(self._name_proof)

    def answers_with_names(self, secret: SecretStr | None) -> Iterator[FinalAnswer]:
        """As `answers`, with the matched names that the ledger still has.

        Args:
            secret: what they are encrypted with; None where they are not.
        """
        names = NameEncryption.under(secret, self._run_key, self.path)
        return ledger_queries.final_answers(self._db, names.read)

    @property
    def purged_before(self) -> str | None:
        """The names of answers before this time were purged; None where none ever was."""
        [time] = self._db.execute("SELECT max(answers_before) FROM purge").fetchone()
        return None if time is None else str(time)

    def name_count(self, before: str) -> int:
        """How many matched names there are of answers that came before a time."""
        [count] = self._db.execute(
            "SELECT count(*) FROM answer WHERE matched_name IS NOT NULL AND ifnull(time, '') < ?", (before,)
        ).fetchone()
        return int(count)

    @property
    def has_purged_names(self) -> bool:
        """Whether names were purged from it."""
        [has_any] = self._db.execute("SELECT EXISTS(SELECT 1 FROM purge WHERE name_count > 0)").fetchone()
        return bool(has_any)

    def detail_count(self, before: str) -> int:
        """How many details of problems there are that came before a time."""
        [count] = self._db.execute(
            f"SELECT count(*) FROM problem WHERE {DETAIL_IS_DUE}",  # noqa: S608 (a constant)
            (before,),
        ).fetchone()
        return int(count)

    def attempts(self, check: Check, secret: SecretStr | None = None) -> list[RequestAttempt]:
        """Every request for a question, first to last.

        Args:
            check: the question.
            secret: what the details of problems are encrypted with; None where they are not, or where the
                key is not there: encrypted ones then stay hidden.
        """
        names = NameEncryption.under(secret, self._run_key, self.path)
        is_hidden = self.is_encrypted and secret is None

        def detail_of(written: str | bytes, intent: int) -> str | None:
            return None if is_hidden else names.read(written, intent, "problem")

        return list(ledger_queries.attempts(self._db, self.question_key(check), detail_of))

    @property
    def last_finish(self) -> FinishRecord | None:
        """The latest outcome file on record, or None."""
        return ledger_queries.last_finish(self._db)

    @property
    def counts(self) -> LedgerCounts:
        """How much it holds."""
        return ledger_queries.counts(self._db)


@contextmanager
def ledger_reader(path: Path, *, now: str, alone: bool = False) -> Iterator[LedgerReader]:
    """The ledger of a folder, for reading; no run can work there until the block ends.

    Args:
        path: the ledger's file.
        now: UTC, ISO 8601 with Z.
        alone: exclude other readers too: for a job that writes other files of the folder.

    Raises:
        UsageError: there is no ledger.
        LockedError: a run or another exclusive job holds the folder; with `alone`, also any reader.
        OutputError: the file is not a ledger.
        DiskError: it is damaged or cannot be read.
    """
    with opened_to_read(path, now=now, alone=alone) as db:
        with sqlite_errors(path):
            record = LedgerReader(path, db)
        yield record
