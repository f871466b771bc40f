"""Answers of earlier runs, for a run that was told to use them again (`--reuse-from`)."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.apis import Api
from pipeline.errors import UsageError
from pipeline.frames import Check
from pipeline.ledger import Ledger, Reuse, RunIdentity
from pipeline.ledger.reading import Record, recorded
from pipeline.stages.reuse import reuse
from schemas.outcomes import ApiName, Environment
from schemas.wire import timestamp


class Permitted(NamedTuple):
    """What a run may use again."""

    folders: Sequence[Path] = ()
    """Of earlier runs."""
    age_max: timedelta = timedelta(days=30)
    """How old an answer may be."""


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
    said = timestamp(now)
    with ExitStack() as stack:
        records = [
            stack.enter_context(recorded(folder / "ledger.db", now=said)) for folder in permitted.folders
        ]
        for record in records:
            _require_same_provider(record, ledger.run)
        open_checks = _without(checks, {final.question for final in ledger.answers()}, ledger)
        known = reuse(open_checks, records, apis, not_before=timestamp(now - permitted.age_max), now=said)
        ledger.reuse(
            [
                Reuse(
                    ledger.question_key(one.check),
                    one.answer.code,
                    one.answer.request_id or "",
                    one.answer.time or "",
                    records[one.source].run.input_sha256,
                    said,
                )
                for one in known
            ]
        )


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


def _without(checks: pl.DataFrame, answered: Collection[bytes], ledger: Ledger) -> pl.DataFrame:
    """The checks that have no final answer yet."""
    if not answered:
        return checks
    is_open = [
        ledger.question_key(Check(row[0], ApiName(row[1]), *row[2:])) not in answered
        for row in checks.iter_rows()
    ]
    return checks.filter(pl.Series(is_open, dtype=pl.Boolean))
