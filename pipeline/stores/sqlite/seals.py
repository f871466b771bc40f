"""Seal every row of the ledger, so that a corrupted byte is never taken for an answer.

SQLite detects an invalid page, not a flipped letter: BANM and PANM are equally valid. So each row carries a
keyed hash of its values, and opening a ledger verifies them all. The key is in the same file: this detects
failing disks and accidental edits, not forgery.

Two other means detect forgery. The manifest of the run has a digest of the seals of each table. With a
signing key, each row's seal has a second half under a key derived from it, which is never stored in the
folder. A purge deletes matched names, so a row's seal covers only a salted hash of its name; the salt is
deleted with the name.
"""

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from pipeline.errors import ConfigurationError, DiskError, InputError
from pipeline.stores.keyed_hash import keyed_hash
from pipeline.stores.values import LedgerProof
from pipeline.wording import Sentence

SEALED: Mapping[str, Sequence[str]] = {
    "intent": ("id", "question", "attempt", "request_id", "time"),
    "failure": ("intent", "code", "time"),
    "answer": ("intent", "state", "code", "request_id", "time", "name_seal"),
    "problem": ("intent", "detail"),
    "reuse": ("question", "code", "request_id", "time", "source_sha256", "reused_at"),
    "finish": ("time", "question_count", "unanswered_count", "outcome_sha256"),
    "purge": ("time", "answers_before", "name_count"),
    "allowance": ("time", "reason"),
    "language": ("time", "code"),
    "run": (
        *("input_sha256", "profile_sha256", "environment", "tool_version", "created_at"),
        *("run_key", "name_proof"),
    ),
}
"""Table -> the columns that its seal covers, besides `after_finish`."""
_ERASABLE: Mapping[str, Sequence[str]] = {"answer": ("matched_name", "name_salt")}
"""Table -> the columns that a purge empties."""
_DIGESTED = [table for table in SEALED if table not in ("problem", "purge")]
"""The tables that only runs add to, and from which nothing is ever deleted."""
_FINISHES = "(SELECT count(*) FROM finish)"
_SEAL_BYTE_COUNT = 32
_SALT_BYTE_COUNT = 16
_RESTORE = (Sentence("stores.bring_back_from"), Sentence("advice.ask_again"))
_ENCODER = json.JSONEncoder(default=bytes.hex)


def register_seal(db: sqlite3.Connection, run_key: bytes, signing_key: bytes | None = None) -> None:
    """Register `seal(table, values...)` and `name_seal(salt, name)`; a signing key adds a second half."""
    hashed = keyed_hash(run_key)
    signed = None if signing_key is None else keyed_hash(signing_key)

    def seal(*values: str | int | bytes | None) -> bytes:
        first = hashed(_ENCODER.encode(values).encode())
        return first if signed is None else first + signed(first)

    db.create_function("seal", -1, seal, deterministic=True)
    db.create_function("name_seal", 2, _name_seal, deterministic=True)


def _name_seal(salt: bytes | None, name: str | bytes | None) -> bytes | None:
    if name is None:
        return None
    return keyed_hash(salt or b"")(name.encode() if isinstance(name, str) else name)


def sealed_name(name: str | bytes | None) -> tuple[bytes | None, str | bytes | None, bytes | None]:
    """The last parameters for inserting an answer: the seal of its name, the name, and the salt."""
    salt = None if name is None else os.urandom(_SALT_BYTE_COUNT)
    return _name_seal(salt, name), name, salt


def insertion(table: str) -> str:
    """The INSERT of one sealed row; its parameters are the columns in `SEALED`, then those of a name."""
    sealed, others = SEALED[table], _ERASABLE.get(table, ())
    columns = ", ".join([*sealed, *others, "after_finish", "seal"])
    placeholders = [f"?{number}" for number in range(1, len(sealed) + len(others) + 1)]
    seal = f"seal('{table}', {', '.join([*placeholders[: len(sealed)], _FINISHES])})"
    return f"INSERT INTO {table}({columns}) VALUES({', '.join([*placeholders, _FINISHES, seal])})"


def new_seal(table: str) -> str:
    """SQL for a row's seal of its current values."""
    return f"seal('{table}', {', '.join(SEALED[table])}, after_finish)"


def first_broken_seal(db: sqlite3.Connection) -> Sentence | None:
    """The first broken seal in the rows of a ledger whose pages are sound, or None."""
    for table in SEALED:
        if broken_count := _count(db, table, f"{_first_half('seal')} IS NOT {_first_half(new_seal(table))}"):
            return Sentence("stores.found_lines_changed", table=table, count=broken_count)
    is_other_name = "name_seal IS NOT name_seal(name_salt, matched_name)"
    if _count(db, "answer", f"matched_name IS NOT NULL AND {is_other_name}"):
        return Sentence("stores.found_names_changed")
    [is_gapless] = db.execute("SELECT count(*) = ifnull(max(id), 0) FROM intent").fetchone()
    return None if is_gapless else Sentence("stores.found_lines_missing")


def digests(db: sqlite3.Connection, finish_count: int) -> dict[str, str]:
    """Table -> SHA-256 (hex) of its rows' seals up to an outcome file (counted from 1)."""
    return {table: _digest(db, table, finish_count) for table in _DIGESTED}


def _digest(db: sqlite3.Connection, table: str, finish_count: int) -> str:
    digest = sha256()
    seals = f"SELECT {_first_half('seal')} FROM {table} WHERE after_finish < ? ORDER BY rowid"  # noqa: S608
    for (seal,) in db.execute(seals, (finish_count,)):
        digest.update(seal)
    return digest.hexdigest()


def require_key(path: Path, db: sqlite3.Connection, proof: LedgerProof) -> None:
    """Refuse to add lines without the signing key of the existing ones: such a ledger could not be signed.

    Raises:
        ConfigurationError: the key is missing.
    """
    if proof.signing_key_of is None and _is_signed(db):
        raise ConfigurationError(
            Sentence("stores.ledger_needs_signing_key", path=path),
            advice=(Sentence("advice.name_signing_key"), Sentence("advice.start_over")),
        )


def require_proved(path: Path, db: sqlite3.Connection, proof: LedgerProof) -> None:
    """Refuse a ledger with valid seals that is not the manifest's, or not sealed with the signing key.

    Raises:
        InputError: it is another one.
    """
    found = digests(db, proof.finish_count) if proof.digests else {}
    if differs := [table for table in found if found[table] != proof.digests.get(table)]:
        raise InputError(
            Sentence("stores.ledger_not_recorded", path=path, tables=differs),
            advice=(Sentence("stores.bring_back_from"), Sentence("advice.start_over")),
        )
    if proof.signing_key_of is None:
        return
    was_signed = _is_signed(db)
    # A purge needs no signing key: it deletes names and adds no answer.
    for table in (table for table in SEALED if table != "purge"):
        is_unsealed = f"after_finish >= {proof.proved_finishes} AND seal IS NOT {new_seal(table)}"
        if count := _count(db, table, is_unsealed):
            raise InputError(
                Sentence("stores.ledger_not_sealed", path=path, table=table, count=count),
                advice=Sentence("stores.bring_back_from" if was_signed else "advice.adopt"),
            )


def _is_signed(db: sqlite3.Connection) -> bool:
    """True if it was begun with a signing key."""
    return _count(db, "run", f"length(seal) > {_SEAL_BYTE_COUNT}") > 0


def _first_half(seal: str) -> str:
    return f"substr({seal}, 1, {_SEAL_BYTE_COUNT})"


def _count(db: sqlite3.Connection, table: str, condition: str) -> int:
    [count] = db.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()  # noqa: S608 (constants)
    return int(count)


def damaged(path: Path, finding: Sentence | str) -> DiskError:
    """The error for a ledger that cannot be read: it is never silently repaired or replaced."""
    return DiskError(Sentence("stores.damaged_unreadable", path=path, finding=finding), advice=_RESTORE)


def altered(path: Path, finding: Sentence | str) -> InputError:
    """The error for a ledger that a person or a disk changed: it is readable, but its seals are broken."""
    return InputError(Sentence("stores.ledger_altered", path=path, finding=finding), advice=_RESTORE)
