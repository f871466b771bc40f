"""A server of the test's own behind the certificate of the sandbox; the rest is in tests/desk.py."""

import pytest
from impostors import impostor


@pytest.fixture(scope="session")
def misbehaving(sandbox):
    """`with misbehaving(handler) as url`: the certificate is the sandbox's, so its ca.pem trusts it."""
    return lambda handler: impostor(sandbox.folder, handler)
