"""`precheck report`: rewrite the reports of a run."""

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import notify, reporting_a_lost_signature
from pipeline.cli.helps import Command
from pipeline.cli.language import given_language
from pipeline.cli.options import (
    PATH,
    Given,
    as_given,
    edited_input_option,
    given_reason,
    pain002_option,
    sign_option,
)
from pipeline.cli.standard_streams import print_document
from pipeline.errors import UsageError
from pipeline.wording import ENGLISH, Sentence, language


@click.command(cls=Command)
@click.argument("folder", type=PATH, metavar="DIR")
@pain002_option
@edited_input_option
@sign_option
@click.option(
    "--adopt",
    metavar="REASON",
    callback=given_reason,
    help="Sign a folder that is not signed, or that was changed by a command without the key, as it is now. "
    "It is verified first; manifest.json records REASON.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@as_given
def report(given: Given) -> None:
    """Write the reports of the run in DIR again, and show its summary.

    Nothing is sent. The files in DIR must be as the run left them.
    """
    from pipeline.jobs.report import BankReport
    from pipeline.jobs.report import report as write_reports
    from pipeline.reports.terminal import answers, print_summary
    from pipeline.runs.ended import reasons_in
    from schemas.folder import REPORT_XLSX

    folder = given.folder
    if given.input_file is not None and not given.pain002:
        raise UsageError(Sentence("cli.say_both_leave"))
    for_bank = BankReport(given.input_file) if given.pain002 else None
    with reporting_a_lost_signature(folder):
        summary, kept = write_reports(
            folder,
            given.sign_with,
            adopt=given.adopt,
            for_bank=for_bank,
            language=given_language(click.get_current_context()),
            now=now(),
        )
    if kept is not None:
        notify(Sentence("cli.workbook_kept", workbook=folder / REPORT_XLSX, kept=folder / kept))
    if given.as_json:
        print_document(summary)
    else:
        reasons = {} if language() == ENGLISH else reasons_in(folder)
        print_summary(summary, folder, answers(), already_finished=False, reasons=reasons)
