"""`precheck purge`: delete the names that banks returned."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import notify, reporting_a_lost_signature
from pipeline.cli.options import PATH, Days, Given, as_given, by_option, sign_option
from pipeline.errors import PrecheckError, UsageError, most_serious
from pipeline.wording import SurfaceKind

if TYPE_CHECKING:
    from pipeline.jobs.purge import PurgeJob, PurgeResult


@click.command()
@click.argument("folders", nargs=-1, required=True, type=PATH, metavar="DIR...")
@click.option(
    "--older-than",
    type=Days(),
    default="0d",
    show_default=True,
    metavar="DAYS",
    help="Only names whose answer is older, such as 90d, and only of runs that have finished.",
)
@click.option(
    "--outcomes",
    "with_files",
    is_flag=True,
    help="Delete the files that hold the names too; with --older-than, if the run ended before, or a name "
    "was purged now or before. Running again writes outcomes and reports without the names.",
)
@click.option(
    "--payments",
    "with_payments",
    is_flag=True,
    help="As --outcomes, and delete the files of `precheck split` and payees.csv as well: no file with "
    "payees of the run is left.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@click.option("--reason", metavar="TEXT", help="Why, such as the policy; it is recorded in the manifest.")
@by_option
@sign_option
@as_given
def purge(given: Given) -> None:
    """Delete the names that banks returned from the ledger in each DIR, the folder of a run.

    The details of problems, which may quote a name, are deleted with them. Nothing of either is left in the
    ledger's bytes. The answers stay: no question is asked again. A DIR may be a pattern in quotes, such as
    'checked/*.precheck'. With --older-than, a run that has not finished is
    reported and left as it is (75), and so is a folder that is in use (75) or damaged (74); the others are
    purged. A folder that only fits a pattern, and in which no run was, is reported and left.

    These hold the names as well: outcomes.csv or outcomes.parquet, attention.csv, changes.jsonl (masked),
    report.html, report.xlsx, pain002.xml, and what `precheck fix` wrote: corrections.csv and the corrected
    payment file. Without --outcomes they are left alone. With it they are deleted, and so are parts of them
    that a killed run left. summary.json, payees.csv, approvals.json and the files of `precheck split` hold
    none. A copy, such as a workbook with decisions, still has the names.

    Of a data set these are the outcome files of its parts, and the work folder that its run has not removed;
    with --payments also the questions that a run has left to workers, as far as it has not finished.

    manifest.json records what was purged, when, by whom and why, so that `precheck verify` does not report
    it as missing.
    """
    from pipeline.jobs.purge import PurgeJob, folders_named
    from pipeline.jobs.purge import purge as purge_folder

    job = given.make(PurgeJob)
    statuses = []
    for folder, is_named in folders_named(given.folders).items():
        try:
            with reporting_a_lost_signature(folder):
                purged = purge_folder(folder, job, now=now())
        except PrecheckError as error:
            is_stranger = isinstance(error, UsageError) and not is_named
            notify(error.sentence(SurfaceKind.COMMAND), status=None if is_stranger else error.exit_code)
            statuses.append(0 if is_stranger else error.exit_code)
            continue
        for sentence in _sentences(folder, job, purged):
            notify(sentence)
        statuses.append(0)
    sys.exit(most_serious(statuses))


def _sentences(folder: Path, job: "PurgeJob", purged: "PurgeResult") -> list[str]:
    """What was done in a folder."""
    from pipeline.reports.wording import counted

    if not purged.was_due:
        return [f"{folder}: nothing to purge is older than {counted(job.older_than.days, 'day')}"]
    would = "would be " if job.dry_run else ""
    what = counted(purged.name_count, "returned name")
    if purged.detail_count:
        what += f" and {counted(purged.detail_count, 'detail')} of problems"
    said = [f"{folder}: {what} {would}purged from the ledger"]
    if purged.deleted:
        said.append(f"{folder}: {would}deleted {', '.join(purged.deleted)}")
    if purged.left:
        said.append(
            f"{folder}: {', '.join(purged.left)} may still hold returned names; delete what you do not need"
        )
    return said
