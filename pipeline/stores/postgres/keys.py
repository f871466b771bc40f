"""The keys of a ledger in PostgreSQL, to hash its questions, seal its lines and encrypt its names.

They derive from a random key, which is stored in the database, encrypted under a key that scrypt derives from
the user's secret. So the secret can change without changing any line, and a wrong secret is detected at once.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

from pydantic import SecretStr

from pipeline.stores.ledger_keys import KEY_BYTE_COUNT, Cipher, KeyedHash, keyed_hash

_SEAL_BYTE_COUNT = 16
_WRAPPED_FOR = b"the key of this ledger"

Seal = Callable[[bytes, str], bytes]
"""(32-byte hash of a line's subject, the line's content) -> its seal."""


class WrappedKey(NamedTuple):
    """The key of a ledger as stored in the database."""

    salt: bytes
    hidden: bytes


class StoreKeys:
    """All keys that are derived from the key of one ledger."""

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

    def wrapped(self, secret: SecretStr) -> WrappedKey:
        """Encrypt the key under a secret, for storing it in the database."""
        salt = os.urandom(KEY_BYTE_COUNT)
        return WrappedKey(salt, Cipher.under(secret, salt).encrypt(self._key, _WRAPPED_FOR))

    def names_of(self, run: UUID) -> Cipher:
        """The encryption of texts that servers returned in one run."""
        return Cipher(self._derived(b"names", run.bytes))

    def _derived(self, purpose: bytes, of: bytes = b"") -> bytes:
        return blake2b(of, key=self._key, person=purpose, digest_size=KEY_BYTE_COUNT).digest()


def new_keys() -> StoreKeys:
    """Generate keys for a new ledger."""
    return StoreKeys(os.urandom(KEY_BYTE_COUNT))


def unwrapped(wrapped: WrappedKey, secret: SecretStr) -> StoreKeys | None:
    """Decrypt the key of a ledger, and derive its keys; None if the secret is wrong."""
    key = Cipher.under(secret, wrapped.salt).decrypt(wrapped.hidden, _WRAPPED_FOR)
    return None if key is None else StoreKeys(key)
