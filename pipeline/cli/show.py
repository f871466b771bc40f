"""`precheck show`: show the history of one row."""

from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.helps import Command
from pipeline.cli.options import PATH
from pipeline.cli.standard_streams import print_document
from pipeline.wording import ENGLISH, language


@click.command(cls=Command)
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--row", type=click.IntRange(min=1), required=True, metavar="N", help="Row of the file.")
@click.option("--json", "as_json", is_flag=True, help="Print the history as JSON on standard output.")
def show(*, folder: Path, row: int, as_json: bool) -> None:
    """Show the history of one row: file, question, requests, answer.

    Rows count from 1, without the header line. Account numbers are masked.
    """
    from pipeline.jobs.show import story
    from pipeline.reports.story import print_story
    from pipeline.reports.terminal import answers
    from pipeline.runs.ended import reasons_in

    found = story(folder, row, now=now())
    if as_json:
        print_document(found)
    else:
        reasons = {} if language() == ENGLISH else reasons_in(folder)
        print_story(found, answers(), reasons)
