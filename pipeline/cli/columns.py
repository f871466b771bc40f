"""`precheck columns`: how a file is read."""

import click

from pipeline.cli.helps import Command
from pipeline.cli.options import PATH, Given, as_given, input_options, options, read_mapping
from pipeline.cli.standard_streams import payment_file, print_document
from pipeline.wording import SurfaceKind


@click.command(cls=Command)
@click.argument("file", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON on standard output.")
@options(input_options)
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file, for its [layouts].")
@as_given
def columns(given: Given) -> None:
    """Show how precheck reads each column, and which rule it used.

    The output has three whole values of each column, including names and account numbers.
    """
    from pipeline.config.profiles import format_choice_of
    from pipeline.jobs.columns import columns_of
    from pipeline.reports.listings import print_columns
    from pipeline.reports.terminal import answers

    found, refusal = columns_of(
        payment_file(given.file),
        mapping=read_mapping(given.mapping),
        encoding=given.encoding,
        sheet=given.sheet,
        format_choice=format_choice_of(given.input_format, given.config),
        country=given.country,
    )
    if refusal is not None:
        found = found.model_copy(update={"refusal": refusal.sentence(SurfaceKind.COMMAND)})
    if given.as_json:
        print_document(found)
    elif found.columns:
        print_columns(found, answers())
    if refusal is not None:
        raise refusal
