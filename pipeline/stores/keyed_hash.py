"""Keyed hashes of one ledger: the keys of its questions, and the seals of its rows."""

from collections.abc import Callable, Iterable
from hashlib import blake2b, sha256

PAYEE_KEY_BYTE_COUNT = 8
"""Fits an integer column of a frame; two accounts of one payee collide with a chance of 2**-64."""
_BLOCK_BYTE_COUNT = 64
"""Block size of SHA-256."""
_PADDED = [bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C)]
"""Each byte with the inner pad, and with the outer one."""
KeyedHash = Callable[[bytes], bytes]


def keyed_hash(run_key: bytes) -> KeyedHash:
    """HMAC-SHA-256 (RFC 2104) under the key of a run: 32 bytes of any text.

    The key is hashed once, here, which costs more than hashing a question or a line. Copying the objects of
    Python's hmac costs two and a half times as much.
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
    """A run's payee key; it reveals no other key, so later runs may keep it."""
    return blake2b(key=run_key, person=b"payees", digest_size=32).digest()


def payee_hashes(payee_key: bytes, columns: Iterable[str]) -> dict[str, Callable[[str], bytes]]:
    """BLAKE2b under the key of a run's payees, separate for each column: 8 bytes of any text.

    A file has millions of names and accounts, and HMAC takes four times as long. The hash of one column
    reveals nothing about another.
    """
    return {column: _payee_hash(payee_key, column) for column in columns}


def _payee_hash(payee_key: bytes, column: str) -> Callable[[str], bytes]:
    prepared = blake2b(key=payee_key, person=column.encode(), digest_size=PAYEE_KEY_BYTE_COUNT)

    def hashed(text: str) -> bytes:
        copy = prepared.copy()
        copy.update(text.encode())
        return copy.digest()

    return hashed
