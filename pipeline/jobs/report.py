"""Jobs on the folder of a run that has ended: its reports, and the story of one row.

Nothing is sent. The outcome file is read again like any payment file; what was asked is planned again from
it, by the settings in the manifest; and the ledger is opened for reading, so that no run can work in the
folder meanwhile, nor anybody else where a file is written.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import polars as pl
from pydantic import SecretStr

from pipeline.config.profiles import choose, ledger_key, signer_again
from pipeline.errors import ConfigurationError, InputError, UsageError
from pipeline.files.signatures import sign
from pipeline.frames import CHANGES, OUTCOMES, REJECTS, Accepted, Changes, Outcomes
from pipeline.jobs.show import Told, tell
from pipeline.reports.documents import Rows, reports
from pipeline.rules.rules import MODULUS_RULES
from pipeline.runs.evidence import DIFFERS, Finding
from pipeline.runs.manifest import keep_changed_workbook, purged, read_manifest, refresh_manifest
from pipeline.stages.compare import warnings_of
from pipeline.stages.plan import plan
from pipeline.stages.read import read
from pipeline.stages.validate import Routes, validate
from pipeline.stores.sqlite.reader import Record, recorded, require_idle
from schemas.folder import CHANGES as CHANGES_NAME
from schemas.folder import made_anew
from schemas.manifest import FileEvidence, Manifest, ProfileUsed
from schemas.outcomes import ApiName, Outcome
from schemas.review import Verdict
from schemas.story import Story
from schemas.strict import parse
from schemas.summary import Summary
from schemas.wire import timestamp

SUMMARY_NAME = "summary.json"


def report(folder: Path, sign_with: Path | None = None) -> tuple[Summary, str | None]:
    """Write the reports of a run anew, from what its folder holds.

    Args:
        folder: of a run that has ended.
        sign_with: the private key that signs its manifest; None: that of the profile, if any.

    Returns:
        The summary, and the name under which a workbook that somebody changed was kept.

    Raises:
        UsageError: it is no folder of a run that has ended.
        InputError: a file that the reports are made of is not as the run left it.
        ConfigurationError: the private key cannot be read.
        LockedError: a run works in the folder.
        OutputError, DiskError: a report cannot be written, or a file cannot be read.
    """
    require_idle(folder)
    manifest = read_manifest(folder)
    with recorded(ledger_in(folder), now=now_text(), alone=True):
        summary = _summary(folder, manifest)
        signer = signer_again(folder, sign_with, summary.profile)
        rows = rows_of(folder, manifest)
        kept = keep_changed_workbook(folder)
        policy = _policy_today(summary.profile)
        written = reports(folder, summary, rows, outcome_name=manifest.outcome_file.name, policy=policy)
        refresh_manifest(folder, now=datetime.now(UTC), written=[path.name for path in written])
        sign(folder, signer)
    return summary, kept


def story(folder: Path, row: int) -> Story:
    """Tell everything that is known about one row.

    Raises:
        UsageError: it is no folder of a run that has ended, or the row does not exist.
        InputError: the outcome file is not as the run left it.
        LockedError: a run works in the folder.
        DiskError: a file cannot be read.
    """
    require_idle(folder)
    manifest = read_manifest(folder)
    if not 1 <= row <= manifest.input.row_count:
        raise UsageError(f"--row {row}: {_extent(manifest)}")
    with recorded(ledger_in(folder), now=now_text()) as record:
        rows = rows_of(folder, manifest)
        places = manifest.input.places
        validated = validate(rows.payments, routes_of(manifest.profile), places)
        # A row that was damaged as a whole was rejected for that; written back, it looks whole.
        asked = rows.outcomes.filter(pl.col("check_api").is_not_null())
        accepted = validated.accepted.join(asked, on="row", how="semi", maintain_order="left")
        changed = [] if rows.changes is None else [warnings_of(rows.changes, with_names=True)]
        findings = (
            pl.concat([validated.rejects, _by_tables(rows.outcomes)]),
            pl.concat([*changed, validated.warnings]),
        )
        told = Told(
            manifest.input.name,
            manifest.environment,
            rows.payments,
            findings,
            accepted,
            plan(Accepted(accepted)),
            rows.outcomes,
            places,
        )
        secret = key_of_names(record, manifest, None)
        return tell(row, told, partial(record.attempts, secret=secret))


def key_of_names(record: Record, manifest: Manifest, config: Path | None) -> SecretStr | None:
    """The key of what servers wrote in the ledger, where it needs one and the run's profile still has it.

    Args:
        record: the ledger of the run.
        manifest: of the run.
        config: where the profile is; None: the usual configuration, which need not have it.

    Raises:
        ConfigurationError: the configuration that was named does not have it.
    """
    if not record.is_encrypted:
        return None
    try:
        secret = ledger_key(choose(manifest.profile.name, config))
        return secret if secret is not None and record.opens_with(secret) else None
    except ConfigurationError:
        if config is not None:
            raise
        return None


def _by_tables(outcomes: pl.DataFrame) -> pl.DataFrame:
    """`Rejects` by the user's modulus tables, which do not lie in the folder: from what each row was told."""
    rejected = outcomes.filter(pl.col("check_outcome") == Outcome.REJECTED)
    found = [
        rejected.filter(
            pl.col("check_reason").str.contains(f"{rule.field}: {rule.sentence}", literal=True)
        ).select("row", field=pl.lit(rule.field), code=pl.lit(rule.code), message=pl.lit(rule.sentence))
        for rule in MODULUS_RULES
    ]
    return pl.concat([pl.DataFrame(schema=REJECTS), *found])


def _extent(manifest: Manifest) -> str:
    """Which rows a file has, and where the first and the last of them stand."""
    name, last, places = manifest.input.name, manifest.input.row_count, manifest.input.places
    where = "" if places is None else f" ({places.unit}s {places.of(1)} to {places.of(last)})"
    return f"{name} has rows 1 to {last}{where}"


def forgotten_by(folder: Path, manifest: Manifest) -> str | None:
    """How the outcome file went, where it is gone by a purge."""
    name = manifest.outcome_file.name
    time = None if (folder / name).exists() else purged(manifest, name)
    return None if time is None else f"deleted by precheck purge at {time}"


def rows_of(folder: Path, manifest: Manifest, *, changed: bool = False) -> Rows:
    """Every payment of a run, read from its outcome file.

    Args:
        folder: of the run.
        manifest: of the run.
        changed: read it also where it is not as the run left it.

    Raises:
        InputError: it is not there, not an outcome file, or was changed.
    """
    path = folder / manifest.outcome_file.name
    if (forgotten := forgotten_by(folder, manifest)) is not None:
        raise InputError(f"{path}: {forgotten}; run the same command again, which asks nothing twice")
    source = read(path, mapping=manifest.mapping, decided=manifest.input.decision)
    if not changed and source.sha256 != manifest.outcome_file.sha256:
        raise InputError(changed_since(path))
    try:
        outcomes = source.earlier.with_columns(source.payments["row"]).select(
            pl.col(column).cast(kind) for column, kind in OUTCOMES.items()
        )
    except pl.exceptions.PolarsError:
        raise InputError(f"{path}: the columns of an outcome file are not in it; {made_anew(path)}") from None
    return Rows(source.payments, Outcomes(outcomes), source.original, kept_changes(folder))


def kept_changes(folder: Path) -> Changes | None:
    """`Changes` of a run; None where it compared nothing, or where they are purged.

    Raises:
        InputError: they cannot be read.
    """
    path = folder / CHANGES_NAME
    try:
        return Changes(pl.read_ndjson(path.read_bytes(), schema=CHANGES))
    except FileNotFoundError:
        return None
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(f"{path}: cannot be read; {made_anew(path)}") from None


def _policy_today(profile: str) -> Mapping[str, Verdict] | None:
    """What the usual configuration says of a profile now; None where it does not have it."""
    try:
        return choose(profile, None).policy
    except ConfigurationError:
        return None


def _summary(folder: Path, manifest: Manifest) -> Summary:
    """The summary of a run, as the run left it."""
    evidence = next((file for file in manifest.files if file.name == SUMMARY_NAME), None)
    if evidence is None or as_recorded(folder / SUMMARY_NAME, evidence).exit_code:
        raise InputError(changed_since(folder / SUMMARY_NAME))
    return read_summary(folder)


def read_summary(folder: Path) -> Summary:
    """The summary in the folder of a run, as it is now.

    Raises:
        InputError: there is none.
    """
    path = folder / SUMMARY_NAME
    try:
        return parse(Summary, path.read_bytes())
    except (OSError, ValueError):
        raise InputError(f"{path}: not the summary of a run; {made_anew(path)}") from None


def as_recorded(path: Path, evidence: FileEvidence, purged_at: str | None = None) -> Finding:
    """Whether a file has the bytes that the manifest says; one that was purged may be gone."""
    try:
        sha256, byte_count = identity_of(path)
    except OSError as error:
        if purged_at is not None and isinstance(error, FileNotFoundError):
            return Finding(evidence.name, f"deleted by precheck purge at {purged_at}")
        return Finding(evidence.name, f"{error.strerror}; {made_anew(path)}", DIFFERS)
    if (sha256, byte_count) != (evidence.sha256, evidence.byte_count):
        return Finding(evidence.name, changed_since(path).partition(": ")[2], DIFFERS)
    return Finding(evidence.name, f"unchanged, {byte_count:,} bytes, sha256 {sha256[:16]}...")


def identity_of(path: Path) -> tuple[str, int]:
    """SHA-256 in hexadecimal digits and the number of bytes; raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def changed_since(path: Path) -> str:
    """What to say of a file that is not as the run left it."""
    return f"{path}: changed since the run; {made_anew(path)}"


def routes_of(profile: ProfileUsed) -> Routes:
    """Where payments could go under the settings of the run."""
    servers = {server.api: server for server in profile.servers}
    standard = servers.get(ApiName.VOP_STANDARD)
    return Routes(
        cop=ApiName.COP in servers,
        vop=next((api for api in servers if api is not ApiName.COP), None),
        gb_iban_to="vop" if profile.gb_iban_to == "vop" else "cop",
        default_account_type=profile.default_account_type,
        ask_by="identification" if profile.ask_by == "identification" else "name",
        send_remittance=standard is not None and standard.send_remittance,
        bic_table={} if standard is None else standard.bic_table,
        vop_countries=None if profile.vop_countries is None else tuple(profile.vop_countries),
        vop_names="latin" if profile.vop_names == "latin" else "any",
    )


def ledger_in(folder: Path) -> Path:
    """Where the ledger of a run lies."""
    return folder / "ledger.db"


def now_text() -> str:
    """The time: UTC, ISO 8601 with Z."""
    return timestamp(datetime.now(UTC))
