"""`precheck formats`: list the payment files that can be read."""

from pathlib import Path

import click

from pipeline.cli.helps import Command
from pipeline.cli.options import PATH
from pipeline.cli.standard_streams import print_document


@click.command(cls=Command)
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file, for its [layouts].")
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON on standard output.")
@click.option("--all", "in_full", is_flag=True, help="Also show how precheck recognises each format.")
def formats(*, config: Path | None, as_json: bool, in_full: bool) -> None:
    """List the payment file formats.

    Shows what fix and split write. Includes [layouts.NAME] from the
    configuration.
    """
    from pipeline.config.profiles import format_choice_of
    from pipeline.jobs.columns import known_formats
    from pipeline.reports.listings import print_formats
    from pipeline.reports.terminal import answers

    known = known_formats(format_choice_of(None, config))
    if as_json:
        print_document(known)
    else:
        print_formats(known, answers(), in_full=in_full)
