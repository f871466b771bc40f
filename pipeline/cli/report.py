"""`precheck report`: write the reports of a run again."""

from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import notify, reporting_a_lost_signature
from pipeline.cli.options import PATH, edited_input_option, pain002_option, sign_option
from pipeline.errors import UsageError
from pipeline.wording import Sentence


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@pain002_option
@edited_input_option
@sign_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
def report(
    *, folder: Path, pain002: bool, input_file: Path | None, sign_with: Path | None, as_json: bool
) -> None:
    """Write the reports of the run in DIR again, and show its summary; send nothing.

    They are made from the files in DIR, which must be as the run left them.
    """
    from pipeline.jobs.report import BankReport
    from pipeline.jobs.report import report as write_reports
    from pipeline.reports.terminal import console, print_summary
    from schemas.folder import REPORT_XLSX

    if input_file is not None and not pain002:
        raise UsageError(Sentence("cli.say_both_leave"))
    for_bank = BankReport(input_file) if pain002 else None
    with reporting_a_lost_signature(folder):
        summary, kept = write_reports(folder, sign_with, for_bank=for_bank, now=now())
    if kept is not None:
        notify(f"{folder / REPORT_XLSX} had been changed since it was written: kept as {folder / kept}")
    if as_json:
        click.echo(summary.model_dump_json())
    print_summary(summary, folder, console(), already_finished=False)
