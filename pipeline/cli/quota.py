"""`precheck quota`: the daily caps."""

from datetime import UTC, datetime

import click


@click.command()
def quota() -> None:
    """Show how much of each daily cap is used."""
    from pipeline.jobs.quota import cap_uses
    from pipeline.reports.listings import print_quota
    from pipeline.reports.terminal import console

    print_quota(cap_uses(datetime.now(UTC)), console())
