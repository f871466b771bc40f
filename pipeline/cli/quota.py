"""`precheck quota`: show the daily caps."""

import click

from pipeline.cli.clock import now
from pipeline.cli.helps import Command


@click.command(cls=Command)
def quota() -> None:
    """Show how much of each daily cap is used.

    For profiles with a shared `ledger`, use `precheck status`.
    """
    from pipeline.jobs.quota import cap_uses
    from pipeline.reports.listings import print_quota
    from pipeline.reports.terminal import answers

    own, shared = cap_uses(now())
    print_quota(own, answers(), shared=shared)
