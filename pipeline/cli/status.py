"""`precheck status`: show the activity in a shared ledger."""

import time
from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.helps import Command
from pipeline.cli.options import as_json_option, ledger_options, options
from pipeline.cli.standard_streams import print_document


@click.command(cls=Command)
@options(ledger_options, [as_json_option])
def status(*, profile: str, config: Path | None, as_json: bool) -> None:
    """Show unfinished runs and processes of a shared ledger.

    \b
    run      one payment file or data set with one profile, until it has finished;
             `precheck ledger close RUN` closes an abandoned one
    left     its distinct questions without a final answer
    chunk    some hundred questions that one process asks; free: no process holds it
    lease    how long a process holds its chunks; it renews the lease while it lives
    process  `precheck run` or `precheck worker` on any host, with its process id
    rate     the share of the account's rate and requests in flight of each process
    cap      today's requests of the account, from all hosts
    """  # noqa: D301 (click's mark)
    from pipeline.jobs.ledger import LedgerJob, status_of

    found = status_of(LedgerJob(profile, config, now, time.monotonic))
    if as_json:
        print_document(found)
        return
    from pipeline.reports.shared import print_status
    from pipeline.reports.terminal import answers

    print_status(found, answers())
