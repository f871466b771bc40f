"""The reports of a run that has ended, written again from the files in its folder. Nothing is sent.

The ledger is opened for reading, which locks the folder meanwhile.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.config.profiles import choose, signer_again
from pipeline.errors import ConfigurationError
from pipeline.files.signatures import sign
from pipeline.jobs.bank_report import pain001_of
from pipeline.reports.documents import bank_report, reports
from pipeline.runs.ended import ended_run
from pipeline.runs.folder import opened_to_read
from pipeline.runs.manifest import keep_changed_workbook, refresh_manifest
from schemas.review import Verdict
from schemas.strict import timestamp
from schemas.summary import Summary


class BankReport(NamedTuple):
    """That the report for bank software is wanted."""

    input_file: Path | None
    """Where the payment file of the run is; None: where `input_path` finds it."""


def report(
    folder: Path, sign_with: Path | None = None, *, for_bank: BankReport | None = None, now: datetime
) -> tuple[Summary, str | None]:
    """Write the reports of a run again, from the files in its folder.

    Args:
        folder: of a run that has ended.
        sign_with: the private key that signs its manifest; None: that of the profile, if any.
        for_bank: write the pain.002, too; None leaves one that is there as it is.
        now: the time.

    Returns:
        The summary, and the new name of a workbook that had been changed.

    Raises:
        UsageError: it is not the folder of a run that has ended; or the payment file is no pain.001, or not
            found.
        InputError: a file that the reports are made of is not as the run left it.
        ConfigurationError: the private key cannot be read.
        LockedError: a run works in the folder.
        OutputError, DiskError: a report cannot be written, or a file cannot be read.
    """
    run = ended_run(folder)
    with opened_to_read(folder, now=timestamp(now), alone=True):
        summary = run.summary()
        signer = signer_again(folder, sign_with, summary.profile)
        rows = run.rows()
        message = None if for_bank is None else pain001_of(folder, summary, for_bank.input_file)
        kept = keep_changed_workbook(folder)
        policy = _policy_today(summary.profile)
        written = reports(folder, summary, rows, outcome_name=run.outcome_file.name, policy=policy)
        if message is not None:
            written.append(bank_report(folder, summary, message, rows.outcomes, now=now))
        refresh_manifest(folder, now=now, written=[path.name for path in written])
        sign(folder, signer)
    return summary, kept


def _policy_today(profile: str) -> Mapping[str, Verdict] | None:
    """The policy of a profile in the usual configuration now; None where that has no such profile."""
    try:
        return choose(profile, None).policy
    except ConfigurationError:
        return None
