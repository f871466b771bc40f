"""The payees of finished runs: what a run keeps of them, and which are known to later runs.

`payees.csv` contains no names. Old names are shown masked, from the earlier run's outcome file if it still
exists. If a payment contradicts keys of an earlier run, those are carried forward under that run's key, so
that the newest run has the latest confirmation of each payee.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.files.disk_errors import with_own_errors, writing
from pipeline.files.plain import real_path
from pipeline.frames import KEPT_PAYEES, Accepted, Payees
from pipeline.headers.parties import payee_ids
from pipeline.rules.known_payees import (
    CARRIED,
    IS_CARRIED,
    DecidedRows,
    keys_once,
    knowledge,
    payee_statuses,
)
from pipeline.rules.payees import KEYED, hashed_keys, keyed, known_by_id, nobodys_ids, passes_for, payees_with
from pipeline.runs.ended import EndedRun, outcomes_in
from pipeline.runs.manifest import routes_of
from pipeline.runs.work_folder import write_frame
from pipeline.stages.compare import ContradictedKeys, EarlierPayees, Names
from pipeline.stages.validate import validate
from pipeline.stores.ledger_keys import payee_hashes
from pipeline.wording import Sentence
from schemas.folder import PAYEES
from schemas.manifest import Manifest
from schemas.review import Approval, Decision


class RunOrigin(NamedTuple):
    """The run that keys of payees come from."""

    folder: str  # its folder's name
    finished: str  # when it ended: UTC, ISO 8601 with Z
    payee_key: bytes  # its key for hashing payees


class KnownRun(NamedTuple):
    """The payees of an earlier run, from its own folder or carried forward in another run's."""

    earlier: EarlierPayees
    origin: RunOrigin


# What is known about a run.


class KeptRun(NamedTuple):
    """The payees of a finished run and of the runs that it carries forward, read only when needed."""

    origin: RunOrigin
    kept: pl.LazyFrame
    """`KeptPayees`."""
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
    """Open a finished run's payees; their keyed hashes are in the spool folder during the block.

    Raises:
        InputError: the folder was changed after the run, or has no data left to compare with.
    """
    folder, manifest = run.folder, run.manifest
    from pipeline.jobs.verify import VerifyJob, require_verified  # not needed without a comparison

    require_verified(VerifyJob(folder, asks_again=False), "jobs.not_run_left", now=now)
    is_purged = run.forgotten(run.outcome_file.name) is not None
    keeps_keys = PAYEES in {file.name for file in manifest.files} and run.forgotten(PAYEES) is None
    if is_purged and not keeps_keys:
        raise InputError(
            Sentence("jobs.outcome_file_deleted", folder=folder, payees=PAYEES),
            advice=Sentence("jobs.run_command_again"),
        )

    def names(rows: pl.Series) -> pl.Series | None:
        return None if is_purged else run.names(rows)

    origin = RunOrigin(real_path(folder).name, manifest.finished, payee_key)
    with TemporaryDirectory(prefix="precheck-", dir=spool, ignore_cleanup_errors=True) as folder_of_keys:
        keys = Path(folder_of_keys)
        kept = _kept(run, keys / "kept") if keeps_keys else _of_outcomes(run, payee_key, keys)
        yield KeptRun(origin, kept, _decided(manifest), names)


def _kept(run: EndedRun, copy: Path) -> pl.LazyFrame:
    """Return what a run keeps, as a copy that is quick to search."""
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
    origin: RunOrigin,
    kept: pl.DataFrame,
    decided: DecidedRows,
    names: Names = lambda _: None,
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
    """Return decisions about a run's payments, by `precheck split` and by people."""
    held = manifest.splits[-1].held_rows if manifest.splits else None
    # After a fresh start, decisions may concern another file that was checked in the same folder.
    began = manifest.ledger.created_at
    last_words = _last_words(approval for approval in manifest.approvals if approval.time >= began)
    return DecidedRows([row for row, decision in last_words.items() if decision is Decision.RELEASE], held)


def _last_words(approvals: Iterable[Approval]) -> dict[int, Decision | None]:
    return {row: approval.decision for approval in approvals for row in approval.rows}


def _carried(kept: pl.DataFrame) -> Iterator[KnownRun]:
    for (folder, finished, key), rows in kept.group_by("folder", "finished", "payee_key"):
        origin = RunOrigin(str(folder), str(finished), bytes.fromhex(str(key)))
        known, unsure = (keys_once(rows.filter(known=status)) for status in CARRIED)
        hashed = payee_hashes(origin.payee_key, KEYED)
        yield KnownRun(EarlierPayees(origin.folder, known, unsure, hashed, lambda _: None), origin)


# Data for the next run.


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
