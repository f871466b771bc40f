"""`precheck columns`: how a file is read."""

from pathlib import Path

import click

from pipeline.cli.options import PATH, input_options, options, read_mapping


@click.command()
@click.argument("file", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON on standard output.")
@options(input_options)
def columns(
    *, file: Path, mapping: tuple[str, ...], encoding: str | None, sheet: str | None, as_json: bool
) -> None:
    """Show how each column of FILE is read: as which field, by which rule, instead of which others.

    Three values of each are shown, whole: mind who looks on.
    """
    from pipeline.errors import InputError
    from pipeline.headers.columns import ColumnsError
    from pipeline.headers.guesses import PLACE
    from pipeline.reports.listings import print_columns
    from pipeline.reports.terminal import console
    from pipeline.stages.read import read
    from schemas.columns import Column, ColumnsRead

    refusal = None
    try:
        source = read(file, mapping=read_mapping(mapping), encoding=encoding, sheet=sheet)
        readings, notes = source.columns, source.notes
        if not source.header_line:
            readings = tuple(
                reading._replace(header=f"{PLACE}{at}") for at, reading in enumerate(readings, start=1)
            )
    except InputError as error:
        refusal, readings, notes = error, error.readings if isinstance(error, ColumnsError) else (), ()
    told = ColumnsRead(
        file=file.name,
        columns=[
            Column(
                header=reading.header,
                field=reading.field,
                rule=reading.how,
                others=list(reading.others),
                values=list(reading.values),
                disputed=reading.is_disputed,
                map=reading.map,
            )
            for reading in readings
        ],
        notes=list(notes),
        refusal=None if refusal is None else str(refusal),
    )
    if as_json:
        click.echo(told.model_dump_json())
    elif told.columns:
        print_columns(told, console())
    if refusal is not None:
        raise refusal
