"""The keyed hash of one ledger: the key of its questions, and the seal of its rows."""

import hmac
from collections.abc import Callable, Iterable
from hashlib import blake2b

PAYEE_KEY_BYTE_COUNT = 8
"""As many as a number of a frame has; two accounts of one payee collide with a chance of 2**-64."""
KeyedHash = Callable[[bytes], bytes]


def keyed_hash(run_key: bytes) -> KeyedHash:
    """HMAC-SHA-256 under the key of a run: 32 bytes of any text.

    The key is prepared once here, as that costs more than hashing a question or a line does.
    """
    prepared = hmac.new(run_key, digestmod="sha256")

    def hashed(text: bytes) -> bytes:
        copy = prepared.copy()
        copy.update(text)
        return copy.digest()

    return hashed


def payee_key(run_key: bytes) -> bytes:
    """The key of a run's payees, which a later run may keep: it reveals nothing else."""
    return blake2b(key=run_key, person=b"payees", digest_size=32).digest()


def payee_hashes(payee_key: bytes, columns: Iterable[str]) -> dict[str, Callable[[str], bytes]]:
    """BLAKE2b under the key of a run's payees, another for each column: 8 bytes of any text.

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
