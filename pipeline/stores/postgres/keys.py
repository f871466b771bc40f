"""The keys of a ledger in PostgreSQL: what its questions are known by, its lines sealed, its names hidden.

They are random, and lie in the database encrypted under a key that is derived from the user's secret by
scrypt. So the secret can be changed without a change to any line, and a wrong one is noticed at once.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from pydantic import SecretStr

from pipeline.stores.keyed_hash import KeyedHash, keyed_hash

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_KEY_BYTE_COUNT = 32
_SEAL_BYTE_COUNT = 16
_NONCE_BYTE_COUNT = 12
_SCRYPT_COST = 2**15  # 32 MiB and a tenth of a second, once a command
_WRAPPED_FOR = b"the key of this ledger"

Seal = Callable[[bytes, str], bytes]
"""What a line is about, a hash of 32 bytes, and what it says -> its seal."""


class WrappedKey(NamedTuple):
    """The key of a ledger as the database has it."""

    salt: bytes
    hidden: bytes


class StoreKeys:
    """What is derived from the key of one ledger."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.question: KeyedHash = keyed_hash(self._derived(b"questions"))
        """Of what a question says: the same for the same question, in every run on every host."""
        self.plan: KeyedHash = keyed_hash(self._derived(b"plans"))
        prepared = blake2b(key=self._derived(b"seals"), digest_size=_SEAL_BYTE_COUNT)

        def seal(about: bytes, said: str) -> bytes:
            copy = prepared.copy()
            copy.update(about)
            copy.update(said.encode())
            return copy.digest()

        self.seal: Seal = seal

    def wrapped(self, secret: SecretStr) -> WrappedKey:
        """The key under a secret, for the database."""
        salt, nonce = os.urandom(_KEY_BYTE_COUNT), os.urandom(_NONCE_BYTE_COUNT)
        hidden = nonce + _cipher(_derived_from(secret, salt)).encrypt(nonce, self._key, _WRAPPED_FOR)
        return WrappedKey(salt, hidden)

    def names_of(self, run: UUID) -> "RunNames":
        """How the names of one run are stored."""
        return RunNames(_cipher(self._derived(b"names", run.bytes)))

    def _derived(self, purpose: bytes, of: bytes = b"") -> bytes:
        return blake2b(of, key=self._key, person=purpose, digest_size=_KEY_BYTE_COUNT).digest()


def new_keys() -> StoreKeys:
    """Of a ledger that begins."""
    return StoreKeys(os.urandom(_KEY_BYTE_COUNT))


def unwrapped(wrapped: WrappedKey, secret: SecretStr) -> StoreKeys | None:
    """The keys of a ledger; None where the secret is another."""
    from cryptography.exceptions import InvalidTag

    nonce, hidden = wrapped.hidden[:_NONCE_BYTE_COUNT], wrapped.hidden[_NONCE_BYTE_COUNT:]
    try:
        return StoreKeys(_cipher(_derived_from(secret, wrapped.salt)).decrypt(nonce, hidden, _WRAPPED_FOR))
    except (InvalidTag, ValueError):
        return None


class RunNames:
    """The encryption of what servers returned in one run; each text is bound to its line."""

    def __init__(self, cipher: "AESGCM") -> None:
        self._cipher = cipher

    def hidden(self, text: str | None, what: str, question: bytes, attempt: int) -> bytes | None:
        """A text as it is stored."""
        if not text:
            return None
        nonce = os.urandom(_NONCE_BYTE_COUNT)
        return nonce + self._cipher.encrypt(nonce, text.encode(), _line(what, question, attempt))

    def shown(self, hidden: bytes | None, what: str, question: bytes, attempt: int) -> str | None:
        """The text that was hidden in this line.

        Raises:
            InvalidTag, ValueError: it is not what was hidden there.
        """
        if hidden is None:
            return None
        nonce, rest = hidden[:_NONCE_BYTE_COUNT], hidden[_NONCE_BYTE_COUNT:]
        return self._cipher.decrypt(nonce, rest, _line(what, question, attempt)).decode()


def _line(what: str, question: bytes, attempt: int) -> bytes:
    return f"{what} {attempt} ".encode() + question


def _cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _derived_from(secret: SecretStr, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    derivation = Scrypt(salt=salt, length=_KEY_BYTE_COUNT, n=_SCRYPT_COST, r=8, p=1)
    return derivation.derive(secret.get_secret_value().encode())
