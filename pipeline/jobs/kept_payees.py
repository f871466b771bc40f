"""The payees of a finished run: which data it keeps, and which payees a later run treats as known.

`payees.csv` has no names; old names are shown masked, from the earlier run's outcome file if it still exists.
If a payment contradicts keys of an earlier run, they are carried forward under that run's key, so the newest
run has all that was last confirmed.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
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
from pipeline.runs.profile_used import routes_of
from pipeline.stages.compare import ContradictedKeys, EarlierPayees, Names
from pipeline.stages.validate import validate
from pipeline.stores.keyed_hash import payee_hashes
from pipeline.wording import Sentence
from schemas.folder import PAYEES
from schemas.manifest import Manifest
from schemas.review import Approval, Decision


class RunOrigin(NamedTuple):
    """The run that keys come from."""

    folder: str  # its name
    finished: str  # when it ended: UTC, ISO 8601 with Z
    payee_key: bytes  # the key that hashes its payees


class KnownRun(NamedTuple):
    """The payees of an earlier run, from its own folder or carried forward in another."""

    earlier: EarlierPayees
    origin: RunOrigin


# What is known of a run.


class KeptRun(NamedTuple):
    """The payees of a run that has ended, and of those that it carries on; they are read when asked for."""

    origin: RunOrigin
    kept: pl.LazyFrame
    """`KeptPayees`."""
    decided: DecidedRows
    names: Names

    def unchanged(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Those `PayeeKeys` (hashed with the key of the run) that the run knows unchanged."""
        same = self.kept.filter(~IS_CARRIED & pl.col("account").is_in(keys["account"].unique().implode()))
        known = knowledge(_collected(same), self.decided).known
        return keys.join(known, on=KEYED, how="semi", nulls_equal=True)

    def known(self, keys: pl.DataFrame) -> list[KnownRun]:
        """This run and those it carries on, with everything they record about these `PayeeKeys`."""
        carried = _collected(self.kept.filter(IS_CARRIED))
        wanted = {column: keys[column].drop_nulls().unique().implode() for column in KEYED}
        of_some = pl.any_horizontal(pl.col(column).is_in(some) for column, some in wanted.items())
        own = self.kept.filter(~IS_CARRIED & (of_some | pl.col("row").is_in(carried["row"].implode())))
        return runs_of(self.origin, pl.concat([_collected(own), carried]), self.decided, self.names)


@contextmanager
def kept_run(
    run: EndedRun, payee_key: bytes, *, now: datetime, spool: Path | None = None
) -> Iterator[KeptRun]:
    """Open the payees of a run that has ended; keyed hashes lie in the spool folder until the block ends.

    Raises:
        InputError: the folder was changed since the run, or has no data left to compare with.
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
    """What a run keeps, as a copy that is quick to search."""
    try:
        pl.scan_csv(run.folder / PAYEES, schema=KEPT_PAYEES).sink_parquet(copy)
    finally:  # it was read after it was verified
        run.require_unchanged(PAYEES)
    return pl.scan_parquet(copy)


def _collected(rows: pl.LazyFrame) -> pl.DataFrame:
    """The rows that are wanted, without all others in memory."""
    return rows.collect(engine="streaming")


def runs_of(
    origin: RunOrigin,
    kept: pl.DataFrame,
    decided: DecidedRows,
    names: Names = lambda _: None,
) -> list[KnownRun]:
    """A run and those whose keys it continues: `KeptPayees` and decisions, with the names of its file."""
    found = knowledge(kept, decided)
    hashed = payee_hashes(origin.payee_key, KEYED)
    return [
        KnownRun(EarlierPayees(origin.folder, found.known, found.unsure, hashed, names), origin),
        *_carried(found.carried),
    ]


def _of_outcomes(run: EndedRun, payee_key: bytes, spool: Path) -> pl.LazyFrame:
    """The payees of a run that compared nothing, from its outcome files; of a data set by way of a folder."""
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
        keys.write_parquet(path)
        pieces.append(pl.scan_parquet(path))
    pairs = [piece.select("payee_id", "name") for piece in pieces]
    passes = passes_for(run.manifest.input.row_count)
    nobodys = nobodys_ids(lambda: (pair.collect() for pair in pairs), passes)
    return known_by_id(pl.concat(pieces), pl.col("payee_id"), nobodys)


def _decided(manifest: Manifest) -> DecidedRows:
    """Decisions about the payments of a run, by `precheck split` and by people."""
    held = manifest.splits[-1].held_rows if manifest.splits else None
    # After starting over, the decisions may be about another file that was checked in the same folder.
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
    """`KeptPayees` of earlier runs that payments contradict, as listed in `Differences`."""
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
    """`KeptPayees` of a run's own payees."""
    keys = keyed(payees, payee_hashes(payee_key, KEYED)).with_columns(known)
    absent = [pl.lit(None, kind).alias(column) for column, kind in KEPT_PAYEES.items() if column not in keys]
    return keys.with_columns(absent)
