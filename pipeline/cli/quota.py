"""`precheck quota`: the daily caps."""

import click

from pipeline.cli.clock import now


@click.command()
def quota() -> None:
    """Show how much of each daily cap is used."""
    from pipeline.jobs.quota import cap_uses
    from pipeline.reports.listings import print_quota
    from pipeline.reports.terminal import console

    print_quota(cap_uses(now()), console())
