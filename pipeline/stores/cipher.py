"""Encrypt texts of a ledger with AES-256-GCM, each prefixed by its own nonce."""

import os
from typing import Self

from pydantic import SecretStr

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
