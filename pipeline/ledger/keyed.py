"""The keyed hash of one ledger: it knows its questions by it, and seals its lines with it."""

import hmac
from collections.abc import Callable

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
