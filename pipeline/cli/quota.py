"""`precheck quota`: the daily caps."""

import click

from pipeline.cli.clock import now


@click.command()
def quota() -> None:
    """Show how much of each daily cap is used.

    The caps of profiles with a `ledger` that hosts share are counted there: `precheck status` shows them.
    """
    from pipeline.jobs.quota import cap_uses
    from pipeline.reports.listings import print_quota
    from pipeline.reports.terminal import console

    own, shared = cap_uses(now())
    print_quota(own, console(), shared=shared)
