"""`precheck columns`: how a file is read."""

import click

from pipeline.cli.helps import Command
from pipeline.cli.options import PATH, Given, as_given, input_options, options, read_mapping
from pipeline.cli.standard_streams import payment_file, print_document
from pipeline.wording import SurfaceKind


@click.command(cls=Command)
@click.argument("file", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON on standard output.")
@click.option(
    "--toml", "as_toml", is_flag=True, help="Print the section of precheck.toml that reads such files."
)
@options(input_options)
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file: [layouts], [inputs].")
@as_given
def columns(given: Given) -> None:
    """Show how precheck reads each column, and which rule it used.

    The output has three whole values of each column, including names and account numbers.
    """
    from pipeline.config.inputs import ReadAs
    from pipeline.jobs.columns import columns_of
    from pipeline.reports.listings import print_columns
    from pipeline.reports.terminal import answers

    read_as = given.make(ReadAs, mapping=read_mapping(given.mapping))
    found, refusal = columns_of(payment_file(given.file), read_as, given.config)
    if refusal is not None:
        found = found.model_copy(update={"refusal": refusal.sentence(SurfaceKind.COMMAND)})
    if given.as_json:
        print_document(found)
    elif given.as_toml:
        click.echo(found.section, nl=False)
    elif found.columns:
        print_columns(found, answers())
    if refusal is not None:
        raise refusal
