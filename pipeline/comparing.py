"""What changed since an earlier run: which runs a file is compared with, and what a run keeps for the next.

Nothing is sent for it. An earlier run is verified first, then read: its `payees.csv` where it kept one, else
its outcome file. There are no names in `payees.csv`; the old ones that are shown, masked, are taken from the
outcome file of the earlier run, as long as that has one.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.apis.payees import KEYED, Hashed, each_once, keyed, payees_of
from pipeline.errors import InputError, UsageError
from pipeline.folder import routes_of, rows_of, verify
from pipeline.formats.whole import write_whole
from pipeline.frames import PAYEE_KEYS
from pipeline.headers.payee_ids import payee_id_header
from pipeline.ledger.reading import Record, recorded
from pipeline.manifest import purged, read_manifest
from pipeline.stages.compare import Earlier, compare
from pipeline.stages.validate import validate
from schemas.changes import Comparison, EarlierRun
from schemas.folder import CHANGES as CHANGES_NAME
from schemas.folder import PAYEES as PAYEES_NAME
from schemas.folder import made_anew
from schemas.manifest import Manifest
from schemas.outcomes import Outcome, WarningCode


class Wanted(NamedTuple):
    """With what a run is to be compared, as the user said it."""

    folders: Sequence[Path] = ()
    """By `--compare-with`."""
    newest_of: str | None = None
    """By `compare_with` of the profile: of the folders that fit this pattern the newest run."""

    @property
    def said(self) -> str | None:
        """In words; None where nothing is to be compared."""
        if self.folders:
            return f"--compare-with {' '.join(map(str, self.folders))}"
        return None if self.newest_of is None else f"newest of {self.newest_of}"


class Subject(NamedTuple):
    """The run that is compared with earlier ones."""

    folder: Path
    input_sha256: str
    environment: str
    begun: str
    """UTC, ISO 8601 with Z: when the first run in its folder began, so that a later run is no earlier one."""


class Compared(NamedTuple):
    """What comparing came to."""

    comparison: Comparison
    payees: pl.DataFrame
    """`Payees`, of which the run keeps keys for the next."""
    changes: pl.DataFrame
    """`Changes`."""


def compared(
    wanted: Wanted,
    subject: Subject,
    accepted: pl.DataFrame,
    rows: tuple[pl.DataFrame, pl.DataFrame],
    *,
    now: str,
) -> Compared | None:
    """Compare the payments that can be asked about with earlier runs.

    Args:
        wanted: which runs.
        subject: the run itself.
        accepted: `Accepted`.
        rows: `Payments`, and the columns of the file as they are.
        now: UTC, ISO 8601 with Z.

    Returns:
        None where nothing is to be compared.

    Raises:
        UsageError: a folder holds no run that has ended, or is that of this very run.
        InputError: something in a folder was changed since its run, or nothing is left to compare with.
        LockedError: a run works in one of the folders.
        OutputError, DiskError: a folder cannot be read.
    """
    if (said := wanted.said) is None:
        return None
    payments, original = rows
    payees = payees_of(accepted, _ids(original))
    manifests = _manifests(wanted, subject)
    with ExitStack() as stack:
        earlier = []
        for folder, manifest in manifests.items():
            record = stack.enter_context(recorded(folder / "ledger.db", now=now))
            earlier.append(_earlier(folder, manifest, record))
        changes = compare(payees, payments["name"], earlier)
    comparison = Comparison(
        said=said,
        runs=[
            EarlierRun(
                folder=folder.resolve().name,
                input_name=manifest.input.name,
                input_sha256=manifest.input.sha256,
                finished=manifest.finished,
            )
            for folder, manifest in manifests.items()
        ],
        payee_count=payees.height,
        new_count=changes.filter(code=WarningCode.PAYEE_NEW).height,
    )
    return Compared(comparison, payees, changes)


def _ids(original: pl.DataFrame) -> pl.Series | None:
    """What the payer's own system knows the payee of each row by; None where no column says it as text."""
    header = payee_id_header(original.columns)
    if header is None:
        return None
    column = original[header]
    is_text = column.dtype in (pl.String, pl.Categorical, pl.Enum) or column.dtype.is_integer()
    return column.cast(pl.String) if is_text else None


# Which runs.


def _manifests(wanted: Wanted, subject: Subject) -> dict[Path, Manifest]:
    """The earlier runs, latest first."""
    if wanted.folders:
        if subject.folder.resolve() in {folder.resolve() for folder in wanted.folders}:
            raise UsageError(
                f"--compare-with {subject.folder}: the folder of this very run; name one of an earlier run"
            )
        named = {folder: read_manifest(folder) for folder in wanted.folders}
        return dict(sorted(named.items(), key=lambda item: item[1].finished, reverse=True))
    assert wanted.newest_of is not None
    fitting = dict(_before(wanted.newest_of, subject))
    newest = max(fitting, key=lambda folder: fitting[folder].finished, default=None)
    return {} if newest is None else {newest: fitting[newest]}


def _before(pattern: str, subject: Subject) -> Iterator[tuple[Path, Manifest]]:
    """The runs that had ended before this one began, of other files, in the same kind of environment.

    So neither a trial of the same file against a sandbox is taken for the last time, nor a later run, by
    one that is taken up again.
    """
    for folder in _fitting(pattern):
        try:
            manifest = read_manifest(folder)
        except UsageError:
            continue  # no run that has ended
        is_earlier = manifest.finished < subject.begun and folder.resolve() != subject.folder.resolve()
        is_other_file = manifest.input.sha256 != subject.input_sha256
        if is_earlier and is_other_file and manifest.environment == subject.environment:
            yield folder, manifest


def _fitting(pattern: str) -> list[Path]:
    root = Path(Path(pattern).anchor)
    return sorted(root.glob(str(Path(pattern).relative_to(root))))


# What is known of a run.


def _earlier(folder: Path, manifest: Manifest, record: Record) -> Earlier:
    for finding in verify(folder):
        if finding.exit_code:
            raise InputError(
                f"--compare-with {folder}: not as its run left it, so nothing was compared: "
                f"{finding.what}: {finding.said}"
            )
    hashed = record.payee_hashes(KEYED)
    outcome_file = folder / manifest.outcome_file.name
    is_purged = purged(manifest, outcome_file.name) is not None and not outcome_file.exists()
    keeps_keys = PAYEES_NAME in {file.name for file in manifest.files}
    if is_purged and not keeps_keys:
        raise InputError(
            f"--compare-with {folder}: its outcome file was deleted by precheck purge, and there is no "
            f"{PAYEES_NAME}, which runs keep that compare; run its command again, which asks nothing twice"
        )

    def names() -> pl.Series | None:
        return None if is_purged else rows_of(folder, manifest).payments["name"]

    keys = _kept_keys(folder) if keeps_keys else _keys(folder, manifest, hashed)
    return Earlier(folder.resolve().name, keys, hashed, names)


def _kept_keys(folder: Path) -> pl.DataFrame:
    path = folder / PAYEES_NAME
    try:
        return pl.read_csv(path, schema=PAYEE_KEYS)
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(f"{path}: cannot be read; {made_anew(path)}") from None


def _keys(folder: Path, manifest: Manifest, hashed: Hashed) -> pl.DataFrame:
    """What a run would have kept of its payees, by its outcome file."""
    rows = rows_of(folder, manifest)
    accepted = validate(rows.payments, routes_of(manifest.profile)).accepted
    asked = rows.outcomes.filter(pl.col("check_api").is_not_null())
    asked_about = accepted.join(asked, on="row", how="semi", maintain_order="left")
    return each_once(keyed(payees_of(asked_about, _ids(rows.original)), hashed))


# What a run leaves behind.


def keep(compared: Compared, outcomes: pl.DataFrame, hashed: Hashed, folder: Path) -> list[Path]:
    """Write what changed, and the keys of the payees for the next run to compare with.

    What has changed is not taken for known until a bank has said that it matches, as it may never be paid.

    Args:
        compared: what comparing came to.
        outcomes: `Outcomes` of the run.
        hashed: of its folder.
        folder: of the run.
    """
    unsure = compared.changes.filter(pl.col("code") != WarningCode.PAYEE_NEW)
    matches = outcomes.filter(pl.col("check_outcome") == Outcome.MATCH)
    doubtful = unsure.join(matches, on="row", how="anti")["row"]
    known = compared.payees.filter(~pl.col("row").is_in(doubtful.implode()))
    payees, changes = folder / PAYEES_NAME, folder / CHANGES_NAME
    with write_whole(payees) as file:
        each_once(keyed(known, hashed)).write_csv(file)
    with write_whole(changes) as file:
        compared.changes.write_ndjson(file)
    return [payees, changes]
