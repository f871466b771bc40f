"""Compare a file with earlier runs: choose the runs, and keep data for the next comparison.

Sends nothing. An earlier run is first verified, then read (kept_payees.py): its `payees.csv` if there is one,
or else its outcome file. rules/known_payees.py decides which of its payees are known.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.errors import UsageError
from pipeline.files.atomic import write_atomically
from pipeline.files.plain import real_path
from pipeline.files.signatures import Signer
from pipeline.formats.csv.writing import write_lines
from pipeline.formats.table import Dialect
from pipeline.frames import CHANGES, KEPT_PAYEES, Accepted, Changes, Original, Payees
from pipeline.headers.parties import payee_ids
from pipeline.jobs.kept_payees import KeptRun, carried_on, kept_run, own_payees
from pipeline.rules.known_payees import kept_once, payee_statuses
from pipeline.rules.payees import (
    HASHED,
    KEYED,
    keyed,
    known_by_id,
    nobodys_ids,
    passes_for,
    payees_of,
    payees_with,
)
from pipeline.runs.ended import EndedRun
from pipeline.runs.folder import matching_folders
from pipeline.runs.manifest import read_manifest
from pipeline.runs.proof import opened_to_read
from pipeline.stages.compare import compare
from pipeline.stores.ledger_keys import payee_hashes
from pipeline.wording import Sentence
from schemas.changes import Comparison, EarlierRun
from schemas.folder import PAYEES
from schemas.manifest import Manifest
from schemas.outcomes import WarningCode
from schemas.strict import timestamp

AT_ONCE_MAX = 200_000
"""How many of the possibly changed payments are compared at once."""


class ComparisonRequest(NamedTuple):
    """Which earlier runs the user wants to compare with."""

    folders: Sequence[Path] = ()
    """The folders from `--compare-with`."""
    newest_of: str | None = None
    """`compare_with` of the profile, a pattern: compare with the newest run in a matching folder."""
    signer: Signer | None = None
    """Who must have signed the folders; None means that each folder's manifest is enough."""

    @property
    def in_words(self) -> str | None:
        """Describe the choice for reports; None without a comparison."""
        if self.folders:
            return f"--compare-with {' '.join(map(str, self.folders))}"
        return None if self.newest_of is None else f"newest of {self.newest_of}"


class CurrentRun(NamedTuple):
    """The run to compare with earlier ones."""

    folder: Path
    input_sha256: str
    environment: str
    begun: str
    """When the first run in its folder began (UTC, ISO 8601 with Z); runs that ended later are not earlier.
    """


class ComparedRows(NamedTuple):
    """Some of the payments to compare."""

    payees: Payees
    names: pl.DataFrame
    """Their `row` and `name`; the name as in the question."""


Compared = Callable[[], Iterator[ComparedRows]]
"""Yields all payments to compare, in pieces; can be called repeatedly."""


class ComparedRun(NamedTuple):
    """The result of comparing a run with earlier ones."""

    comparison: Comparison
    rows: Compared  # the run keeps the keys of their payees for the next run
    changes: Changes  # `Changes`
    carried: pl.DataFrame  # `KeptPayees`: data of earlier runs that payments contradict


def rows_of(accepted: Accepted, original: Original) -> Compared:
    """Return a file's payments that can be checked, as one piece."""
    rows = ComparedRows(payees_of(accepted, payee_ids(original)), accepted.select("row", "name"))
    return lambda: iter([rows])


def rows_in_pieces(
    pieces: Callable[[], Iterable[tuple[Accepted, pl.Series]]], row_count: int | None
) -> Compared:
    """Return such payments in pieces, each with the ids of its payees; None if there are no ids."""
    passes = 0 if row_count is None else passes_for(row_count)
    nobodys = nobodys_ids(lambda: (payees_with(*piece).select(HASHED) for piece in pieces()), passes)

    def rows() -> Iterator[ComparedRows]:
        for accepted, ids in pieces():
            payees = known_by_id(payees_with(accepted, ids).lazy(), HASHED[0], nobodys).collect()
            yield ComparedRows(Payees(payees), accepted.select("row", "name"))

    return rows


def compare_with_earlier(
    wanted: ComparisonRequest,
    subject: CurrentRun,
    rows: Callable[[], Compared],
    *,
    now: datetime,
    spool: Path | None = None,
) -> ComparedRun | None:
    """Compare payments that can be checked with earlier runs; None if no comparison is wanted.

    Raises:
        UsageError: a folder contains no finished run, or is this run's own.
        InputError: a folder was changed after its run, or has no data left to compare with.
        LockedError: a run works in one of the folders.
        OutputError, DiskError: a folder cannot be read.
    """
    if (words := wanted.in_words) is None:
        return None
    compared, manifests = rows(), _manifests(wanted, subject)
    with ExitStack() as stack:
        runs: list[KeptRun] = []
        for folder, manifest in manifests.items():
            record = stack.enter_context(
                opened_to_read(folder, now=timestamp(now), signer=wanted.signer, manifest=manifest)
            )
            earlier = kept_run(EndedRun(folder, manifest), record.payee_key, now=now, spool=spool)
            runs.append(stack.enter_context(earlier))
        changes, carried, payee_count = _compared(compared(), runs)
    comparison = Comparison(
        requested=words,
        runs=[
            EarlierRun(
                folder=real_path(folder).name,
                input_name=manifest.input.name,
                input_sha256=manifest.input.sha256,
                finished=manifest.finished,
            )
            for folder, manifest in manifests.items()
        ],
        payee_count=payee_count,
        new_count=changes.filter(code=WarningCode.PAYEE_NEW).height,
        banks=next((EndedRun(*run).summary().banks for run in manifests.items()), []),
    )
    return ComparedRun(comparison, compared, changes, carried)


def _compared(rows: Iterable[ComparedRows], kept: Sequence[KeptRun]) -> tuple[Changes, pl.DataFrame, int]:
    """Return all changes, the `KeptPayees` that they contradict, and the number of payments.

    Most payments are unchanged since the latest run, and need no closer look.
    """
    changes, carried = [pl.DataFrame(schema=CHANGES)], [pl.DataFrame(schema=KEPT_PAYEES)]
    payee_count, waiting = 0, list[ComparedRows]()

    def compare_waiting() -> None:
        payees = Payees(pl.concat([some.payees for some in waiting]))
        names = pl.concat([some.names for some in waiting])
        keys = (keyed(payees, payee_hashes(run.origin.payee_key, KEYED)) for run in kept)
        runs = [known for run, some in zip(kept, keys, strict=True) for known in run.known(some)]
        runs.sort(key=lambda run: run.origin.finished, reverse=True)
        found, contradicted = compare(payees, partial(_names, names), [run.earlier for run in runs])
        changes.append(found)
        carried.append(carried_on(runs, contradicted))
        waiting.clear()

    for some in rows:
        payee_count += some.payees.height
        if not kept:
            continue
        latest = kept[0]
        keys = keyed(some.payees, payee_hashes(latest.origin.payee_key, KEYED))
        same = latest.unchanged(keys)
        payees, names = (frame.join(same, on="row", how="anti", maintain_order="left") for frame in some)
        waiting.append(ComparedRows(Payees(payees), names))
        if sum(left.payees.height for left in waiting) >= AT_ONCE_MAX:
            compare_waiting()
    if waiting:
        compare_waiting()
    return Changes(pl.concat(changes).sort("row", "code")), pl.concat(carried), payee_count


def _names(known: pl.DataFrame, rows: pl.Series) -> pl.Series:
    return rows.to_frame("row").join(known, on="row", how="left", maintain_order="left")["name"]


# Choice of runs.


def _manifests(wanted: ComparisonRequest, subject: CurrentRun) -> dict[Path, Manifest]:
    """Return the earlier runs, latest first."""
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
    """Yield runs on other files, in the same kind of environment, that ended before this run began.

    This excludes sandbox trials of the same file and, if an older run is resumed, all runs after it.
    """
    for folder in matching_folders(pattern):
        try:
            manifest = read_manifest(folder)
        except UsageError:
            continue  # not the folder of a finished run
        is_earlier = manifest.finished < subject.begun and real_path(folder) != real_path(subject.folder)
        is_other_file = manifest.input.sha256 != subject.input_sha256
        if is_earlier and is_other_file and manifest.environment == subject.environment:
            yield folder, manifest


# Data for the next run.


def keep(
    compared: ComparedRun, outcomes_of: Callable[[pl.Series], pl.DataFrame], payee_key: bytes, folder: Path
) -> Path:
    """Write what a later run needs to compare with this one, from `row` and `check_outcome` of some rows."""
    changes = compared.changes if compared.comparison.runs else None
    path, below = folder / PAYEES, Dialect(header_line=False)
    with write_atomically(path) as file:
        write_lines(compared.carried.clear(), file, Dialect())
        for payees, _ in compared.rows():
            known = payee_statuses(payees["row"], outcomes_of(payees["row"]), changes)
            write_lines(kept_once(own_payees(payees, known, payee_key)), file, below)
        write_lines(compared.carried, file, below)
    return path
