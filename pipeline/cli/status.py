"""`precheck status`: what goes on in a ledger that hosts share."""

import time
from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.options import PATH, as_json_option, options


@click.command()
@click.option("--profile", required=True, metavar="NAME", help="The profile that names the ledger.")
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file.")
@options([as_json_option])
def status(*, profile: str, config: Path | None, as_json: bool) -> None:
    """Show the runs of a shared ledger that have not finished, and the processes that ask."""
    from pipeline.jobs.ledger import LedgerJob
    from pipeline.jobs.status import status_of

    found = status_of(LedgerJob(profile, config, now, time.monotonic))
    if as_json:
        click.echo(found.model_dump_json())
        return
    from pipeline.reports.shared import print_status
    from pipeline.reports.terminal import console

    print_status(found, console())
