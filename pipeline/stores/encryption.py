"""How the ledger stores names returned by banks: in plain text, or encrypted under the user's key.

Matched names, and perhaps details of problems, are the only personal data in a ledger. With a key, each is
encrypted and bound to its line, so a name moved to another line is refused. The key is derived from a secret
outside the folder, with the run's own key as the salt, so every run has a different key.

A ledger is encrypted from its first line or not at all: its `name_proof` says which.
"""

from pathlib import Path
from typing import Self

from pydantic import SecretStr

from pipeline.errors import ConfigurationError
from pipeline.stores.cipher import Cipher
from pipeline.stores.sqlite.seals import damaged
from pipeline.wording import Sentence

_PROOF = b"the key of this ledger"


class NameEncryption:
    """The encryption of matched names in one ledger; made by `under`."""

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
            return Sentence("stores.names_this_ledger"), Sentence("stores.name_their_key")
        if self._cipher.decrypt(proof, _PROOF) is None:
            return Sentence("stores.this_ledger_encrypted"), Sentence("stores.name_one_profile")
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
