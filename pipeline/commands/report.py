"""`precheck report`: write the reports of a run anew."""

from pathlib import Path

import click

from pipeline.commands.options import PATH


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
def report(*, folder: Path, as_json: bool) -> None:
    """Write the reports of the run in DIR anew, and show its summary; send nothing.

    They are made of the files in DIR, which must be as the run left them.
    """
    from pipeline.folder import report as write_reports
    from pipeline.reports.terminal import console, print_summary

    summary = write_reports(folder)
    if as_json:
        click.echo(summary.model_dump_json())
    print_summary(summary, folder, console(), already_finished=False)
