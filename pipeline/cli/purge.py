"""`precheck purge`: delete the names that banks returned."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import notify, reporting_a_lost_signature
from pipeline.cli.helps import Command
from pipeline.cli.options import DAYS, PATH, Given, as_given, by_option, sign_option
from pipeline.errors import PrecheckError, UsageError, most_serious
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pipeline.jobs.purge import PurgeJob, PurgeResult


@click.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, type=PATH, metavar="DIR...")
@click.option(
    "--older-than",
    type=DAYS,
    default="0d",
    show_default=True,
    metavar="DAYS",
    help="Only names from answers older than this, for example 90d, and only in finished runs.",
)
@click.option(
    "--outcomes",
    "with_files",
    is_flag=True,
    help="Also delete the files that hold the names. With --older-than, only if the run ended "
    "before then or a name was purged. The next run writes outcomes and reports without the "
    "names.",
)
@click.option(
    "--payments",
    "with_payments",
    is_flag=True,
    help="Like --outcomes, and also delete payees.csv and the files of `precheck split`: no file "
    "with payees remains.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be deleted; delete nothing.")
@click.option(
    "--reason", metavar="TEXT", help="Reason, for example the retention policy; recorded in the manifest."
)
@by_option
@sign_option
@as_given
def purge(given: Given) -> None:
    """Delete the names that banks returned from the ledger in each DIR.

    Also deletes the details of problems, which may quote a name; no byte of either remains in the ledger. The
    answers remain: no question is asked again. DIR may be a quoted pattern such as 'checked/*.precheck'. With
    --older-than, unfinished runs and folders in use (75) and damaged ones (74) are reported and skipped.

    Other files hold names too: the outcome file, attention.csv, changes.jsonl and reasons.jsonl (masked),
    report.html, report.xlsx, pain002.xml, the copies of a bank's reports, corrections.csv and the corrected
    payment file. --outcomes deletes them, and the parts that a killed run left. summary.json, payees.csv,
    approvals.json and the files of `precheck split` hold no returned names. Copies, such as a workbook
    with decisions, keep theirs.

    For a data set, these are the outcome files of its parts and the work folder; --payments also deletes the
    questions that an unfinished run left for workers.

    manifest.json records what was purged, when, by whom and why, so `precheck verify` does not report it
    missing.
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
            notify(*error.messages, status=None if is_stranger else error.exit_code)
            statuses.append(0 if is_stranger else error.exit_code)
            continue
        notify(*_results(folder, job, purged))
        statuses.append(0)
    sys.exit(most_serious(statuses))


def _results(folder: Path, job: "PurgeJob", purged: "PurgeResult") -> Iterator[Sentence]:
    """Yield sentences about what was purged in a folder."""
    if not purged.was_due:
        yield Sentence("cli.nothing_to_purge", folder=folder, count=job.older_than.days)
        return
    what = [Sentence("cli.returned_names", count=purged.name_count)]
    if purged.detail_count:
        what.append(Sentence("cli.problem_details", count=purged.detail_count))
    yield Sentence("cli.would_be_purged" if job.dry_run else "cli.purged", folder=folder, what=what)
    if purged.deleted:
        key = "cli.would_be_deleted" if job.dry_run else "cli.deleted"
        yield Sentence(key, folder=folder, files=purged.deleted)
    if purged.left:
        yield Sentence("cli.may_hold_names", folder=folder, files=purged.left)
