"""The keys of a ledger in PostgreSQL: what its questions are known by, its lines sealed, its names hidden.

They are random, and lie in the database encrypted under a key that is derived from the user's secret by
scrypt. So the secret can be changed without a change to any line, and a wrong one is noticed at once.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

from pydantic import SecretStr

from pipeline.stores.cipher import KEY_BYTE_COUNT, Cipher
from pipeline.stores.keyed_hash import KeyedHash, keyed_hash

_SEAL_BYTE_COUNT = 16
_WRAPPED_FOR = b"the key of this ledger"

Seal = Callable[[bytes, str], bytes]
"""What a line is about, a hash of 32 bytes, and what it says -> its seal."""


class WrappedKey(NamedTuple):
    """The key of a ledger as the database has it."""

    salt: bytes
    hidden: bytes


class StoreKeys:
    """Keys derived from the key of one ledger."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.question: KeyedHash = keyed_hash(self._derived(b"questions"))
        """Of what a question says: the same for the same question, in every run on every host."""
        self.plan: KeyedHash = keyed_hash(self._derived(b"plans"))
        prepared = blake2b(key=self._derived(b"seals"), digest_size=_SEAL_BYTE_COUNT)

        def seal(about: bytes, content: str) -> bytes:
            copy = prepared.copy()
            copy.update(about)
            copy.update(content.encode())
            return copy.digest()

        self.seal: Seal = seal

    def wrapped(self, secret: SecretStr) -> WrappedKey:
        """The key under a secret, for the database."""
        salt = os.urandom(KEY_BYTE_COUNT)
        return WrappedKey(salt, Cipher.under(secret, salt).encrypt(self._key, _WRAPPED_FOR))

    def names_of(self, run: UUID) -> Cipher:
        """What hides the texts that servers returned in one run."""
        return Cipher(self._derived(b"names", run.bytes))

    def _derived(self, purpose: bytes, of: bytes = b"") -> bytes:
        return blake2b(of, key=self._key, person=purpose, digest_size=KEY_BYTE_COUNT).digest()


def new_keys() -> StoreKeys:
    """Keys for a new ledger."""
    return StoreKeys(os.urandom(KEY_BYTE_COUNT))


def unwrapped(wrapped: WrappedKey, secret: SecretStr) -> StoreKeys | None:
    """The keys of a ledger; None if the secret is another."""
    key = Cipher.under(secret, wrapped.salt).decrypt(wrapped.hidden, _WRAPPED_FOR)
    return None if key is None else StoreKeys(key)
