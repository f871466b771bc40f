"""The reports of a run that has ended, written again from the files in its folder. Nothing is sent.

The ledger is opened for reading, which locks the folder meanwhile.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pipeline.config.profiles import choose, signer_again
from pipeline.errors import ConfigurationError
from pipeline.files.signatures import sign
from pipeline.reports.documents import reports
from pipeline.runs.ended import ended_run
from pipeline.runs.folder import opened_to_read
from pipeline.runs.manifest import keep_changed_workbook, refresh_manifest
from schemas.review import Verdict
from schemas.summary import Summary
from schemas.wire import timestamp


def report(folder: Path, sign_with: Path | None = None, *, now: datetime) -> tuple[Summary, str | None]:
    """Write the reports of a run again, from the files in its folder.

    Args:
        folder: of a run that has ended.
        sign_with: the private key that signs its manifest; None: that of the profile, if any.
        now: the time.

    Returns:
        The summary, and the new name of a workbook that had been changed.

    Raises:
        UsageError: it is not the folder of a run that has ended.
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
        kept = keep_changed_workbook(folder)
        policy = _policy_today(summary.profile)
        written = reports(folder, summary, rows, outcome_name=run.outcome_file.name, policy=policy)
        refresh_manifest(folder, now=now, written=[path.name for path in written])
        sign(folder, signer)
    return summary, kept


def _policy_today(profile: str) -> Mapping[str, Verdict] | None:
    """The policy of a profile in the usual configuration now; None where that has no such profile."""
    try:
        return choose(profile, None).policy
    except ConfigurationError:
        return None
