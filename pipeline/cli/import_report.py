"""`precheck import`: read a bank's report on a payment file instead of sending checks."""

import sys
from pathlib import Path

import click

from pipeline.cli.exit_status import reporting_a_lost_signature, stoppable
from pipeline.cli.helps import Command
from pipeline.cli.language import given_language
from pipeline.cli.options import (
    PATH,
    Given,
    as_given,
    compare_option,
    name_or_login,
    now,
    profile_options,
    sign_option,
)
from pipeline.cli.standard_streams import print_document


@click.command("import", cls=Command)
@click.argument("file", type=PATH)
@click.option(
    "--report",
    "reports",
    multiple=True,
    required=True,
    type=PATH,
    metavar="REPORT",
    help="The bank's pain.002 report on FILE: XML, .gz, or a .zip of several. Repeatable.",
)
@click.option(
    "--profile",
    metavar="NAME",
    help="The profile whose policy, local rules and signing key apply. Default: none is needed.",
)
@profile_options[1]
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="Folder for the results; reports that are already there are kept. Default: FILE's name "
    "with .precheck.",
)
@click.option(
    "--by",
    metavar="NAME",
    callback=name_or_login,
    help="Name of the person who provides the reports, for the record. Default: the login name.",
)
@compare_option
@click.option(
    "--fresh", is_flag=True, help="Start over; real answers and decisions in the folder are moved aside."
)
@sign_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@as_given
def import_report(given: Given) -> None:
    """Read the report of a bank that has verified the payees of FILE itself.

    FILE is the pain.001 exactly as submitted. The result is a run's folder: `precheck fix`, `precheck split`
    and all other commands work on it. Nothing is sent.
    """
    from pipeline.cli.logs import log_notice, log_to_stderr
    from pipeline.cli.run import print_result
    from pipeline.jobs.import_report import ImportJob
    from pipeline.jobs.import_report import import_report as import_
    from pipeline.reports.terminal import answers
    from pipeline.runs.request import CheckJob, RunObserver, Surface
    from pipeline.runs.starting import folders

    log_to_stderr("text", quiet=False)
    [(file, folder)] = folders([Path(given.file)], given.out).items()
    spoken = given_language(click.get_current_context())
    check = given.make(CheckJob, file=file, out=folder, language=spoken)
    surface = Surface(RunObserver(), now, stoppable(), log_notice)
    with reporting_a_lost_signature(folder):
        result = import_(given.make(ImportJob, check=check), surface)
    if given.as_json:
        print_document(result.summary)
    else:
        print_result(result, folder, answers())
    sys.exit(result.exit_code())
