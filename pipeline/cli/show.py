"""`precheck show`: one row's whole history."""

from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.options import PATH


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--row", type=click.IntRange(min=1), required=True, metavar="N", help="Which row of the file.")
@click.option("--json", "as_json", is_flag=True, help="Print the history as JSON on standard output.")
def show(*, folder: Path, row: int, as_json: bool) -> None:
    """Show one row's whole history in the run in DIR: the file, the question, every request, the answer.

    Rows are counted from 1, without the header line. Account numbers are masked.
    """
    from pipeline.jobs.show import story
    from pipeline.reports.story import print_story
    from pipeline.reports.terminal import console

    found = story(folder, row, now=now())
    if as_json:
        click.echo(found.model_dump_json())
    else:
        print_story(found, console())
