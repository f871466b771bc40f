"""The commands that look at the folder of a run: report, show, verify. Nothing is sent."""

import sys
from pathlib import Path

import click

# Whether a path can be used is found out, and told, where it is used.
FOLDER = click.Path(path_type=Path, readable=False)
FILE = click.Path(path_type=Path, readable=False)


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
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


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--row", type=click.IntRange(min=1), required=True, metavar="N", help="Which row of the file.")
@click.option("--json", "as_json", is_flag=True, help="Print the story as JSON on standard output.")
def show(*, folder: Path, row: int, as_json: bool) -> None:
    """Tell one row's whole story from the run in DIR: the file, the question, every request, the answer.

    Rows are counted from 1, without the header line. Account numbers are masked.
    """
    from pipeline.folder import story
    from pipeline.reports.story import print_story
    from pipeline.reports.terminal import console

    told = story(folder, row)
    if as_json:
        click.echo(told.model_dump_json())
    else:
        print_story(told, console())


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--input", "input_file", type=FILE, metavar="FILE", help="The payment file, to compare it too.")
def verify(*, folder: Path, input_file: Path | None) -> None:
    """Check that the files of the run in DIR are as it left them, and that all of them agree.

    Looks at every file in the manifest, counts the outcome file again, and compares it with the summary
    and the ledger. Exit status 0: nothing differs; 65: something does; 74: the ledger is damaged.
    """
    from pipeline.folder import verify as verify_folder
    from pipeline.reports.listings import print_findings
    from pipeline.reports.terminal import console

    findings = verify_folder(folder, input_file)
    print_findings([(found.what, found.said, not found.exit_code) for found in findings], console())
    sys.exit(max(finding.exit_code for finding in findings))
