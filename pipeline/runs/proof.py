"""Open the ledger of a run's folder, or sign it; only here, so no unverified ledger is used or signed.

The manifest's digests, signed if there is a key, prove the lines it knew; seals prove those of a killed run.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from sys import maxsize

from platformdirs import user_state_path

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import Chosen, choose, signed_with
from pipeline.errors import ConfigurationError, InputError, OtherRunError, PrecheckError, UsageError
from pipeline.files.atomic import write_atomically
from pipeline.files.plain import plain_bytes, real_path
from pipeline.files.private import user_folder
from pipeline.files.signatures import PublicKey, Signer, is_signed, manifest_bytes
from pipeline.runs.folder import approvals_of, as_written, has_begun, ledger_of, made_anew
from pipeline.runs.manifest import read_manifest, replaced_manifest
from pipeline.runs.request import Notice
from pipeline.runs.starting import earlier_run
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.ledger_file import require_ledger
from pipeline.stores.sqlite.reader import LedgerReader, ledger_reader
from pipeline.stores.values import NO_PROOF, LedgerProof, RunIdentity
from pipeline.wording import Sentence
from schemas.folder import APPROVALS, CORRECTED, HOLD, MANIFEST, OUTCOMES, RELEASE, SIGNATURE
from schemas.manifest import Manifest
from schemas.strict import parse


def sign(folder: Path, signer: Signer | None, manifest: Manifest) -> None:
    """Sign this manifest, even if its file in the folder has changed since (OutputError, DiskError)."""
    if signer is None:
        return
    with write_atomically(folder / SIGNATURE) as file:
        file.write(signer.signature(as_written(manifest)))
    with suppress(OSError, PrecheckError):  # the folder may be signed even if the time cannot be recorded
        for path in (_path_of(manifest), _path_of_place(folder, manifest)):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with write_atomically(path) as file:
                file.write(manifest.written.encode())


def is_signed_by(key: PublicKey, folder: Path, manifest: Manifest) -> bool:
    """True if the folder has a signature of this manifest by this key (DiskError; InputError: replaced)."""
    content = manifest_bytes(folder)
    if not key.verifies(folder, content):
        return False
    if parse(Manifest, content) != manifest:
        raise InputError(Sentence("runs.changed_meanwhile", path=folder / MANIFEST))
    return True


def is_outdated(folder: Path, manifest: Manifest) -> bool:
    """True if this machine has signed a newer manifest of the run or its folder, by its own record."""
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


_MADE_OF_PAYMENTS = (CORRECTED, RELEASE, HOLD, OUTCOMES)


def proof_of(folder: Path, signer: Signer | None = None, manifest: Manifest | None = None) -> LedgerProof:
    """Return the proof required of a ledger, even of a killed run (InputError: as `_require_own`)."""
    proof = NO_PROOF if signer is None else LedgerProof(signing_key_of=signer.sealing_key)
    try:
        manifest = manifest or read_manifest(folder)
    except UsageError:
        return proof
    recorded = manifest.ledger
    proof = proof._replace(digests=recorded.digests, finish_count=recorded.finish_count)
    if signer is None or not is_signed(folder):
        return proof
    _require_own(folder, signer, manifest)
    return proof._replace(proved_finishes=recorded.finish_count)


@contextmanager
def opened_to_read(  # noqa: PLR0913 (who reads, and what proves the ledger)
    folder: Path,
    *,
    now: str,
    alone: bool = False,
    proves: bool = True,
    signer: Signer | None = None,
    manifest: Manifest | None = None,
) -> Iterator[LedgerReader]:
    """Open a run's ledger for reading; no run can work in the folder during the block.

    `alone` excludes other readers too, for jobs that write in the folder. Only jobs about the ledger itself
    read an unverified one. With `signer`, the ledger must be signed or, if the run has not ended, sealed.

    Raises UsageError without a run, LockedError if the folder is held, InputError if the ledger does not
    match the manifest or is unsigned, and OutputError or DiskError as `reader.ledger_reader`.
    """
    require_ledger(ledger_of(folder))
    proof = proof_of(folder, signer, manifest) if proves else NO_PROOF
    if signer is not None and proof.digests and not proof.proved_finishes:
        raise _not_signed(folder)
    with ledger_reader(ledger_of(folder), now=now, alone=alone, proof=proof) as record:
        yield record


def open_ledger(  # noqa: PLR0913 (what to open, and for whom)
    folder: Path,
    identity: RunIdentity,
    chosen: Chosen,
    *,
    now: str,
    before: Manifest | None = None,
    over: Callable[[Notice], object] | None = None,
) -> SqliteLedger:
    """Start or resume a ledger; only the profile's key may have signed its manifest, `before`.

    With `over`, the run starts afresh: an earlier run is deleted or, if it must be kept, moved aside; `over`
    gets a notice of its path. Raises as `SqliteLedger.open` and `PriorRun.move_aside`, and InputError:
    decisions are not signed.
    """
    signer = chosen.signer
    if over is None:
        proof = proof_of(folder, signer, before)
    else:
        proof = NO_PROOF if signer is None else LedgerProof(signing_key_of=signer.sealing_key)
        earlier = earlier_run(folder, now)
        if earlier is not None and earlier.is_kept:
            over(Notice(Sentence("runs.moved_aside", folder=earlier.move_aside(now)), is_vital=True))
    if signer is not None:
        _refuse_unsigned_decisions(folder, before if over is None else replaced_manifest(folder), signer)
    try:
        return SqliteLedger.open(
            ledger_of(folder),
            identity,
            now=now,
            fresh=over is not None,
            secret=chosen.settings.ledger_key(),
            proof=proof,
        )
    except OtherRunError as refused:
        earlier = earlier_run(folder, now)
        assert earlier is not None
        raise earlier.refusal(refused, chosen.environment, chosen.name) from None


def refuse_changed_copy(file: Path, sha256: str, signer: Signer | None, *, own: Path) -> None:
    """Refuse a payment file in another run's folder that differs from that run's record of it (InputError).

    With `signer`, a file named like a run's must be in evidence that it has signed (UsageError: no manifest).
    """
    path = real_path(file)
    folder, is_proved = path.parent, signer is not None and path.parent != real_path(own)
    is_of_run = is_proved and path.name.partition(".")[0] in _MADE_OF_PAYMENTS
    try:
        manifest = read_manifest(folder)
    except (InputError, UsageError) as error:
        if has_begun(folder) and (is_of_run or isinstance(error, InputError)):
            raise
        return  # not a file of a run, or it does not exist
    recorded = {one.name: one.sha256 for one in (manifest.outcome_file, *manifest.files)}
    if signer is not None and is_proved and (is_of_run or path.name in recorded):
        _require_own(folder, signer, manifest)
    if recorded.get(path.name, "" if is_of_run else sha256) != sha256:
        raise InputError(Sentence("runs.changed_since", path=file, remedy=made_anew(path)))


def is_sealed_by(signer: Signer, folder: Path, *, now: str) -> bool:
    """True if every line of the ledger is sealed under this signing key, regardless of the manifest."""
    proof = LedgerProof(signing_key_of=signer.sealing_key)
    try:
        with ledger_reader(ledger_of(folder), now=now, proof=proof):
            return True
    except InputError:
        return False


def is_past_signing(folder: Path, ledger: SqliteLedger, chosen: Chosen) -> bool:
    """False if a run was killed after writing its manifest but before signing it."""
    if chosen.signer is None or ledger.last_finish is None or is_signed(folder):
        return True
    manifest = replaced_manifest(folder)
    return manifest is None or manifest.written != ledger.last_finish.time


def proof_of_purge(signer: Signer | None) -> LedgerProof:
    """Return the proof for a purge, which any folder meets: a purge adds no answer and seals its own line."""
    if signer is None:
        return NO_PROOF
    return LedgerProof(signing_key_of=signer.sealing_key, proved_finishes=maxsize)


def signer_again(
    folder: Path, manifest: Manifest, key: Path | None, file: ConfigurationFile | None = None
) -> Signer | None:
    """Return the signer of a verified manifest that is about to be rewritten; None if it stays unsigned.

    The key is the named one, or else the profile's, which the usual configuration need not contain
    (ConfigurationError: it does not open; InputError: the folder is not signed with it, or was changed).
    """
    signer = named_signer(key, manifest.profile.name, file or ConfigurationFile())
    if signer is not None:
        _require_own(folder, signer, manifest)
    return signer


def named_signer(key: Path | None, profile: str, file: ConfigurationFile) -> Signer | None:
    """Return a signer with the named key or the profile's, or None; errors as in `signer_again`."""
    try:
        chosen = choose(profile, file)
    except ConfigurationError:
        if file.explicit is not None:
            raise
        chosen = choose(None, file)
    return signed_with(chosen, key).signer


def _refuse_unsigned_decisions(folder: Path, recorded: Manifest | None, signer: Signer) -> None:
    """Refuse to sign decisions by people, and their files, in a folder that was unsigned."""
    claimed: list[object] = [*approvals_of(folder)]
    if recorded is not None and is_signed(folder) and is_signed_by(signer.public_key, folder, recorded):
        is_proved = claimed == recorded.approvals
    else:
        if recorded is not None:
            claimed += (*recorded.adoptions, *recorded.splits, *recorded.replaced_splits)
        is_proved = not claimed
    if not is_proved:
        raise InputError(
            Sentence("runs.approvals_not_signed", path=folder / APPROVALS),
            advice=(Sentence("stores.restore_from_copy"), Sentence("advice.let_key_holder_adopt")),
        )


def _not_signed(folder: Path) -> InputError:
    return InputError(
        Sentence("runs.not_signed", folder=folder, signature=SIGNATURE),
        advice=Sentence("advice.let_key_holder_adopt"),
    )


def _require_own(folder: Path, signer: Signer, manifest: Manifest) -> None:
    """Refuse what this key has not signed, an older state, and decisions recorded without the key."""
    if not is_signed(folder):
        raise _not_signed(folder)
    if not is_signed_by(signer.public_key, folder, manifest):
        path = folder / SIGNATURE
        raise InputError(
            Sentence("files.manifest_signature_invalid", folder=path, manifest=MANIFEST, path=signer.path)
        )
    if is_outdated(folder, manifest):
        raise InputError(
            Sentence("runs.older_signed_state", folder=folder), advice=Sentence("stores.restore_from_copy")
        )
    if approvals_of(folder) != manifest.approvals:
        manifest_path, path = folder / MANIFEST, folder / APPROVALS
        raise InputError(
            Sentence("runs.approvals_not_signed", path=path),
            advice=Sentence("runs.take_signed_decisions", manifest=manifest_path, path=path),
        )
