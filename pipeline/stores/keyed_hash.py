"""Keyed hashes of one ledger: the keys of its questions, and the seals of its rows."""

from collections.abc import Callable, Iterable
from hashlib import blake2b, sha256

PAYEE_KEY_BYTE_COUNT = 8
"""Fits an integer column of a frame; the accounts of two payees collide with a chance of 2**-64."""
_BLOCK_BYTE_COUNT = 64
"""Block size of SHA-256."""
_PADDED = [bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C)]
"""Each byte with the inner pad, and with the outer one."""
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
    """Return a function for each column that hashes any text to 8 bytes: BLAKE2b under the payee key.

    HMAC would take four times as long, for millions of names and accounts. Hashes of one column reveal
    nothing about another column.
    """
    return {column: _payee_hash(payee_key, column) for column in columns}


def _payee_hash(payee_key: bytes, column: str) -> Callable[[str], bytes]:
    prepared = blake2b(key=payee_key, person=column.encode(), digest_size=PAYEE_KEY_BYTE_COUNT)

    def hashed(text: str) -> bytes:
        copy = prepared.copy()
        copy.update(text.encode())
        return copy.digest()

    return hashed
