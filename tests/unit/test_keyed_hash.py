"""The keyed hash of a ledger is HMAC-SHA-256, whoever computes it."""

import hmac

import pytest

from pipeline.stores.ledger_keys import keyed_hash


@pytest.mark.parametrize("key", [b"k", bytes(range(32)), b"\xff" * 64])
def test_keyed_hash_is_that_of_the_standard(key):
    hashed = keyed_hash(key)
    for text in (b"", b"a question", bytes(range(256)) * 5, b"a question"):
        assert hashed(text) == hmac.digest(key, text, "sha256")
