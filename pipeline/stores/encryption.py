"""The names that banks returned, as the ledger stores them: in clear, or encrypted under a key of the user's.

A matched name is personal data, and the detail of a problem may be. A ledger has no other. With a key each
is encrypted by AES-256-GCM, under a nonce of its own and bound to its line, so that a name
which was moved to another line is refused.
The key is derived from a secret that is not in the folder, by scrypt: a secret that a person made up
costs whoever guesses it. The run's own key is the salt, so that one secret gives each run another key.

A ledger is encrypted from its first line or not at all: its `name_proof` says which.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import SecretStr

from pipeline.errors import ConfigurationError
from pipeline.stores.sqlite.seals import damaged
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTE_COUNT = 12
_PROOF = b"the key of this ledger"
_SCRYPT_COST = 2**15  # 32 MiB and a tenth of a second, once a run


class NameEncryption:
    """How one ledger stores its matched names. Made by `under`."""

    def __init__(self, path: Path, cipher: "AESGCM | None") -> None:
        self._path = path
        self._cipher = cipher

    @classmethod
    def under(cls, secret: SecretStr | None, run_key: bytes, path: Path) -> Self:
        """In clear without a secret, encrypted with one.

        Args:
            secret: what the key is derived from.
            run_key: of the ledger, 32 bytes.
            path: of the ledger, for messages.
        """
        if secret is None:
            return cls(path, None)
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        derivation = Scrypt(salt=run_key, length=32, n=_SCRYPT_COST, r=8, p=1)
        return cls(path, AESGCM(derivation.derive(secret.get_secret_value().encode())))

    @property
    def proof(self) -> bytes | None:
        """What a ledger keeps to verify its key; None where its names are in clear."""
        return None if self._cipher is None else _encrypted(self._cipher, b"", _PROOF)

    def require(self, proof: bytes | None) -> None:
        """Refuse another key than the ledger was begun with.

        Raises:
            ConfigurationError: it was begun with another key, without one, or with one that is not given.
        """
        if (mismatch := self._mismatch(proof)) is not None:
            what, step = mismatch
            raise ConfigurationError(
                Sentence("stores.ledger_key_differs", path=self._path, why=what),
                advice=(step, Sentence("advice.start_over")),
            )

    def proves(self, proof: bytes | None) -> bool:
        """Whether this is how the ledger was begun."""
        return self._mismatch(proof) is None

    def _mismatch(self, proof: bytes | None) -> tuple[Sentence, Sentence] | None:
        """What differs from how the ledger was begun, and what to do; None where nothing does."""
        if proof is None:
            begun_in_clear = (Sentence("stores.begun_without_key"), Sentence("stores.finish_without_key"))
            return None if self._cipher is None else begun_in_clear
        if self._cipher is None:
            return (
                Sentence("stores.names_this_ledger"),
                Sentence("stores.name_their_key"),
            )
        if _decrypted(self._cipher, proof, _PROOF) is None:
            return Sentence("stores.this_ledger_encrypted"), Sentence("stores.name_one_profile")
        return None

    def write(self, name: str | None, intent: int, table: str = "answer") -> str | bytes | None:
        """A name or a detail as it is stored in the row of an intent in a table."""
        if name is None or self._cipher is None:
            return name
        return _encrypted(self._cipher, name.encode(), _line(intent, table))

    def read(self, written: str | bytes | None, intent: int, table: str = "answer") -> str | None:
        """The name that `write` was given.

        Raises:
            DiskError: it is not what was stored in this row.
        """
        if written is None or (self._cipher is None and isinstance(written, str)):
            return written
        if self._cipher is None or isinstance(written, str):
            raise damaged(self._path, "a name is not encrypted as the others are")
        name = _decrypted(self._cipher, written, _line(intent, table))
        if name is None:
            raise damaged(self._path, "a name cannot be decrypted")
        return name.decode()


def _encrypted(cipher: "AESGCM", content: bytes, bound_to: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTE_COUNT)
    return nonce + cipher.encrypt(nonce, content, bound_to)


def _decrypted(cipher: "AESGCM", written: bytes, bound_to: bytes) -> bytes | None:
    """What was encrypted; None where the key is another, or something was changed."""
    from cryptography.exceptions import InvalidTag

    nonce, hidden = written[:_NONCE_BYTE_COUNT], written[_NONCE_BYTE_COUNT:]
    try:
        return cipher.decrypt(nonce, hidden, bound_to) if len(nonce) == _NONCE_BYTE_COUNT else None
    except InvalidTag:
        return None


def _line(intent: int, table: str) -> bytes:
    return f"{table} {intent}".encode()
