"""Answers of earlier runs: which a run uses again (`--reuse-from`), and how many calls they save a plan."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import polars as pl

from pipeline.apis import Api
from pipeline.errors import DiskError, LockedError, OutputError, UsageError
from pipeline.frames import Check
from pipeline.jobs.reuse import Earlier, Known, reuse
from pipeline.runs.request import Permitted
from pipeline.stages.summarise import Spared
from pipeline.stores.sqlite.ledger import Ledger, Reuse, RunIdentity
from pipeline.stores.sqlite.reader import Record, recorded
from schemas.outcomes import ApiName, Environment
from schemas.wire import timestamp


def use_again(
    permitted: Permitted,
    checks: pl.DataFrame,
    ledger: Ledger,
    apis: Mapping[ApiName, Api],
    *,
    now: datetime,
) -> None:
    """Record in the ledger which questions need not be asked, because an earlier run had a match.

    Args:
        permitted: which earlier runs, and how old an answer may be.
        checks: `Checks`; those that the ledger has a final answer for are left as they are.
        ledger: of this run.
        apis: those that the profile has.
        now: the time.

    Raises:
        UsageError: a folder is no run, or its run asked another kind of server or another provider.
        LockedError: a run works in one of the folders.
        DiskError: one of the ledgers is damaged.
    """
    if not permitted.folders:
        return
    with _records(permitted, ledger.run, now) as records:
        known = _known(permitted, _unanswered(checks, ledger), records, apis, now)
        ledger.reuse(
            [
                Reuse(
                    ledger.question_key(one.check),
                    one.answer.code,
                    one.answer.request_id or "",
                    one.answer.time or "",
                    records[one.source].run.input_sha256,
                    timestamp(now),
                )
                for one in known
            ]
        )


def spared(
    permitted: Permitted,
    checks: pl.DataFrame,
    own: tuple[Path, RunIdentity],
    apis: Mapping[ApiName, Api],
    *,
    now: datetime,
) -> Spared:
    """Find which questions a run would not ask, without recording anything.

    Args:
        permitted: which earlier runs, and how old an answer may be.
        checks: `Checks`.
        own: the folder of the run, where it would go on if it has begun, and what it would be the run of.
        apis: those that the profile has.
        now: the time.

    Raises:
        UsageError, LockedError, DiskError: as `use_again`, about the folders of `permitted`.
    """
    folder, identity = own
    refuse_own_folder(permitted.folders, folder)
    left, why_uncounted = _left(checks, folder, identity, now)
    with _records(permitted, identity, now) as records:
        known = _known(permitted, left, records, apis, now)
    answered = frozenset(checks["check"]) - frozenset(left["check"])
    return Spared(answered, frozenset(one.check.check for one in known), why_uncounted)


def _left(
    checks: pl.DataFrame, folder: Path, identity: RunIdentity, now: datetime
) -> tuple[pl.DataFrame, str | None]:
    """The checks without an answer in the folder of the run; why it could not be told which these are."""
    path = folder / "ledger.db"
    if not os.path.lexists(path):
        return checks, None
    try:
        with recorded(path, now=timestamp(now)) as record:
            if record.run[:3] == identity[:3]:
                return _unanswered(checks, record), None
            if not any(record.answers()):
                return checks, None  # it is the folder of whichever run comes next
    except (LockedError, OutputError, DiskError) as error:
        return checks, str(error)
    return checks, f"{folder}: this folder holds the run of another file, profile or environment"


@contextmanager
def _records(permitted: Permitted, identity: RunIdentity, now: datetime) -> Iterator[list[Record]]:
    """The records of the earlier runs, all of the same provider, open until the block ends."""
    with ExitStack() as stack:
        records = [
            stack.enter_context(recorded(folder / "ledger.db", now=timestamp(now)))
            for folder in permitted.folders
        ]
        for record in records:
            _require_same_provider(record, identity)
        yield records


def _known(
    permitted: Permitted,
    checks: pl.DataFrame,
    records: Sequence[Record],
    apis: Mapping[ApiName, Api],
    now: datetime,
) -> list[Known]:
    return reuse(checks, records, apis, not_before=timestamp(now - permitted.age_max), now=timestamp(now))


def refuse_own_folder(folders: Collection[Path], own: Path) -> None:
    """Refuse to take a run for its own earlier one, which `--fresh` would delete.

    Raises:
        UsageError: the run's own folder is among them.
    """
    if own.resolve() in {folder.resolve() for folder in folders}:
        raise UsageError(
            f"--reuse-from {own}: the folder of this very run, whose answers are kept anyway; leave it out"
        )


def _require_same_provider(record: Record, identity: RunIdentity) -> None:
    where, theirs, ours = f"--reuse-from {record.path.parent}", record.run.environment, identity.environment
    if theirs != ours and Environment.SANDBOX in (theirs, ours):
        raise UsageError(
            f"{where}: its answers came from {theirs}, and this run asks {ours}; "
            "simulated and real answers must not mix in one file: name a run of the same profile"
        )
    if theirs != ours or record.run.profile_sha256 != identity.profile_sha256:
        raise UsageError(
            f"{where}: its run asked other servers, or asked in another way; name a run of the same profile"
        )


def _unanswered(checks: pl.DataFrame, record: Earlier) -> pl.DataFrame:
    """The checks that a record has no final answer for."""
    answered = {final.question for final in record.answers()}
    if not answered:
        return checks
    is_open = [
        record.question_key(Check(row[0], ApiName(row[1]), *row[2:])) not in answered
        for row in checks.iter_rows()
    ]
    return checks.filter(pl.Series(is_open, dtype=pl.Boolean))
