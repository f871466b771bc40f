"""The manifest of a run's folder: written when the run ends, updated when files are added."""

import hashlib
import platform
import re
import ssl
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category, normalize

from pydantic import ValidationError

from pipeline.config import Profile
from pipeline.errors import DiskError, InputError, UsageError
from pipeline.files.folder_lock import LOCK
from pipeline.files.plain import open_plain, plain_bytes
from pipeline.files.signatures import remove_signature
from pipeline.rules.totals import control_totals
from pipeline.runs.folder import approvals_of, as_written, has_begun, keep_document
from pipeline.runs.request import Notice, Surface
from pipeline.stages.validate import Routes
from pipeline.stores.sqlite import SQLITE_VERSION
from pipeline.stores.sqlite.ledger_file import ledger_files
from pipeline.stores.values import FinishRecord, LedgerCounts
from pipeline.wording import Sentence, language
from schemas.folder import (
    APPROVALS,
    DATA_SET,
    FAMILY,
    FAMILY_LOCK,
    LEDGER,
    MANIFEST,
    REPORT_XLSX,
    SIGNATURE,
    STORE,
    SUMMARY,
    kept_workbook,
)
from schemas.manifest import (
    Adoption,
    FileEvidence,
    LedgerEvidence,
    Manifest,
    ProfileUsed,
    Purge,
    ServerUsed,
    SplitMade,
)
from schemas.outcomes import ApiName
from schemas.review import Approval
from schemas.strict import parse, timestamp
from schemas.summary import ReportUsed, Summary

if TYPE_CHECKING:
    from pipeline.runs.request import CheckJob
    from pipeline.stores.protocols import RunLedger


_CLIENT_SHOWN_LENGTH = 4


class RunSettings(NamedTuple):
    """The settings of a run."""

    profile_name: str
    profile: Profile
    fingerprint: str
    mapping: Mapping[str, str]  # canonical field -> header, chosen by the user
    language: str  # language of page and workbook


def profile_used(settings: RunSettings) -> ProfileUsed:
    """Return a run's settings for its manifest, without credentials."""
    profile = settings.profile
    return ProfileUsed(
        name=settings.profile_name,
        sha256=settings.fingerprint,
        default_account_type=profile.default_account_type,
        gb_iban_to=profile.gb_iban_to,
        ask_by=profile.ask_by,
        vop_countries=None if profile.vop_countries == "any" else profile.vop_countries,
        vop_names=profile.vop_names,
        servers=[
            ServerUsed(
                api=server.name,
                client=masked_client(server.client),
                daily_cap=server.cap,
                **server.model_dump(include=_KEPT),
            )
            for server in profile.servers
        ],
    )


_KEPT = set(ServerUsed.model_fields) - {"api", "client", "daily_cap"}
"""Keys of a section that the manifest records under the same name."""


def routes_of(profile: ProfileUsed) -> Routes:
    """Return the routes of payments under a run's settings; a run without servers read a bank's report."""
    return Routes(
        apis=tuple(server.api for server in profile.servers) or (ApiName.BANK_REPORT,),
        gb_iban_to="vop" if profile.gb_iban_to == "vop" else "cop",
        default_account_type=profile.default_account_type,
        ask_by="identification" if profile.ask_by == "identification" else "name",
        send_remittance=any(server.send_remittance for server in profile.servers),
        bic_table={start: bic for server in profile.servers for start, bic in server.bic_table.items()},
        vop_countries=None if profile.vop_countries is None else tuple(profile.vop_countries),
        vop_names="latin" if profile.vop_names == "latin" else "any",
    )


def masked_client(client: str) -> str:
    """Return as much of a client's id as is needed to tell clients apart."""
    return "****" + (client[-_CLIENT_SHOWN_LENGTH:] if len(client) > 2 * _CLIENT_SHOWN_LENGTH else "")


_PAYABLE = ("release", "corrected", "outcomes", "payment", "paiement", "zahlung")
_HIDDEN = (".", "_")
_UNSEEN = ("Cc", "Cf", "Mn")
_TWO_SCRIPTS = re.compile("[a-z][\u0370-\u052f]|[\u0370-\u052f][a-z]")
"""A Greek or Cyrillic letter beside a Latin one."""
LIBRARIES = ("aiohttp", "anyio", "httpx", "polars", "pyarrow", "pydantic", "schwifty")
"""Packages that affect how files are read, and requests and answers processed."""


class LedgerSummary(NamedTuple):
    """What the manifest records of the ledger, as of now."""

    finish: FinishRecord
    counts: LedgerCounts
    created_at: str
    finish_count: int
    digests: Mapping[str, str]
    input_sha256: str | None = None  # the ledger's hash of the payments; None if it is the hash of the input


def write_manifest(  # noqa: PLR0913 (everything to be written)
    folder: Path,
    summary: Summary,
    settings: RunSettings,
    recorded: LedgerSummary,
    files: Iterable[Path],
    *,
    before: Manifest | None = None,
    signs: bool = False,
) -> Manifest:
    """Write the manifest, as the last file of a run, without credentials; same errors as `write_atomically`.

    The outcome file comes first in `files`. `before` is the manifest from before the run; a signed manifest
    takes decisions only from it. InputError: approvals are unreadable, or a file was changed meanwhile.
    """
    outcome_file, *others = [evidence(path) for path in files]
    if outcome_file.sha256 != recorded.finish.outcome_sha256:
        raise InputError(Sentence("runs.changed_meanwhile", path=folder / outcome_file.name))
    written = hashlib.sha256(as_written(summary)).hexdigest()
    if any(file.name == SUMMARY and file.sha256 != written for file in others):
        raise InputError(Sentence("runs.changed_meanwhile", path=folder / SUMMARY))
    decided = [] if before is None else before.approvals
    before = before if recorded.finish_count > 1 else None
    manifest = Manifest(
        tool_version=summary.tool_version,
        versions=_versions(),
        profile=profile_used(settings),
        environment=summary.environment,
        simulated=summary.simulated,
        many_names_reason=summary.many_names_reason,
        started=summary.started,
        finished=summary.finished,
        written=recorded.finish.time,
        input=summary.input,
        mapping=dict(settings.mapping),
        language=settings.language,
        outcome_file=outcome_file,
        files=others,
        outcomes=summary.outcomes,
        totals=control_totals(summary.outcomes),
        ledger=LedgerEvidence(
            input_sha256=recorded.input_sha256 if recorded.input_sha256 != summary.input.sha256 else None,
            question_count=recorded.finish.question_count,
            unanswered_count=recorded.finish.unanswered_count,
            **recorded.counts._asdict(),
            created_at=recorded.created_at,
            finish_count=recorded.finish_count,
            digests=dict(recorded.digests),
        ),
        approvals=decided if signs else approvals_of(folder),
        bank_reports=summary.bank_reports,
        adoptions=[] if before is None else before.adoptions,
        replaced_splits=[] if before is None else [*before.replaced_splits, *before.splits],
    )
    _write(folder, manifest)
    return manifest


def language_of_reports(job: "CheckJob", ledger: "RunLedger", *, now: str) -> str:
    """Return the user's language of page and workbook: now, else at the last reports, else at the start."""
    before = replaced_manifest(job.out)
    code = job.language or (ledger.language if before is None else before.language) or language()
    if code != ledger.language:
        ledger.speak(code, time=now)
    return code


def replaced_manifest(folder: Path) -> Manifest | None:
    """Return the manifest that is about to be replaced; None if it cannot be read."""
    try:
        return read_manifest(folder)
    except (UsageError, InputError):
        return None


def refresh_manifest(  # noqa: PLR0913 (everything that may change)
    folder: Path,
    manifest: Manifest,
    *,
    now: datetime,
    written: Collection[str],
    removed: Collection[str] = (),
    made: SplitMade | Adoption | None = None,
    decided: Sequence[Approval] | None = None,
    language: str | None = None,
    bank_reports: Sequence[ReportUsed] | None = None,
) -> Manifest:
    """Update a verified manifest with files written to the run's folder, and approvals there.

    Other entries stay, so that later changes show: `written` are hashed again, `removed` dropped. Only
    approvals in `decided` may be new; None allows any. Raises InputError: an approval is missing, or not by
    this job; OutputError, DiskError: it is not written.
    """
    approvals, known_count = approvals_of(folder), len(manifest.approvals)
    if approvals[:known_count] != manifest.approvals or decided not in (None, approvals[known_count:]):
        raise InputError(Sentence("runs.approval_missing_or_changed", folder=folder / APPROVALS))
    known = {file.name: file for file in manifest.files if file.name not in removed}
    assert manifest.outcome_file.name not in written, f"{folder}: only a run writes its outcome file"
    known |= {name: evidence(folder / name) for name in sorted(written)}
    renewed = manifest.model_copy(
        update={
            "files": list(known.values()),
            "approvals": approvals,
            "adoptions": [*manifest.adoptions, *([made] if isinstance(made, Adoption) else [])],
            "splits": [*manifest.splits, *([made] if isinstance(made, SplitMade) else [])],
            "language": language or manifest.language,
            "bank_reports": manifest.bank_reports if bank_reports is None else [*bank_reports],
            "written": timestamp(now),
        }
    )
    _write(folder, renewed)
    return renewed


def keep_changed_workbook(folder: Path) -> str | None:
    """Rename the workbook, and return its new name, if it was changed: it may hold decisions (DiskError)."""
    path, manifest = folder / REPORT_XLSX, replaced_manifest(folder)
    written = [] if manifest is None else [file for file in manifest.files if file.name == REPORT_XLSX]
    if not written or not path.exists() or evidence(path) == written[0]:
        return None
    free = next(name for name in map(kept_workbook, count(1)) if not (folder / name).exists())
    try:
        path.rename(folder / free)
    except OSError as error:
        raise DiskError(Sentence("runs.workbook_not_renamed", path=path, why=error)) from error
    return free


def keep_workbook(folder: Path, surface: Surface) -> None:
    """Keep a workbook that people have changed under another name, and notify of it."""
    if (kept := keep_changed_workbook(folder)) is not None:
        changed = Sentence("jobs.notice_workbook_kept")
        surface.notify(Notice(changed, {"kept_as": str(folder / kept)}, is_vital=True))


def record_purge(folder: Path, manifest: Manifest, purge: Purge) -> Manifest:
    """Record a purge before files are deleted, so that none seems lost; errors as in `write_atomically`."""
    renewed = manifest.model_copy(update={"purges": [*manifest.purges, purge], "written": purge.time})
    _write(folder, renewed)
    return renewed


def purged(manifest: Manifest, name: str) -> str | None:
    """Return when a purge deleted a file; None if the file should exist."""
    return next((purge.time for purge in reversed(manifest.purges) if name in purge.files), None)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run's folder (UsageError: no run ended there; InputError: it cannot be read)."""
    path = folder / MANIFEST
    try:
        return _parsed(plain_bytes(path))
    except FileNotFoundError:
        if has_begun(folder):
            raise UsageError(Sentence("runs.not_ended", folder=folder)) from None
        raise UsageError(Sentence("runs.no_manifest_in_folder", folder=folder, manifest=MANIFEST)) from None
    except (OSError, ValueError) as error:
        raise InputError(Sentence("runs.manifest_unreadable", path=path, fault=_fault(error))) from error


@lru_cache(maxsize=4)
def _parsed(content: bytes) -> Manifest:
    """Parse a manifest; cached because a page of the desk needs the same one several times."""
    return parse(Manifest, content)


def unrecorded(folder: Path, manifest: Manifest) -> set[str]:
    """List files in a run's folder that the manifest lacks, except the ledger, whose digests it has."""
    ledger = (path.name for path in ledger_files(folder / LEDGER))
    ours = (MANIFEST, SIGNATURE, APPROVALS, STORE, DATA_SET, FAMILY, FAMILY_LOCK, LOCK, *ledger)
    recorded = {file.name for file in (manifest.outcome_file, *manifest.files)}
    within = [(name, path) for name in recorded if (path := folder / name).is_dir()]
    hidden = {
        f"{name}/{file.name}" for name, path in within for file in {*path.iterdir()} - {*parts_in(path)}
    }
    return {path.name for path in folder.iterdir()} - {*ours, *recorded} | hidden


def looks_payable(name: str) -> bool:
    """True if people may take the file for checked payments, by its name without invisible characters."""
    folded = normalize("NFKD", name).casefold()
    seen = "".join(one for one in folded if category(one) not in _UNSEEN)
    is_held = seen.startswith("hold.")
    return is_held or any(word in seen for word in _PAYABLE) or _TWO_SCRIPTS.search(seen) is not None


def evidence(path: Path) -> FileEvidence:
    """Return a file's hash and size (DiskError: it cannot be read)."""
    try:
        sha256, byte_count = identity_of(path)
    except OSError as error:
        raise DiskError(Sentence("runs.evidence_unreadable", path=path, why=error)) from error
    return FileEvidence(name=path.name, sha256=sha256, byte_count=byte_count)


def identity_of(path: Path) -> tuple[str, int]:
    """Return SHA-256 (hexadecimal) and size of a file, or of the parts in a folder (OSError: unreadable)."""
    if path.is_dir():
        found = [(file.name, *identity_of(file)) for file in parts_in(path)]
        return identity_of_parts((name, sha256) for name, sha256, _ in found), sum(size for *_, size in found)
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def identity_of_parts(parts: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of a folder, from each part's name and SHA-256."""
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(parts))
    return hashlib.sha256(lines.encode()).hexdigest()


def parts_in(folder: Path) -> list[Path]:
    """List the files of a data set, sorted, without `_SUCCESS`, `.crc` and the like. Raises OSError."""
    return sorted(file for file in folder.iterdir() if not file.name.startswith(_HIDDEN))


def _write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest and remove its signature, which `proof.sign` makes again."""
    remove_signature(folder)
    keep_document(folder / MANIFEST, manifest)


def _fault(error: OSError | ValueError) -> Sentence:
    if isinstance(error, ValidationError):
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        return Sentence("runs.schema_mismatch_at", where=where) if where else Sentence("runs.schema_mismatch")
    return Sentence("runs.unreadable" if isinstance(error, OSError) else "runs.not_json")


@cache
def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION,
        "sqlite": SQLITE_VERSION,
        **{library: version(library) for library in LIBRARIES},
    }
