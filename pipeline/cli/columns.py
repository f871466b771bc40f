"""`precheck columns`: how a file is read."""

import click

from pipeline.cli.options import PATH, Given, as_given, input_options, options, read_mapping
from pipeline.wording import SurfaceKind


@click.command()
@click.argument("file", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON on standard output.")
@options(input_options)
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file, for its [layouts].")
@as_given
def columns(given: Given) -> None:
    """Show how each column of FILE is read: as which field, by which rule, instead of which others.

    Three values of each are shown, whole: mind who looks on.
    """
    from pipeline.config.profiles import format_choice_of
    from pipeline.jobs.columns import columns_of
    from pipeline.reports.listings import print_columns
    from pipeline.reports.terminal import console

    found, refusal = columns_of(
        given.file,
        mapping=read_mapping(given.mapping),
        encoding=given.encoding,
        sheet=given.sheet,
        format_choice=format_choice_of(given.input_format, given.config),
    )
    if refusal is not None:
        found = found.model_copy(update={"refusal": refusal.sentence(SurfaceKind.COMMAND)})
    if given.as_json:
        click.echo(found.model_dump_json())
    elif found.columns:
        print_columns(found, console())
    if refusal is not None:
        raise refusal
