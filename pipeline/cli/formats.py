"""`precheck formats`: which payment files can be read."""

from pathlib import Path

import click

from pipeline.cli.options import PATH


@click.command()
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file, for its [layouts].")
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON on standard output.")
def formats(*, config: Path | None, as_json: bool) -> None:
    """List the formats of payment files, how each is known, and what fix and split write of it.

    Those that the configuration describes as [layouts.NAME] are among them.
    """
    from pipeline.config.profiles import format_choice_of
    from pipeline.jobs.formats import known_formats
    from pipeline.reports.codes import print_formats
    from pipeline.reports.terminal import console

    known = known_formats(format_choice_of(None, config))
    if as_json:
        click.echo(known.model_dump_json())
    else:
        print_formats(known, console())
