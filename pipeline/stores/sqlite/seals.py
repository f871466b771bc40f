"""A seal on every row of the ledger, so that a corrupted byte is never taken for an answer.

SQLite detects an invalid page, not a flipped letter: BANM and PANM are equally sound to it. Each row
therefore carries a keyed hash of its values, and all of them are verified when a ledger is opened.
The key lies in the same file: this guards against failing disks and careless edits, not against forgery.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.errors import DiskError
from pipeline.stores.keyed_hash import keyed_hash
from pipeline.wording import Sentence

SEALED: Mapping[str, Sequence[str]] = {
    "intent": ("id", "question", "attempt", "request_id", "time"),
    "failure": ("intent", "code", "time"),
    "answer": ("intent", "state", "code", "matched_name", "request_id", "time"),
    "problem": ("intent", "detail"),
    "reuse": ("question", "code", "request_id", "time", "source_sha256", "reused_at"),
    "finish": ("time", "question_count", "unanswered_count", "outcome_sha256"),
    "purge": ("time", "answers_before", "name_count"),
    "allowance": ("time", "reason"),
    "run": (
        *("input_sha256", "profile_sha256", "environment", "tool_version", "created_at"),
        *("run_key", "name_proof"),
    ),
}
"""Table -> the columns that its seal covers."""

_ENCODER = json.JSONEncoder(default=bytes.hex)


def register_seal(db: sqlite3.Connection, run_key: bytes) -> None:
    """Register the SQL function `seal(table, values...)` of a run on this connection."""
    hashed = keyed_hash(run_key)

    def seal(*values: str | int | bytes | None) -> bytes:
        return hashed(_ENCODER.encode(values).encode())

    db.create_function("seal", -1, seal, deterministic=True)


def insertion(table: str) -> str:
    """The INSERT of one sealed row; its parameters are the columns in `SEALED`."""
    columns = SEALED[table]
    places = ", ".join(f"?{number}" for number, _ in enumerate(columns, start=1))
    return f"INSERT INTO {table}({', '.join(columns)}, seal) VALUES({places}, seal('{table}', {places}))"


def new_seal(table: str, **changed: str) -> str:
    """The SQL of a row's seal once some columns have other values, given as SQL."""
    return f"seal('{table}', {', '.join(changed.get(column, column) for column in SEALED[table])})"


def first_broken_seal(db: sqlite3.Connection) -> str | None:
    """What is wrong with the rows of a ledger whose pages are sound, or None."""
    for table in SEALED:
        [broken_count] = db.execute(
            f"SELECT count(*) FROM {table} WHERE seal IS NOT {new_seal(table)}"  # noqa: S608 (constants)
        ).fetchone()
        if broken_count:
            return f"lines of the table {table} were changed: {broken_count}"
    [is_gapless] = db.execute("SELECT count(*) = ifnull(max(id), 0) FROM intent").fetchone()
    return None if is_gapless else "lines of the table intent are missing"


def damaged(path: Path, finding: str) -> DiskError:
    """The error for a ledger that cannot be trusted: it is never silently repaired or replaced."""
    return DiskError(
        Sentence("stores.damaged_unreadable", path=path, finding=finding),
        advice=(Sentence("stores.bring_back_from"), Sentence("advice.ask_again")),
    )
