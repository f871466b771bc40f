"""Compare a file with earlier runs: which ones, and what a run keeps for the next.

Nothing is sent. An earlier run is verified first, then read (kept_payees.py): its `payees.csv` where it kept
one, else its outcome file. Which of its payees count as known is in rules/known_payees.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.errors import UsageError
from pipeline.files.plain import real_path
from pipeline.files.signatures import Signer
from pipeline.frames import Accepted, Changes, Original, Outcomes, Payees, Payments
from pipeline.jobs.kept_payees import KnownRun, carried_on, ids_of, known_runs
from pipeline.jobs.kept_payees import keep as keep_payees
from pipeline.rules.known_payees import payee_statuses
from pipeline.rules.payees import payees_of
from pipeline.runs.ended import EndedRun
from pipeline.runs.folder import matching_folders
from pipeline.runs.manifest import read_manifest
from pipeline.runs.proof import opened_to_read
from pipeline.stages.compare import compare
from pipeline.wording import Sentence
from schemas.changes import Comparison, EarlierRun
from schemas.manifest import Manifest
from schemas.outcomes import WarningCode
from schemas.strict import timestamp


class ComparisonRequest(NamedTuple):
    """The runs to compare with, as the user gave them."""

    folders: Sequence[Path] = ()
    """By `--compare-with`."""
    newest_of: str | None = None
    """By `compare_with` of the profile: of the folders that fit this pattern the newest run."""
    signer: Signer | None = None
    """Who must have signed the folders; None: the manifest alone proves each."""

    @property
    def in_words(self) -> str | None:
        """For reports; None without a comparison."""
        if self.folders:
            return f"--compare-with {' '.join(map(str, self.folders))}"
        return None if self.newest_of is None else f"newest of {self.newest_of}"


class CurrentRun(NamedTuple):
    """The run that is compared with earlier ones."""

    folder: Path
    input_sha256: str
    environment: str
    begun: str
    """UTC, ISO 8601 with Z: when the first run in its folder began, so that a later run is no earlier one."""


class ComparedRun(NamedTuple):
    """The result of comparing a run with earlier ones."""

    comparison: Comparison
    payees: Payees  # `Payees`; the run keeps their keys for the next run
    changes: Changes  # `Changes`
    carried: pl.DataFrame  # `KeptPayees`: what earlier runs knew, and payments contradict


def compare_with_earlier(
    wanted: ComparisonRequest,
    subject: CurrentRun,
    accepted: Accepted,
    rows: tuple[Payments, Original],
    *,
    now: datetime,
) -> ComparedRun | None:
    """Compare the payments that can be asked about with earlier runs; None without a comparison.

    The rows are `Payments`, and the columns of the file as they are.

    Raises:
        UsageError: a folder holds no run that has ended, or is that of this very run.
        InputError: something in a folder was changed since its run, or nothing is left to compare with.
        LockedError: a run works in one of the folders.
        OutputError, DiskError: a folder cannot be read.
    """
    if (words := wanted.in_words) is None:
        return None
    payments, original = rows
    payees = payees_of(accepted, ids_of(original))
    manifests = _manifests(wanted, subject)
    with ExitStack() as stack:
        runs: list[KnownRun] = []
        for folder, manifest in manifests.items():
            record = stack.enter_context(
                opened_to_read(folder, now=timestamp(now), signer=wanted.signer, manifest=manifest)
            )
            runs += known_runs(EndedRun(folder, manifest), record.payee_key, now=now)
        runs.sort(key=lambda run: run.origin.finished, reverse=True)
        changes, contradicted = compare(payees, payments["name"], [run.earlier for run in runs])
    comparison = Comparison(
        said=words,
        runs=[
            EarlierRun(
                folder=real_path(folder).name,
                input_name=manifest.input.name,
                input_sha256=manifest.input.sha256,
                finished=manifest.finished,
            )
            for folder, manifest in manifests.items()
        ],
        payee_count=payees.height,
        new_count=changes.filter(code=WarningCode.PAYEE_NEW).height,
        banks=next((EndedRun(*run).summary().banks for run in manifests.items()), []),
    )
    return ComparedRun(comparison, payees, changes, carried_on(runs, contradicted))


# Which runs.


def _manifests(wanted: ComparisonRequest, subject: CurrentRun) -> dict[Path, Manifest]:
    """The earlier runs, latest first."""
    if wanted.folders:
        if real_path(subject.folder) in {real_path(folder) for folder in wanted.folders}:
            raise UsageError(
                Sentence("jobs.folder_this_very", folder=subject.folder),
                advice=Sentence("jobs.name_one_earlier"),
            )
        named = {folder: read_manifest(folder) for folder in wanted.folders}
        return dict(sorted(named.items(), key=lambda item: item[1].finished, reverse=True))
    assert wanted.newest_of is not None
    candidates = dict(_before(wanted.newest_of, subject))
    newest = max(candidates, key=lambda folder: candidates[folder].finished, default=None)
    return {} if newest is None else {newest: candidates[newest]}


def _before(pattern: str, subject: CurrentRun) -> Iterator[tuple[Path, Manifest]]:
    """The runs that had ended before this one began, of other files, in the same kind of environment.

    So neither a trial of the same file against a sandbox is taken for the last time, nor a later run, by
    one that is taken up again.
    """
    for folder in matching_folders(pattern):
        try:
            manifest = read_manifest(folder)
        except UsageError:
            continue  # not the folder of a run that has ended
        is_earlier = manifest.finished < subject.begun and real_path(folder) != real_path(subject.folder)
        is_other_file = manifest.input.sha256 != subject.input_sha256
        if is_earlier and is_other_file and manifest.environment == subject.environment:
            yield folder, manifest


# What a run leaves behind.


def keep(compared: ComparedRun, outcomes: Outcomes, payee_key: bytes, folder: Path) -> Path:
    """Write what the next run needs to compare with this one."""
    changes = compared.changes if compared.comparison.runs else None
    known = payee_statuses(compared.payees["row"], outcomes, changes)
    return keep_payees(compared.payees, known, compared.carried, payee_key, folder)
