"""Sign the manifest of a run, and detect that an older signed state was restored.

Each machine stores, beside the daily caps, the time of the last manifest that it signed, by run and by
folder. So it detects an older state, and a folder that lost its signature and seals.
"""

from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

from platformdirs import user_state_path

from pipeline.errors import InputError, PrecheckError
from pipeline.files import signatures
from pipeline.files.atomic import write_atomically
from pipeline.files.plain import plain_bytes, real_path
from pipeline.files.private import user_folder
from pipeline.files.signatures import PublicKey, Signer, manifest_bytes
from pipeline.runs.folder import as_written
from pipeline.wording import Sentence
from schemas.folder import MANIFEST
from schemas.manifest import Manifest
from schemas.strict import parse


def sign(folder: Path, signer: Signer | None, manifest: Manifest) -> None:
    """Sign the manifest that was just written to a run's folder; without a signer it stays unsigned.

    The signature is for this manifest, even if the file was changed in the meantime.

    Raises:
        OutputError, DiskError: the signature cannot be written.
    """
    if signer is None:
        return
    signatures.sign(folder, signer, as_written(manifest))
    with suppress(OSError, PrecheckError):  # the folder may be signed even if the time cannot be recorded
        for path in (_path_of(manifest), _path_of_place(folder, manifest)):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with write_atomically(path) as file:
                file.write(manifest.written.encode())


def is_signed_by(key: PublicKey, folder: Path, manifest: Manifest) -> bool:
    """True if the folder contains a signature of this manifest by this key.

    Raises:
        DiskError: the signature or the manifest cannot be read.
        InputError: the manifest was replaced in the meantime.
    """
    content = manifest_bytes(folder)
    if not key.verifies(folder, content):
        return False
    if parse(Manifest, content) != manifest:
        raise InputError(Sentence("runs.changed_meanwhile", path=folder / MANIFEST))
    return True


def is_outdated(folder: Path, manifest: Manifest) -> bool:
    """True if this machine has signed a newer manifest of the run, or of its file in this folder."""
    for path_of in (_path_of, partial(_path_of_place, folder)):
        with suppress(OSError, ValueError, PrecheckError):
            if plain_bytes(path_of(manifest)).decode() > manifest.written:
                return True
    return False


def was_signed_here(folder: Path, manifest: Manifest) -> bool:
    """True if this machine has signed any run of this file in this folder."""
    with suppress(PrecheckError):
        return _path_of_place(folder, manifest).exists()
    return False


def _path_of(manifest: Manifest) -> Path:
    return user_folder(user_state_path) / "signed" / manifest.ledger.digests["run"]


def _path_of_place(folder: Path, manifest: Manifest) -> Path:
    place = f"{manifest.input.sha256} {real_path(folder)}".encode(errors="surrogateescape")
    return user_folder(user_state_path) / "signed" / sha256(place).hexdigest()
