"""Keyed hashes and encryption of one ledger: keys of its questions, seals of its rows, names in them."""

import os
from collections.abc import Callable, Iterable
from hashlib import blake2b, sha256
from typing import Self

from pydantic import SecretStr

PAYEE_KEY_BYTE_COUNT = 8  # fits an integer column; two payees' accounts collide with a chance of 2**-64
_BLOCK_BYTE_COUNT = 64  # block size of SHA-256
_PADDED = [bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C)]  # inner pad, outer pad
KeyedHash = Callable[[bytes], bytes]


def keyed_hash(run_key: bytes) -> KeyedHash:
    """HMAC-SHA-256 (RFC 2104) under the key of a run: hashes any text to 32 bytes.

    The key is hashed only once, here, because that costs more than hashing a question or a line. Copying
    Python's hmac objects instead would take two and a half times as long.
    """
    assert len(run_key) <= _BLOCK_BYTE_COUNT
    block = run_key.ljust(_BLOCK_BYTE_COUNT, b"\0")
    inner, outer = (sha256(block.translate(padded)) for padded in _PADDED)

    def hashed(text: bytes) -> bytes:
        within = inner.copy()
        within.update(text)
        around = outer.copy()
        around.update(within.digest())
        return around.digest()

    return hashed


def payee_key(run_key: bytes) -> bytes:
    """Derive a run's payee key; it reveals no other key, so later runs may keep it."""
    return blake2b(key=run_key, person=b"payees", digest_size=32).digest()


def payee_hashes(payee_key: bytes, columns: Iterable[str]) -> dict[str, Callable[[str], bytes]]:
    """Return a function for each column: BLAKE2b to 8 bytes, four times as fast as HMAC, and unlinkable."""
    return {column: _payee_hash(payee_key, column) for column in columns}


def _payee_hash(payee_key: bytes, column: str) -> Callable[[str], bytes]:
    prepared = blake2b(key=payee_key, person=column.encode(), digest_size=PAYEE_KEY_BYTE_COUNT)

    def hashed(text: str) -> bytes:
        copy = prepared.copy()
        copy.update(text.encode())
        return copy.digest()

    return hashed


KEY_BYTE_COUNT = 32
_NONCE_BYTE_COUNT = 12
_SCRYPT_COST = 2**15  # 32 MiB and a tenth of a second, once per run or command


class Cipher:
    """Encrypts under one key, and binds each text to the line that it belongs to."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aes = AESGCM(key)

    @classmethod
    def under(cls, secret: SecretStr, salt: bytes) -> Self:
        """Derive the key with scrypt, so that guessing a secret is expensive."""
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        derivation = Scrypt(salt=salt, length=KEY_BYTE_COUNT, n=_SCRYPT_COST, r=8, p=1)
        return cls(derivation.derive(secret.get_secret_value().encode()))

    def encrypt(self, content: bytes, bound_to: bytes) -> bytes:
        """Return the nonce, followed by the ciphertext."""
        nonce = os.urandom(_NONCE_BYTE_COUNT)
        return nonce + self._aes.encrypt(nonce, content, bound_to)

    def decrypt(self, written: bytes, bound_to: bytes) -> bytes | None:
        """Return the plaintext; None if the key or the line differs, or the text was changed."""
        from cryptography.exceptions import InvalidTag

        nonce, hidden = written[:_NONCE_BYTE_COUNT], written[_NONCE_BYTE_COUNT:]
        try:
            return self._aes.decrypt(nonce, hidden, bound_to) if len(nonce) == _NONCE_BYTE_COUNT else None
        except InvalidTag:
            return None
