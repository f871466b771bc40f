"""`precheck run`: check payment files."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from pipeline.cli.clock import now
from pipeline.cli.data_sets import how_to_check
from pipeline.cli.exit_status import (
    about_one_file,
    notify,
    reporting_a_lost_signature,
    stoppable,
)
from pipeline.cli.options import (
    PATH,
    Duration,
    Given,
    OutcomeFormats,
    as_given,
    compare_option,
    data_set_options,
    input_options,
    log_option,
    observing_options,
    options,
    order_option,
    pain002_option,
    profile_options,
    read_mapping,
    reuse_options,
    sign_option,
)
from pipeline.errors import UsageError, most_serious
from pipeline.wording import Sentence, SurfaceKind

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.jobs.check import RunResult
    from pipeline.runs.request import RunObserver

WARNINGS = (
    *("ACCOUNT_CHANGED", "NAME_CHANGED", "PAYEE_NEW", "PAYMENT_REPEATED", "MANY_NAMES", "ENUMERATION"),
    *("MIXED_SCRIPTS", "MODULUS_OLD_TABLES", "NAME_NOT_LATIN", "NAME_CLEANED", "ACCOUNT_TYPE_DEFAULT"),
    *("BIC_OTHER_COUNTRY", "NAME_TRUNCATED"),
)
FILE_WARNINGS = ("TOTALS_DIFFER",)
OUTCOMES = ("match", "close_match", "no_match", "not_possible", "rejected", "deferred", "unanswered")

EXIT_STATUS = """\b
Exit status:
    0  every row is decided
    1  a row has an outcome or a warning named by --fail-on
    2  the command was called with words that do not fit
   65  the input file cannot be used
   70  a mistake of this program: report it
   73  an output cannot be created
   74  the disk is full or failed
   75  not every row is decided: run the same command again
   76  the server broke the protocol repeatedly, or three runs got nowhere with a row
   77  the credentials or the certificate were refused
   78  the configuration cannot be used, or there is no trusted TLS connection
  130  stopped by Ctrl-C, or 143 by SIGTERM: run the same command again
"""


def _said(_context: click.Context, _option: click.Parameter, reason: str | None) -> str | None:
    """A reason that is not blank."""
    if reason is None or reason.strip():
        return reason
    raise UsageError(Sentence("cli.reason_empty_give"))


@click.command(epilog=EXIT_STATUS)
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
@options(profile_options, input_options)
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="Where the results go; default: FILE's name with .precheck. Several FILEs get a folder each in DIR.",
)
@click.option(
    "--format",
    type=OutcomeFormats(),
    help="Of the outcome file; default: FILE's, and csv for a workbook.",
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice((*OUTCOMES, "warning", *WARNINGS, *FILE_WARNINGS)),
    metavar="OUTCOME",
    help="Exit with 1 if a row has this outcome, this warning such as PAYMENT_REPEATED, or any: warning. "
    "May be repeated.",
)
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help="Ask at most N questions; defer the rest."
)
@order_option
@click.option(
    "--retry-unanswered",
    is_flag=True,
    help="Ask again about rows given up because three runs got a refusal or a broken reply.",
)
@click.option("--fresh", is_flag=True, help="Forget earlier answers in the same folder and start over.")
@click.option(
    "--allow-many-names",
    "many_names_reason",
    metavar="REASON",
    callback=_said,
    help="Ask also about accounts with more than 3 different names each; REASON is recorded.",
)
@pain002_option
@options(reuse_options, data_set_options)
@click.option(
    "--wait-max",
    type=Duration(),
    metavar="DURATION",
    help="Wait at most so long for other runs at the same server, such as 90s, 30m or 2h, then end with 75; "
    "default: until they have ended.",
)
@compare_option
@sign_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@click.option(
    "--quiet",
    is_flag=True,
    help="Print nothing but errors, that answers are simulated, that totals differ, how to go on with what "
    "is left, and that metrics, traces or ping failed. With --log json: errors, `file finished`, the last.",
)
@log_option
@click.option(
    "--metrics",
    type=PATH,
    metavar="FILE",
    help="Write figures of the run to FILE, in the Prometheus text format, however it ends.",
)
@options(observing_options)
@click.option(
    "--ping",
    "ping_url",
    envvar="PRECHECK_PING",
    metavar="URL",
    help="Call URL/start, and URL/STATUS with the exit status; without it, what PRECHECK_PING says.",
)
@click.option(
    "--ping-ca", type=PATH, metavar="FILE", help="The only certificate authority to trust for --ping."
)
@as_given
def run(given: Given) -> None:
    """Check every payment of FILE and write it back with the outcomes.

    Running the same command again goes on where the last run ended: an answered check is never asked
    again.
    """
    from pipeline.cli.logs import log_file, log_notice, log_summary, log_to_stderr
    from pipeline.cli.monitoring import MonitoringTargets, monitored
    from pipeline.cli.observing import ObservingTargets, observed
    from pipeline.jobs.check_files import check_files
    from pipeline.reports.listings import FileEnd
    from pipeline.runs.request import CheckJob, ReusePermission, Surface
    from pipeline.runs.starting import folders

    how = how_to_check(given)
    stop = stoppable()
    log_form = given.log_form
    log_to_stderr(log_form, quiet=given.quiet)
    ctx = click.get_current_context()
    ctx.find_root().obj = log_form
    terminal = None if given.quiet or log_form == "json" else _terminal()
    places = folders(given.files, given.out)
    asks_ledger = ctx.get_parameter_source("reuse_max_age") is ParameterSource.COMMANDLINE
    names = _names(places, quiet=given.quiet)
    ends = {file: FileEnd(names[file], None, None) for file in places}
    if len(given.files) > 1 and terminal is not None:
        from pipeline.reports.listings import print_files

        # Also where an error ends the command: the files before it are listed.
        ctx.call_on_close(partial(print_files, ends.values(), terminal))

    def jobs() -> Iterator[CheckJob]:
        for file, folder in places.items():
            log_file(names[file])
            yield given.make(
                CheckJob,
                file=file,
                out=folder,
                mapping=read_mapping(given.mapping),
                reusable=ReusePermission(given.reuse_from, given.reuse_max_age, in_ledger=asks_ledger),
                wait_max_s=inf if given.wait_max is None else given.wait_max.total_seconds(),
            )

    @contextmanager
    def surfaces(job: CheckJob) -> Iterator[Surface]:
        seen = _watch(names[job.file], terminal, log_form)
        with reporting_a_lost_signature(job.out), seen as watch:
            yield Surface(watch, now, stop, log_notice, observer)

    with (
        monitored(given.make(MonitoringTargets)) as monitoring,
        observed(given.make(ObservingTargets)) as observer,
    ):
        for job, result, end in check_files(jobs(), surfaces, how):
            name = names[job.file]
            try:
                if result is not None:
                    status = result.exit_code(given.fail_on)
                    ends[job.file] = FileEnd(name, status, result.summary)
                    monitoring.summaries.append(result.summary)
                    if given.as_json:
                        click.echo(result.summary.model_dump_json())
                    if log_form == "json":
                        log_summary(
                            result.summary, job.out, status=status, already_finished=result.already_finished
                        )
                    else:
                        _report(name, result, job.out, terminal)
                _raise_what_ended(end)
            except BaseException as failure:  # noqa: BLE001 (what concerns every file is raised again)
                error = about_one_file(failure, name)
                sentence = error.sentence(SurfaceKind.COMMAND)
                notify(_naming(name, sentence), status=error.exit_code)
                ends[job.file] = FileEnd(name, error.exit_code, ends[job.file].summary)
        log_file(None)
        sys.exit(most_serious(end.exit_code for end in ends.values() if end.exit_code is not None))


def _names(places: Mapping[Path, Path], *, quiet: bool) -> dict[Path, str]:
    """The name of each file: its path where two have the same name."""
    from pipeline.runs.starting import renamed_folders

    apart = renamed_folders(places)
    if apart and not quiet:
        notify(apart)
    return {file: str(file) if apart else file.name for file in places}


def _naming(name: str, sentence: str) -> str:
    """A sentence about a file, with the name that this command uses for it.

    >>> _naming("jan/pay.csv", "pay.csv: no rows"), _naming("jan/pay.csv", "jan: not a folder")
    ('jan/pay.csv: no rows', 'jan: not a folder')
    """
    said, separator, rest = sentence.partition(": ")
    return f"{name}{separator}{rest}" if said == Path(name).name else sentence


def _raise_what_ended(end: BaseException | None) -> None:
    """Raise what ended the check of a file, once its result is reported."""
    if end is not None:
        raise end


def _terminal() -> "Console":
    """The terminal of a person; it imports Rich, which a quiet run does without."""
    from pipeline.reports.terminal import console

    return console()


def _watch(
    name: str, terminal: "Console | None", log_form: Literal["text", "json"]
) -> "AbstractContextManager[RunObserver]":
    """The observer of a file's progress."""
    from pipeline.cli.logs import ProgressEvents, SilentProgress

    if terminal is None:
        return nullcontext(SilentProgress() if log_form == "text" else ProgressEvents())
    from pipeline.cli.progress import progress

    return progress(terminal, name)


def _report(name: str, result: "RunResult", folder: Path, terminal: "Console | None") -> None:
    """Report how one file went, for a person; without a terminal, no more than necessary."""
    if terminal is None:
        _say_in_quiet(name, result)
        return
    from pipeline.reports.listings import print_changes
    from pipeline.reports.terminal import print_summary

    print_changes(result.summary, result.changes, terminal)
    print_summary(result.summary, folder, terminal, already_finished=result.already_finished)


def _say_in_quiet(name: str, result: "RunResult") -> None:
    """What nobody may miss, however quiet the command is to be."""
    from pipeline.reports.wording import SIMULATED

    if result.summary.simulated:
        notify(f"{name}: {SIMULATED}")
    for difference in result.summary.input.differences:
        notify(f"{name}: {difference}")
    if result.summary.next_step and result.ended_by is None:
        notify(f"{name}: {result.summary.next_step}")
