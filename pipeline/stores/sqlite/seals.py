"""Seal every row of the ledger, so that a corrupted byte is never mistaken for an answer; encrypt its names.

SQLite detects an invalid page but not a flipped letter: BANM and PANM are equally valid. So each row contains
a keyed hash of its values, verified when a ledger is opened. The key is in the same file, so this detects
failing disks and accidental edits. Forgery is detected by the digests of each table's seals in the manifest
and, with a signing key, by a second half of each seal under a key that is never stored in the folder. A purge
deletes matched names, so a seal covers only a salted hash of the name; the salt is deleted with the name.
"""

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Self

from pydantic import SecretStr

from pipeline.errors import ConfigurationError, DiskError, InputError
from pipeline.stores.ledger_keys import Cipher, keyed_hash
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
"""Table -> the columns that a row's seal covers, besides `after_finish`."""
_ERASABLE: Mapping[str, Sequence[str]] = {"answer": ("matched_name", "name_salt")}  # emptied by a purge
_DIGESTED = [table for table in SEALED if table not in ("problem", "purge")]
"""Tables that only runs add lines to, and that never lose a line."""
_FINISHES = "(SELECT count(*) FROM finish)"
_SEAL_BYTE_COUNT = 32
_SALT_BYTE_COUNT = 16
_RESTORE = (Sentence("stores.restore_from_copy"), Sentence("advice.ask_again"))
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
    """Return the last parameters for inserting an answer: the seal of its name, the name, and the salt."""
    salt = None if name is None else os.urandom(_SALT_BYTE_COUNT)
    return _name_seal(salt, name), name, salt


def insertion(table: str) -> str:
    """Return the INSERT of a sealed row; its parameters are the columns in `SEALED`, then those of a name."""
    sealed, others = SEALED[table], _ERASABLE.get(table, ())
    columns = ", ".join([*sealed, *others, "after_finish", "seal"])
    placeholders = [f"?{number}" for number in range(1, len(sealed) + len(others) + 1)]
    seal = f"seal('{table}', {', '.join([*placeholders[: len(sealed)], _FINISHES])})"
    return f"INSERT INTO {table}({columns}) VALUES({', '.join([*placeholders, _FINISHES, seal])})"


def new_seal(table: str) -> str:
    """Return SQL that computes the seal of a row's current values."""
    return f"seal('{table}', {', '.join(SEALED[table])}, after_finish)"


def first_broken_seal(db: sqlite3.Connection) -> Sentence | None:
    """Describe the first broken seal in a ledger whose pages are intact, or return None."""
    for table in SEALED:
        if broken_count := _count(db, table, f"{_first_half('seal')} IS NOT {_first_half(new_seal(table))}"):
            return Sentence("stores.found_lines_changed", table=table, count=broken_count)
    is_other_name = "name_seal IS NOT name_seal(name_salt, matched_name)"
    if _count(db, "answer", f"matched_name IS NOT NULL AND {is_other_name}"):
        return Sentence("stores.found_names_changed")
    [is_gapless] = db.execute("SELECT count(*) = ifnull(max(id), 0) FROM intent").fetchone()
    return None if is_gapless else Sentence("stores.found_lines_missing")


def digests(db: sqlite3.Connection, finish_count: int) -> dict[str, str]:
    """Return table -> SHA-256 (hex) of its rows' seals up to an outcome file (counted from 1)."""
    return {table: _digest(db, table, finish_count) for table in _DIGESTED}


def _digest(db: sqlite3.Connection, table: str, finish_count: int) -> str:
    digest = sha256()
    seals = f"SELECT {_first_half('seal')} FROM {table} WHERE after_finish < ? ORDER BY rowid"  # noqa: S608
    for (seal,) in db.execute(seals, (finish_count,)):
        digest.update(seal)
    return digest.hexdigest()


def require_key(path: Path, db: sqlite3.Connection, proof: LedgerProof) -> None:
    """Refuse to add lines to a signed ledger without its key (ConfigurationError): they would be unsigned."""
    if proof.signing_key_of is None and _is_signed(db):
        raise ConfigurationError(
            Sentence("stores.ledger_needs_signing_key", path=path),
            advice=(Sentence("advice.name_signing_key"), Sentence("advice.start_over")),
        )


def require_proved(path: Path, db: sqlite3.Connection, proof: LedgerProof) -> None:
    """Refuse a ledger (InputError) without the manifest's digests, or without the signing key's seals."""
    found = digests(db, proof.finish_count) if proof.digests else {}
    if differs := [table for table in found if found[table] != proof.digests.get(table)]:
        raise InputError(
            Sentence("stores.ledger_not_recorded", path=path, tables=differs),
            advice=(Sentence("stores.restore_from_copy"), Sentence("advice.start_over")),
        )
    if proof.signing_key_of is None:
        return
    was_signed = _is_signed(db)
    # A purge needs no signing key: it deletes names, and adds no answer.
    for table in (table for table in SEALED if table != "purge"):
        is_unsealed = f"after_finish >= {proof.proved_finishes} AND seal IS NOT {new_seal(table)}"
        if count := _count(db, table, is_unsealed):
            raise InputError(
                Sentence("stores.ledger_not_sealed", path=path, table=table, count=count),
                advice=Sentence("stores.restore_from_copy" if was_signed else "advice.let_key_holder_adopt"),
            )


def _is_signed(db: sqlite3.Connection) -> bool:
    return _count(db, "run", f"length(seal) > {_SEAL_BYTE_COUNT}") > 0


def _first_half(seal: str) -> str:
    return f"substr({seal}, 1, {_SEAL_BYTE_COUNT})"


def _count(db: sqlite3.Connection, table: str, condition: str) -> int:
    [count] = db.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()  # noqa: S608 (constants)
    return int(count)


def damaged(path: Path, finding: Sentence | str) -> DiskError:
    """Return the error for a ledger that cannot be read; a ledger is never silently repaired or replaced."""
    return DiskError(Sentence("stores.ledger_damaged", path=path, finding=finding), advice=_RESTORE)


def altered(path: Path, finding: Sentence | str) -> InputError:
    """Return the error for a readable ledger with broken seals: a person or a disk changed it."""
    return InputError(Sentence("stores.ledger_altered", path=path, finding=finding), advice=_RESTORE)


_PROOF = b"the key of this ledger"


class NameEncryption:
    """The encryption of matched names and details of problems, the only personal data; made by `under`.

    Each is bound to its line, so a name moved to another line is refused. The key is derived from a secret
    outside the folder, with the run's own key as the salt, so every run has a different one. A ledger is
    encrypted from its first line or not at all: its `name_proof` says which.
    """

    def __init__(self, path: Path, cipher: Cipher | None) -> None:
        self._path = path
        self._cipher = cipher

    @classmethod
    def under(cls, secret: SecretStr | None, run_key: bytes, path: Path) -> Self:
        """Derive a ledger's encryption from `run_key` (32 bytes); without a secret, names stay plain text."""
        return cls(path, None if secret is None else Cipher.under(secret, run_key))

    @property
    def proof(self) -> bytes | None:
        """A value stored in the ledger to verify its key; None if names are plain text."""
        return None if self._cipher is None else self._cipher.encrypt(b"", _PROOF)

    def require(self, proof: bytes | None) -> None:
        """Refuse a missing key, or one that is not the ledger's (ConfigurationError)."""
        if (mismatch := self._mismatch(proof)) is not None:
            what, step = mismatch
            raise ConfigurationError(
                Sentence("stores.ledger_key_differs", path=self._path, why=what),
                advice=(step, Sentence("advice.start_over")),
            )

    def proves(self, proof: bytes | None) -> bool:
        """True if the ledger was created with this key or, if there is no key, without one."""
        return self._mismatch(proof) is None

    def _mismatch(self, proof: bytes | None) -> tuple[Sentence, Sentence] | None:
        """Explain how the key differs from the ledger's, and what to do; None if it matches."""
        if proof is None:
            begun_in_clear = (Sentence("stores.begun_without_key"), Sentence("stores.finish_without_key"))
            return None if self._cipher is None else begun_in_clear
        if self._cipher is None:
            return Sentence("stores.names_are_encrypted"), Sentence("stores.name_encryption_key")
        if self._cipher.decrypt(proof, _PROOF) is None:
            return Sentence("stores.encrypted_with_other_key"), Sentence("stores.name_original_key")
        return None

    def write(self, name: str | None, intent: int, table: str = "answer") -> str | bytes | None:
        """Return a name or detail as it is stored in a table, in the row of an intent."""
        if name is None or self._cipher is None:
            return name
        return self._cipher.encrypt(name.encode(), _line(intent, table))

    def read(self, written: str | bytes | None, intent: int, table: str = "answer") -> str | None:
        """Return the name that was given to `write`; a DiskError if it was stored in another row."""
        if written is None or (self._cipher is None and isinstance(written, str)):
            return written
        if self._cipher is None or isinstance(written, str):
            raise damaged(self._path, Sentence("stores.found_name_not_encrypted"))
        name = self._cipher.decrypt(written, _line(intent, table))
        if name is None:
            raise damaged(self._path, Sentence("stores.found_name_not_decrypted"))
        return name.decode()


def _line(intent: int, table: str) -> bytes:
    return f"{table} {intent}".encode()
