"""`precheck columns`: how a file is read."""

from pathlib import Path

import click

from pipeline.commands.options import PATH, input_options, options, read_mapping


@click.command()
@click.argument("file", type=PATH)
@options(input_options)
def columns(*, file: Path, mapping: tuple[str, ...], encoding: str | None, sheet: str | None) -> None:
    """Show how each header of FILE is read."""
    from pipeline.headers.columns import ColumnsError
    from pipeline.reports.listings import print_columns
    from pipeline.reports.terminal import console
    from pipeline.stages.read import read

    try:
        readings = read(file, mapping=read_mapping(mapping), encoding=encoding, sheet=sheet).columns
    except ColumnsError as error:
        if error.readings:
            print_columns(error.readings, console())
        raise
    print_columns(readings, console())
