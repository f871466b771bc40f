"""`precheck purge`: forget the names that banks returned."""

from datetime import timedelta
from pathlib import Path

import click

from pipeline.commands.ending import say
from pipeline.commands.options import PATH, Days


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option(
    "--older-than",
    type=Days(),
    default="0d",
    show_default=True,
    metavar="DAYS",
    help="Only names whose answer is older, such as 30d.",
)
@click.option(
    "--outcomes",
    is_flag=True,
    help="Delete the files that hold the names too; with --older-than, if a name was purged now or before. "
    "Running again writes outcomes and reports without the names.",
)
def purge(*, folder: Path, older_than: timedelta, outcomes: bool) -> None:
    """Delete the names that banks returned from the ledger in DIR, the folder of a run.

    Nothing of them is left in the ledger's bytes. The answers stay: no question is asked again.

    These hold the names as well: outcomes.csv or outcomes.parquet, attention.csv, changes.jsonl (masked),
    report.html, report.xlsx, and what `precheck fix` wrote: corrections.csv and the corrected payment file.
    Without --outcomes they are left alone. With it they are deleted, and so is what a killed run left of
    them. summary.json, payees.csv, approvals.json and the files of `precheck split` hold none. Whoever has a
    copy, such as a workbook with decisions, has the names.

    manifest.json says what was purged and when, so that `precheck verify` misses nothing that went this way.
    """
    from pipeline.purging import purge as purge_folder
    from pipeline.reports.terminal import counted

    done = purge_folder(folder, older_than, with_files=outcomes)
    say(f"{folder}: {counted(done.name_count, 'returned name')} purged from the ledger")
    if done.deleted:
        say(f"{folder}: deleted {', '.join(done.deleted)}")
    if done.left:
        say(f"{folder}: {', '.join(done.left)} may still hold returned names; delete what you do not need")
