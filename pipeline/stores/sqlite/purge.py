"""Erase the names that banks returned, so that no byte of them remains in the ledger.

The answer stays final, and is never asked for again. Details of problems may quote a name, so they are erased
too.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from pipeline.files.disk_errors import write_failed
from pipeline.stores.sqlite.ledger_file import opened, require_ledger
from pipeline.stores.sqlite.reader import DETAIL_IS_DUE
from pipeline.stores.sqlite.seals import insertion
from pipeline.stores.values import NO_PROOF, LedgerProof

_DUE = "matched_name IS NOT NULL AND ifnull(time, '') < ?"


def purge(
    path: Path,
    *,
    answers_before: str,
    now: str,
    first: Callable[[], object] = lambda: None,
    proof: LedgerProof = NO_PROOF,
) -> int:
    """Delete matched names, and details of problems, from before a time; return the number of names.

    Times are UTC, ISO 8601 with Z. `first` deletes the other files that contain these names. It is called
    before the ledger is purged, so that the next purge completes an interrupted one; it is not called if the
    ledger keeps all its names, unless its last outcome file is older. The folder is locked meanwhile.
    UsageError: there is no ledger. Other errors as in `SqliteLedger.open`.
    """
    require_ledger(path)
    with opened(path, None, now=now, fresh=False, proof=proof) as db:
        [due_count] = db.execute(
            f"SELECT count(*) FROM answer WHERE {_DUE}",  # noqa: S608 (a constant)
            (answers_before,),
        ).fetchone()
        [was_purged] = db.execute("SELECT EXISTS(SELECT 1 FROM purge WHERE name_count > 0)").fetchone()
        [has_ended_before] = db.execute(
            "SELECT ifnull(max(time), ?1) < ?1 FROM finish", (answers_before,)
        ).fetchone()
        if due_count or was_purged or has_ended_before or answers_before >= now:
            first()
        try:
            _erase(db, answers_before, now)
        except sqlite3.OperationalError as error:
            raise write_failed(path, error) from error
    return int(due_count)


def _erase(db: sqlite3.Connection, answers_before: str, now: str) -> None:
    """Delete the due names and all copies of them, in the log and in free pages of the file."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        erased = db.execute(
            f"UPDATE answer SET matched_name = NULL, name_salt = NULL WHERE {_DUE}",  # noqa: S608 (a constant)
            (answers_before,),
        )
        db.execute(f"DELETE FROM problem WHERE {DETAIL_IS_DUE}", (answers_before,))  # noqa: S608 (a constant)
        db.execute(insertion("purge"), (now, answers_before, erased.rowcount))
    # Even without due names, because an earlier purge may have been interrupted here.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
