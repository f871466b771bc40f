"""The payees of a run that has ended: what it keeps of them, and which of them a later run takes as known.

There are no names in `payees.csv`; old names are shown masked, from the outcome file of the earlier run, as
long as that exists. Keys of an earlier run that a payment contradicts are carried on under the key of that
run: so the newest run alone shows what was last confirmed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.files.atomic import write_atomically
from pipeline.files.plain import real_path
from pipeline.formats.csv.writing import write_lines
from pipeline.formats.table import Dialect
from pipeline.frames import KEPT_PAYEES, Accepted
from pipeline.headers.parties import payee_id_header
from pipeline.rules.known_payees import CARRIED, DecidedRows, kept_once, keys_once, knowledge, payee_statuses
from pipeline.rules.payees import KEYED, keyed, payees_of
from pipeline.runs.ended import EndedRun
from pipeline.runs.profile_used import routes_of
from pipeline.runs.remedies import made_anew
from pipeline.stages.compare import ContradictedKeys, EarlierPayees
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
    payee_key: bytes  # the key of its payees


class KnownRun(NamedTuple):
    """The payees of an earlier run, from its own folder or carried on in another one."""

    earlier: EarlierPayees
    origin: RunOrigin


def ids_of(original: pl.DataFrame) -> pl.Series | None:
    """The payee id of the payer's own system in each row; None if no text column has it."""
    header = payee_id_header(original.columns)
    if header is None:
        return None
    column = original[header]
    is_text = column.dtype in (pl.String, pl.Categorical, pl.Enum) or column.dtype.is_integer()
    return column.cast(pl.String) if is_text else None


# What is known of a run.


def known_runs(run: EndedRun, payee_key: bytes, *, now: datetime) -> list[KnownRun]:
    """The payees of a run that has ended, and those that it carries on of others.

    Raises:
        InputError: something in the folder was changed since the run, or nothing is left to compare with.
    """
    folder, manifest = run.folder, run.manifest
    from pipeline.jobs.verify import VerifyJob, require_verified  # not for a run that compares nothing

    require_verified(VerifyJob(folder, asks_again=False), "jobs.not_run_left", now=now)
    is_purged = run.forgotten(run.outcome_file.name) is not None
    keeps_keys = PAYEES in {file.name for file in manifest.files} and run.forgotten(PAYEES) is None
    if is_purged and not keeps_keys:
        raise InputError(
            Sentence("jobs.outcome_file_deleted", folder=folder, payees=PAYEES),
            advice=Sentence("jobs.run_command_again"),
        )

    def names() -> pl.Series | None:
        return None if is_purged else run.rows().payments["name"]

    kept = _read(run) if keeps_keys else _of_outcomes(run, payee_key)
    origin = RunOrigin(real_path(folder).name, manifest.finished, payee_key)
    return runs_of(origin, kept, _decided(manifest), names)


def runs_of(
    origin: RunOrigin,
    kept: pl.DataFrame,
    decided: DecidedRows,
    names: Callable[[], pl.Series | None] = lambda: None,
) -> list[KnownRun]:
    """A run and those whose keys it continues: `KeptPayees` and decisions, with all names of its file."""
    found = knowledge(kept, decided)
    hashed = payee_hashes(origin.payee_key, KEYED)
    return [
        KnownRun(EarlierPayees(origin.folder, found.known, found.unsure, hashed, names), origin),
        *_carried(found.carried),
    ]


def _read(run: EndedRun) -> pl.DataFrame:
    path = run.folder / PAYEES
    try:
        return pl.read_csv(run.content(PAYEES), schema=KEPT_PAYEES)
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(Sentence("jobs.cannot_read", path=path, remedy=made_anew(path))) from None


def _of_outcomes(run: EndedRun, payee_key: bytes) -> pl.DataFrame:
    """The payees of a run that compared nothing, from its outcome file."""
    rows = run.rows()
    accepted = validate(rows.payments, routes_of(run.manifest.profile)).accepted
    asked = rows.outcomes.filter(pl.col("check_api").is_not_null())
    asked_about = accepted.join(asked, on="row", how="semi", maintain_order="left")
    payees = payees_of(Accepted(asked_about), ids_of(rows.original))
    return own_payees(payees, payee_statuses(payees["row"], rows.outcomes, None), payee_key)


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
        yield KnownRun(EarlierPayees(origin.folder, known, unsure, hashed, lambda: None), origin)


# What a run leaves behind.


def carried_on(runs: Sequence[KnownRun], contradicted: Sequence[ContradictedKeys]) -> pl.DataFrame:
    """`KeptPayees` of earlier runs that payments contradict, of each as `Differences` has it."""
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


def keep(
    payees: pl.DataFrame, known: pl.Series, carried: pl.DataFrame, payee_key: bytes, folder: Path
) -> Path:
    """Write the payee keys and `payee_statuses` of a run, and carried ones, for the next comparison."""
    path = folder / PAYEES
    with write_atomically(path) as file:
        write_lines(kept_once(pl.concat([own_payees(payees, known, payee_key), carried])), file, Dialect())
    return path


def own_payees(payees: pl.DataFrame, known: pl.Series, payee_key: bytes) -> pl.DataFrame:
    """`KeptPayees` of a run's own payees."""
    keys = keyed(payees, payee_hashes(payee_key, KEYED)).with_columns(known)
    absent = [pl.lit(None, kind).alias(column) for column, kind in KEPT_PAYEES.items() if column not in keys]
    return keys.with_columns(absent)
