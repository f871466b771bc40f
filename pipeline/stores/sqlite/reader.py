"""A ledger that is only read: for its story, its evidence, and the answers that a later run may use again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection

from pydantic import SecretStr

from pipeline.frames import Check
from pipeline.stores.encryption import Names
from pipeline.stores.keyed_hash import keyed_hash, payee_key
from pipeline.stores.sqlite import lines
from pipeline.stores.sqlite.ledger_file import explained, opened_to_read
from pipeline.stores.sqlite.lines import DETAIL_IS_DUE
from pipeline.stores.values import Attempt, Counts, FinalAnswer, Finish

__all__ = ["Attempt", "Counts", "FinalAnswer", "Finish", "Record", "recorded"]


class Record:
    """A sound ledger, open for reading. Made by `recorded`."""

    def __init__(self, path: Path, db: Connection) -> None:
        self.path = path
        self._db = db
        self.run = lines.identity(db)
        self.created_at = lines.created_at(db)
        self._run_key, self._name_proof = db.execute("SELECT run_key, name_proof FROM run").fetchone()
        self._hashed = keyed_hash(self._run_key)
        self.payee_key = payee_key(self._run_key)

    def question_key(self, check: Check) -> bytes:
        """What this ledger knows a question by."""
        return lines.question_key(self._hashed, check)

    def answers(self) -> Iterator[FinalAnswer]:
        """Every final answer, without its matched name; those of earlier runs come last.

        Nobody who only reads needs the names, nor the key that they may be encrypted with.
        """
        return lines.final_answers(self._db, lambda _written, _intent: None)

    @property
    def is_encrypted(self) -> bool:
        """Whether its names can be read with a key only."""
        return self._name_proof is not None

    def opens_with(self, secret: SecretStr) -> bool:
        """Whether this is the key of its names."""
        return Names.under(secret, self._run_key, self.path).proves(self._name_proof)

    def answers_with_names(self, secret: SecretStr | None) -> Iterator[FinalAnswer]:
        """As `answers`, with the matched names that the ledger still has.

        Args:
            secret: what they are encrypted with; None where they are not.
        """
        names = Names.under(secret, self._run_key, self.path)
        return lines.final_answers(self._db, names.read)

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
        """Whether a name that it held was purged."""
        [has_any] = self._db.execute("SELECT EXISTS(SELECT 1 FROM purge WHERE name_count > 0)").fetchone()
        return bool(has_any)

    def detail_count(self, before: str) -> int:
        """How many details of problems there are that came before a time."""
        [count] = self._db.execute(
            f"SELECT count(*) FROM problem WHERE {DETAIL_IS_DUE}",  # noqa: S608 (a constant)
            (before,),
        ).fetchone()
        return int(count)

    def attempts(self, check: Check, secret: SecretStr | None = None) -> list[Attempt]:
        """Every request for a question, first to last.

        Args:
            check: the question.
            secret: what the details of problems are encrypted with; None where they are not, or where the
                key is not there: encrypted ones then stay hidden.
        """
        names = Names.under(secret, self._run_key, self.path)
        is_hidden = self.is_encrypted and secret is None

        def detail_of(written: str | bytes, intent: int) -> str | None:
            return None if is_hidden else names.read(written, intent, "problem")

        return list(lines.attempts(self._db, self.question_key(check), detail_of))

    @property
    def last_finish(self) -> Finish | None:
        """The latest outcome file on record, or None."""
        return lines.last_finish(self._db)

    @property
    def counts(self) -> Counts:
        """How much it holds."""
        return lines.counts(self._db)


@contextmanager
def recorded(path: Path, *, now: str, alone: bool = False) -> Iterator[Record]:
    """The record of the run in a folder; no run can work there until the block ends.

    Args:
        path: the ledger's file.
        now: UTC, ISO 8601 with Z.
        alone: nobody else can work there either, not even read: for who writes other files of the folder.

    Raises:
        UsageError: there is no ledger.
        LockedError: a run works in the folder, or another who must be alone; with `alone`, anybody.
        OutputError: the file is not a ledger.
        DiskError: it is damaged or cannot be read.
    """
    with opened_to_read(path, now=now, alone=alone) as db:
        with explained(path):
            record = Record(path, db)
        yield record
