"""Keys that sign the evidence of runs."""

from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


def key_files(desk, name, key=None, password=None):
    """A private key, by default the same for one name, and its public key, as files."""
    key = key or Ed25519PrivateKey.from_private_bytes(sha256(name.encode()).digest())
    hidden = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    private = desk.file(f"{name}.pem", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
    private.chmod(0o600)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private, desk.file(f"{name}.pub.pem", public)
