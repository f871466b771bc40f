"""The detached signature of a manifest: the holder of a private key vouches for the folder.

`manifest.json.sig` holds the 64 bytes of the Ed25519 signature (RFC 8032) of `manifest.json`, which has the
hashes of all other files. It is removed before a manifest is rewritten, so an existing one always verifies.
"""

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import SecretStr

from pipeline.errors import ConfigurationError, DiskError
from pipeline.files.disk_errors import writing
from pipeline.files.plain import plain_bytes
from pipeline.files.private import is_private
from pipeline.wording import Sentence
from schemas.folder import MANIFEST, SIGNATURE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class PublicKey:
    """A key that verifies signatures. Use `read` or `Signer.public_key` to make one."""

    def __init__(self, key: "Ed25519PublicKey") -> None:
        self._key = key

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key from a PEM file (ConfigurationError: it has no Ed25519 public key)."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        content = _bytes(path, "files.public_key_unreadable")
        try:
            key = load_pem_public_key(content)
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigurationError(Sentence("files.not_an_ed25519_public_key", path=path))
        return cls(key)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the key in DER, in hexadecimal."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return sha256(self._key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()

    def verifies(self, folder: Path, manifest: bytes) -> bool:
        """True if the folder of a run has this key's signature of these bytes (DiskError: it has none)."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(_read(folder / SIGNATURE), manifest)
        except InvalidSignature:
            return False
        return True


class Signer:
    """A private key that signs manifests. Use `read` to make one; the key is never shown."""

    def __init__(self, path: Path, key: "Ed25519PrivateKey") -> None:
        self.path = path
        self._key = key

    @classmethod
    def read(cls, path: Path, password: SecretStr | None, *, password_from: str) -> Self:
        """Read a private key from a PEM file (ConfigurationError); its password is from `password_from`."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        content = _bytes(path, "files.private_key_unreadable")
        if not is_private(path.stat()):
            raise ConfigurationError(Sentence("files.key_readable_by_others", path=path))
        is_encrypted = b"ENCRYPTED" in content
        if is_encrypted and password is None:
            raise ConfigurationError(
                Sentence("files.private_key_encrypted", path=path, password_from=password_from)
            )
        opened_by = password.get_secret_value().encode() if password is not None and is_encrypted else None
        try:
            key = load_pem_private_key(content, opened_by)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            if is_encrypted:
                raise ConfigurationError(
                    Sentence("files.key_password_wrong", path=path, password_from=password_from)
                ) from None
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigurationError(Sentence("files.not_an_ed25519_private_key", path=path))
        return cls(path, key)

    @property
    def public_key(self) -> PublicKey:
        """The key that verifies its signatures."""
        return PublicKey(self._key.public_key())

    def has_signed(self, folder: Path) -> bool:
        """True if the manifest in the folder of a run is signed by this key."""
        return is_signed(folder) and self.public_key.verifies(folder, manifest_bytes(folder))

    def sealing_key(self, run_key: bytes) -> bytes:
        """Derive the 32-byte key that seals the lines of one ledger, with HKDF (RFC 5869)."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derivation = HKDF(SHA256(), length=32, salt=run_key, info=b"payee-precheck: seals of a ledger")
        return derivation.derive(self._key.private_bytes_raw())

    def signature(self, content: bytes) -> bytes:
        """Return the 64-byte signature."""
        return self._key.sign(content)


def manifest_bytes(folder: Path) -> bytes:
    """Read the bytes that a signature covers; raises DiskError."""
    return _read(folder / MANIFEST)


def _read(path: Path) -> bytes:
    try:
        return plain_bytes(path)
    except OSError as error:
        raise DiskError(
            Sentence("files.signed_file_unreadable", filename=error.filename, why=error)
        ) from error


def remove_signature(folder: Path) -> None:
    """Remove the signature of a manifest that is about to be rewritten (OutputError, DiskError)."""
    path = folder / SIGNATURE
    with writing(path, otherwise=Sentence("advice.delete_it")):
        path.unlink(missing_ok=True)


def is_signed(folder: Path) -> bool:
    """True if the folder of a run has a signature, even an invalid one."""
    return (folder / SIGNATURE).is_file()


def _bytes(path: Path, key: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(Sentence(key, path=path, why=error)) from None
