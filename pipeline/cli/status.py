"""`precheck status`: what goes on in a ledger that hosts share."""

import time
from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.options import as_json_option, ledger_options, options


@click.command()
@options(ledger_options, [as_json_option])
def status(*, profile: str, config: Path | None, as_json: bool) -> None:
    r"""Show the runs of a shared ledger that have not finished, and the processes at work.

    \b
    run      one payment file or data set under one profile; the same bytes take part in it until it has
             finished. `precheck ledger close RUN` closes one that nobody will go on with.
    left     its distinct questions without a final answer.
    chunk    some hundred questions, which one process asks at a time; free: held by none.
    lease    how long a process holds its chunks. It renews it for as long as it lives; when it has ended,
             others take them.
    process  `precheck run` or `precheck worker`, on any host, with its process id there.
    rate     what each process has of the account's rate and places in flight: together never more than all.
    cap      the requests of this account that count for today, of all hosts.
    """
    from pipeline.jobs.ledger import LedgerJob
    from pipeline.jobs.status import status_of

    found = status_of(LedgerJob(profile, config, now, time.monotonic))
    if as_json:
        click.echo(found.model_dump_json())
        return
    from pipeline.reports.shared import print_status
    from pipeline.reports.terminal import console

    print_status(found, console())
