"""Compare a file with earlier runs: choose and verify the runs, and keep data for the next comparison.

`payees.csv`, or else the outcome file, has the payees of a run; it holds no names. Keys of an earlier run
that a payment contradicts are carried forward, so that the newest run has each payee's latest confirmation.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError, UsageError
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import with_own_errors, writing
from pipeline.files.plain import real_path
from pipeline.files.signatures import Signer
from pipeline.formats.csv.writing import write_lines
from pipeline.formats.table import Dialect
from pipeline.frames import CHANGES, KEPT_PAYEES, Accepted, Changes, Original, Payees
from pipeline.headers.parties import payee_ids
from pipeline.rules.known_payees import (
    CARRIED,
    IS_CARRIED,
    DecidedRows,
    kept_once,
    keys_once,
    knowledge,
    payee_statuses,
)
from pipeline.rules.payees import (
    HASHED,
    KEYED,
    hashed_keys,
    keyed,
    known_by_id,
    nobodys_ids,
    passes_for,
    payees_of,
    payees_with,
)
from pipeline.runs.ended import EndedRun, outcomes_in
from pipeline.runs.folder import matching_folders
from pipeline.runs.manifest import read_manifest, routes_of
from pipeline.runs.proof import opened_to_read
from pipeline.runs.work_folder import write_frame
from pipeline.stages.compare import ContradictedKeys, EarlierPayees, Names, compare
from pipeline.stages.validate import validate
from pipeline.stores.ledger_keys import payee_hashes
from pipeline.wording import Sentence
from schemas.changes import Comparison, EarlierRun
from schemas.folder import PAYEES
from schemas.manifest import Manifest
from schemas.outcomes import WarningCode
from schemas.review import Decision
from schemas.strict import timestamp


class RunOrigin(NamedTuple):
    """The run that keys of payees come from."""

    folder: str  # its folder's name
    finished: str  # when it ended: UTC, ISO 8601 with Z
    payee_key: bytes  # its key for hashing payees


class KnownRun(NamedTuple):
    """The payees of an earlier run, from its own folder or carried forward in another run's."""

    earlier: EarlierPayees
    origin: RunOrigin


class KeptRun(NamedTuple):
    """The payees of a finished run and of the runs that it carries forward, read only when needed."""

    origin: RunOrigin
    kept: pl.LazyFrame  # `KeptPayees`
    decided: DecidedRows
    names: Names

    def unchanged(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Return those `PayeeKeys` (hashed with the run's key) that are unchanged since the run."""
        same = self.kept.filter(~IS_CARRIED & pl.col("account").is_in(keys["account"].unique().implode()))
        known = knowledge(_collected(same), self.decided).known
        return keys.join(known, on=KEYED, how="semi", nulls_equal=True)

    def known(self, keys: pl.DataFrame) -> list[KnownRun]:
        """Return this run and the runs it carries forward, with what they record about these `PayeeKeys`."""
        carried = _collected(self.kept.filter(IS_CARRIED))
        wanted = {column: keys[column].drop_nulls().unique().implode() for column in KEYED}
        of_some = pl.any_horizontal(pl.col(column).is_in(some) for column, some in wanted.items())
        own = self.kept.filter(~IS_CARRIED & (of_some | pl.col("row").is_in(carried["row"].implode())))
        return runs_of(self.origin, pl.concat([_collected(own), carried]), self.decided, self.names)


@contextmanager
def kept_run(
    run: EndedRun, payee_key: bytes, *, now: datetime, spool: Path | None = None
) -> Iterator[KeptRun]:
    """Open a finished run's payees, hashed in the spool folder (InputError: changed, or no data left)."""
    folder, manifest = run.folder, run.manifest
    from pipeline.jobs.verify import VerifyJob, require_verified  # not needed without a comparison

    require_verified(VerifyJob(folder, asks_again=False), "jobs.compare_with_changed_run", now=now)
    is_purged = run.forgotten(run.outcome_file.name) is not None
    keeps_keys = PAYEES in {file.name for file in manifest.files} and run.forgotten(PAYEES) is None
    if is_purged and not keeps_keys:
        raise InputError(
            Sentence("jobs.compare_with_purged_run", folder=folder, payees=PAYEES),
            advice=Sentence("jobs.rerun_its_command"),
        )

    def names(rows: pl.Series) -> pl.Series | None:
        return None if is_purged else run.names(rows)

    origin = RunOrigin(real_path(folder).name, manifest.finished, payee_key)
    with TemporaryDirectory(prefix="precheck-", dir=spool, ignore_cleanup_errors=True) as folder_of_keys:
        keys = Path(folder_of_keys)
        kept = _kept(run, keys / "kept") if keeps_keys else _of_outcomes(run, payee_key, keys)
        yield KeptRun(origin, kept, _decided(manifest), names)


def _kept(run: EndedRun, copy: Path) -> pl.LazyFrame:
    try:
        with writing(copy), copy.open("wb") as file, with_own_errors(file) as through:
            pl.scan_csv(run.folder / PAYEES, schema=KEPT_PAYEES).sink_parquet(through)
    finally:  # it may have changed after it was verified
        run.require_unchanged(PAYEES)
    return pl.scan_parquet(copy)


def _collected(rows: pl.LazyFrame) -> pl.DataFrame:
    """Collect the selected rows without loading the others into memory."""
    return rows.collect(engine="streaming")


def runs_of(
    origin: RunOrigin, kept: pl.DataFrame, decided: DecidedRows, names: Names = lambda _: None
) -> list[KnownRun]:
    """Return a run and those it carries forward, from `KeptPayees`, decisions and names in its file."""
    found = knowledge(kept, decided)
    hashed = payee_hashes(origin.payee_key, KEYED)
    return [
        KnownRun(EarlierPayees(origin.folder, found.known, found.unsure, hashed, names), origin),
        *_carried(found.carried),
    ]


def _of_outcomes(run: EndedRun, payee_key: bytes, spool: Path) -> pl.LazyFrame:
    """Return the payees of a run that compared nothing, from its outcome files."""
    pieces: list[pl.LazyFrame] = []
    parts, hashed = run.parts(), payee_hashes(payee_key, KEYED)
    for part in parts:
        source = run.source(part)
        outcomes = outcomes_in(source, part.path)
        accepted = validate(source.payments, routes_of(run.manifest.profile)).accepted
        asked = outcomes.filter(pl.col("check_api").is_not_null())
        asked_about = Accepted(accepted.join(asked, on="row", how="semi", maintain_order="left"))
        ids = payee_ids(source.original).gather(asked_about["row"] - part.first_row)
        own = payees_with(asked_about, ids)
        known = payee_statuses(own["row"], outcomes, None)
        keys = own_payees(Payees(own.drop("identification")), known, payee_key)
        keys = keys.with_columns(hashed_keys(own["identification"], hashed["payee_id"]))
        if len(parts) == 1:
            pieces.append(keys.lazy())
            continue
        path = spool / f"{part.first_row}.parquet"
        write_frame(keys, path)
        pieces.append(pl.scan_parquet(path))
    pairs = [piece.select("payee_id", "name") for piece in pieces]
    passes = passes_for(run.manifest.input.row_count)
    nobodys = nobodys_ids(lambda: (pair.collect() for pair in pairs), passes)
    return known_by_id(pl.concat(pieces), pl.col("payee_id"), nobodys)


def _decided(manifest: Manifest) -> DecidedRows:
    held = manifest.splits[-1].held_rows if manifest.splits else None
    # After a fresh start, decisions may concern another file that was checked in the same folder.
    began = manifest.ledger.created_at
    approvals = (approval for approval in manifest.approvals if approval.time >= began)
    last_words = {row: approval.decision for approval in approvals for row in approval.rows}
    return DecidedRows([row for row, decision in last_words.items() if decision is Decision.RELEASE], held)


def _carried(kept: pl.DataFrame) -> Iterator[KnownRun]:
    for (folder, finished, key), rows in kept.group_by("folder", "finished", "payee_key"):
        origin = RunOrigin(str(folder), str(finished), bytes.fromhex(str(key)))
        known, unsure = (keys_once(rows.filter(known=status)) for status in CARRIED)
        hashed = payee_hashes(origin.payee_key, KEYED)
        yield KnownRun(EarlierPayees(origin.folder, known, unsure, hashed, lambda _: None), origin)


def carried_on(runs: Sequence[KnownRun], contradicted: Sequence[ContradictedKeys]) -> pl.DataFrame:
    """Return `KeptPayees` of earlier runs that payments contradict, as listed in `Differences`."""
    parts = [
        keys.with_columns(
            known=pl.lit(status.value),
            folder=pl.lit(run.origin.folder),
            finished=pl.lit(run.origin.finished),
            payee_key=pl.lit(run.origin.payee_key.hex()),
        )
        for run, of_run in zip(runs, contradicted, strict=True)
        for status, keys in zip(CARRIED, of_run, strict=True)
    ]
    return pl.concat([pl.DataFrame(schema=KEPT_PAYEES), *parts])


def own_payees(payees: pl.DataFrame, known: pl.Series, payee_key: bytes) -> pl.DataFrame:
    """Return `KeptPayees` for the run's own payees."""
    keys = keyed(payees, payee_hashes(payee_key, KEYED)).with_columns(known)
    absent = [pl.lit(None, kind).alias(column) for column, kind in KEPT_PAYEES.items() if column not in keys]
    return keys.with_columns(absent)


AT_ONCE_MAX = 200_000  # how many of the possibly changed payments are compared at once


class ComparisonRequest(NamedTuple):
    """Which earlier runs the user wants to compare with."""

    folders: Sequence[Path] = ()  # the folders from `--compare-with`
    newest_of: str | None = None
    """`compare_with` of the profile, a pattern: compare with the newest run in a matching folder."""
    signer: Signer | None = None  # who must have signed the folders; None: each folder's manifest is enough

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
    begun: str  # when the first run in its folder began (UTC, ISO 8601 with Z); no later end is earlier


class ComparedRows(NamedTuple):
    """Some of the payments to compare."""

    payees: Payees
    names: pl.DataFrame  # their `row` and `name`; the name as in the question


Compared = Callable[[], Iterator[ComparedRows]]  # yields all payments to compare; can be called repeatedly


class ComparedRun(NamedTuple):
    """The result of comparing a run with earlier ones."""

    comparison: Comparison
    rows: Compared  # the run keeps the keys of their payees for the next run
    changes: Changes
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

    Raises UsageError for an unfinished run or this run's own folder, InputError for a changed folder or one
    with no data left, LockedError for one in use, and OutputError or DiskError for one that cannot be read.
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
    """Return all changes, the `KeptPayees` that they contradict, and the number of payments."""
    changes, carried = [pl.DataFrame(schema=CHANGES)], [pl.DataFrame(schema=KEPT_PAYEES)]
    payee_count, waiting = 0, list[ComparedRows]()

    def compare_waiting() -> None:
        payees = Payees(pl.concat([some.payees for some in waiting]))
        names = pl.concat([some.names for some in waiting])
        keys = (keyed(payees, payee_hashes(run.origin.payee_key, KEYED)) for run in kept)
        runs = [known for run, some in zip(kept, keys, strict=True) for known in run.known(some)]
        runs.sort(key=lambda run: run.origin.finished, reverse=True)

        def names_in(rows: pl.Series) -> pl.Series:
            return rows.to_frame("row").join(names, on="row", how="left", maintain_order="left")["name"]

        found, contradicted = compare(payees, names_in, [run.earlier for run in runs])
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


def _manifests(wanted: ComparisonRequest, subject: CurrentRun) -> dict[Path, Manifest]:
    if wanted.folders:
        if real_path(subject.folder) in {real_path(folder) for folder in wanted.folders}:
            raise UsageError(
                Sentence("jobs.compare_with_own_folder", folder=subject.folder),
                advice=Sentence("jobs.name_earlier_run_folder"),
            )
        named = {folder: read_manifest(folder) for folder in wanted.folders}
        return dict(sorted(named.items(), key=lambda item: item[1].finished, reverse=True))
    assert wanted.newest_of is not None
    candidates = dict(_before(wanted.newest_of, subject))
    newest = max(candidates, key=lambda folder: candidates[folder].finished, default=None)
    return {} if newest is None else {newest: candidates[newest]}


def _before(pattern: str, subject: CurrentRun) -> Iterator[tuple[Path, Manifest]]:
    """Yield runs on other files, in the same kind of environment, that ended before this run began."""
    for folder in matching_folders(pattern):
        try:
            manifest = read_manifest(folder)
        except UsageError:
            continue  # not the folder of a finished run
        is_earlier = manifest.finished < subject.begun and real_path(folder) != real_path(subject.folder)
        is_other_file = manifest.input.sha256 != subject.input_sha256
        if is_earlier and is_other_file and manifest.environment == subject.environment:
            yield folder, manifest


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
