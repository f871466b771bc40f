"""`precheck run`, `plan` and `import`: check payment files, forecast a check, or read a bank's report."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from itertools import starmap
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from pipeline.cli import exit_status
from pipeline.cli.helps import Command, Word
from pipeline.cli.language import given_language, reasons_to_translate
from pipeline.cli.options import (
    PATH,
    Given,
    OutcomeFormats,
    as_given,
    compare_option,
    data_set_options,
    duration,
    given_reason,
    input_options,
    log_option,
    name_or_login,
    now,
    observing_options,
    option,
    options,
    order_option,
    pain002_option,
    profile_options,
    read_mapping,
    rehearse_option,
    reuse_options,
    sign_option,
)
from pipeline.cli.standard_streams import STANDARD_INPUT, payment_file, print_answer, print_document
from pipeline.errors import TOTALS_DIFFER, UsageError, most_serious
from pipeline.wording import Sentence, SurfaceKind, rendered

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.executors.kept_open import KeptOpen
    from pipeline.jobs.check import RunResult
    from pipeline.runs.request import CheckJob, RunObserver, Surface


WARNINGS = (
    *("ACCOUNT_CHANGED", "NAME_CHANGED", "PAYEE_NEW", "PAYMENT_REPEATED", "MANY_NAMES", "ENUMERATION"),
    *("BANK_DIFFERS", "MIXED_SCRIPTS", "MODULUS_OLD_TABLES", "NAME_NOT_LATIN", "NAME_CLEANED"),
    *("NAME_DAMAGED", "ACCOUNT_TYPE_DEFAULT", "BIC_OTHER_COUNTRY", "UK_ACCOUNT_CURRENCY", "NAME_TRUNCATED"),
)
SMALL_BYTES = 100_000
FILE_WARNINGS = (TOTALS_DIFFER,)
OUTCOMES = ("match", "close_match", "no_match", "not_possible", "rejected", "deferred", "unanswered")

EXIT_STATUS = "\b\nExit status:\n" + "".join(
    f"  {status:>3}  {meaning}\n" for status, meaning in exit_status.ENDINGS.items()
)


@click.command(cls=Command, epilog=EXIT_STATUS)
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
@options(profile_options, input_options)
@rehearse_option
@option(
    "--out DIR",
    help="Folder for the results. Default: FILE's name with .precheck. With several FILEs, each "
    "gets a folder in DIR.",
)
@option(
    "--format",
    type=OutcomeFormats(),
    help="Format of the outcome file. Default: the format of FILE; csv for a workbook.",
)
@option(
    "--fail-on OUTCOME",
    type=Word((*OUTCOMES, "warning", *WARNINGS, *FILE_WARNINGS)),
    multiple=True,
    help="Exit with 1 if a row has this outcome or warning code; warning stands for any warning. Repeatable.",
)
@option("--limit N", type=click.IntRange(min=0), help="Check at most N distinct questions; defer the rest.")
@order_option
@option(
    "--retry-unanswered",
    help="Retry rows that were given up after three runs with a refusal or a broken reply.",
)
@option("--fresh", help="Start over; real answers and decisions in the folder are moved aside.")
@option(
    "--allow-many-names REASON",
    "many_names_reason",
    callback=given_reason,
    help="Allow more than 3 different names for one account. REASON is recorded.",
)
@pain002_option
@options(reuse_options, data_set_options)
@option(
    "--wait-max DURATION",
    type=duration,
    help="Maximum wait for other runs at the same server, for example 90s, 30m or 2h; then exit "
    "with 75. Default: no limit.",
)
@compare_option
@sign_option
@option("--json", "as_json", help="Print the summary as JSON on standard output.")
@option("--quiet", help="Print only errors and warnings.")
@log_option
@option(
    "--metrics FILE",
    help="Write the metrics of the run to FILE in the Prometheus text format, however it ends.",
)
@options(observing_options)
@option(
    "--ping URL",
    "ping_url",
    envvar="PRECHECK_PING",
    help="Call URL/start at the start and URL/STATUS at the end. Default: PRECHECK_PING.",
)
@option("--ping-ca FILE", help="Certificate authority for --ping; no other is trusted.")
@as_given
def run(given: Given) -> None:
    """Check every payment of FILE and write it back with the outcomes.

    The same command resumes an interrupted run: an answered check is never asked again.
    """
    spare_threads(given.files)  # before polars is imported
    from pipeline.cli.logs import log_as_given, log_file, log_notice, log_summary
    from pipeline.cli.monitoring import MonitoringTargets, ObservingTargets, monitored, observed
    from pipeline.files.open_files import require_open_files
    from pipeline.jobs.check_files import check_files
    from pipeline.reports.metrics import FileEnd
    from pipeline.runs.request import CheckJob, ReusePermission, Surface

    require_open_files()
    _read_once(given)
    stop = exit_status.stoppable()
    log_as_given(given.log_form, quiet=given.quiet)
    ctx = click.get_current_context()
    asks_ledger = ctx.get_parameter_source("reuse_max_age") is ParameterSource.COMMANDLINE

    def job_of(file: Path, folder: Path) -> CheckJob:
        return given.make(
            CheckJob,
            file=file,
            out=folder,
            mapping=read_mapping(given.mapping),
            language=given_language(ctx),
            reusable=ReusePermission(given.reuse_from, given.reuse_max_age, in_ledger=asks_ledger),
            wait_max_s=inf if given.wait_max is None else given.wait_max.total_seconds(),
        )

    @contextmanager
    def surfaces(job: CheckJob) -> Iterator[Surface]:
        log_file(names[job.file])
        seen = _watch(names[job.file], terminal, given.log_form)
        with exit_status.reporting_a_lost_signature(job.out), seen as watch:
            yield Surface(watch, now, stop, log_notice, observer)

    with monitored(given.make(MonitoringTargets)) as monitoring, ExitStack() as stack:
        how, kept = _how_to_check(given, stack)
        terminal, answers = _consoles(given)
        outputs = monitoring.folders = _output_folders(given)
        names = _names(outputs, quiet=given.quiet)
        ends = monitoring.ends = {file: FileEnd(names[file], None, None) for file in outputs}
        if len(given.files) > 1 and answers is not None:
            from pipeline.reports.listings import print_files

            # Even if an error ends the command, so that earlier files are listed.
            stack.callback(print_files, ends.values(), answers)
        observer = stack.enter_context(observed(given.make(ObservingTargets)))
        for job, result, end in check_files([*starmap(job_of, outputs.items())], surfaces, how, kept):
            name = names[job.file]
            try:
                if result is not None:
                    status = result.exit_code(given.fail_on)
                    ends[job.file] = FileEnd(name, status, result.summary)
                    if given.as_json:
                        print_document(result.summary)
                    if given.log_form == "json":
                        log_summary(
                            result.summary, job.out, status=status, already_finished=result.already_finished
                        )
                    elif answers is None:
                        _say_in_quiet(name, result)
                    else:
                        print_result(result, job.out, answers)
                _raise_what_ended(end)
            except BaseException as failure:  # noqa: BLE001 (an error that affects every file is raised again)
                error = exit_status.about_one_file(failure, name)
                exit_status.notify(
                    *(message.renamed(job.file.name, name) for message in error.messages),
                    status=error.exit_code,
                )
                ends[job.file] = FileEnd(name, error.exit_code, ends[job.file].summary)
        log_file(None)
        sys.exit(most_serious(end.exit_code for end in ends.values() if end.exit_code is not None))


@click.command(cls=Command)
@click.argument("file", type=PATH)
@options(profile_options, input_options)
@rehearse_option
@option(
    "--out DIR",
    help="Folder of the run; its answers are not counted as calls. Default: FILE's name with .precheck.",
)
@order_option
@options(reuse_options)
@option("--json", "as_json", help="Print the forecast as JSON on standard output.")
@compare_option
@option(
    "--work DIR",
    help="For a data set (a folder of parts, or one large Parquet file): folder for intermediate "
    "files, which the run reuses.",
)
@as_given
def plan(given: Given) -> None:
    """Forecast calls, duration and cost; send nothing.

    Answers in DIR and reused answers are not counted as calls.
    """
    from pipeline.jobs.forecast import forecast_file
    from pipeline.reports.listings import print_forecast
    from pipeline.runs.request import CheckJob, DataSetJob, ReusePermission
    from pipeline.runs.starting import folders

    exit_status.interruptible()
    [(file, folder)] = folders([payment_file(given.file)], given.out).items()
    job = given.make(
        CheckJob,
        file=file,
        out=folder,
        mapping=read_mapping(given.mapping),
        reusable=ReusePermission(given.reuse_from, given.reuse_max_age),
        work=None,
    )
    if given.work is None:
        forecast = forecast_file(job, now)
    else:
        from pipeline.jobs.forecast import forecast_data_set

        forecast = forecast_data_set(DataSetJob(job, given.work), now)
    print_answer(forecast, print_forecast, as_json=given.as_json)


def spare_threads(files: Collection[Path]) -> None:
    """Let polars use a single thread if all files are small: starting more takes longer than the work."""
    with suppress(OSError):  # reading will report an unusable file
        if "polars" not in sys.modules and all(
            file.is_file() and file.stat().st_size <= SMALL_BYTES for file in files
        ):
            os.environ.setdefault("POLARS_MAX_THREADS", "1")


def _read_once(given: Given) -> None:
    """Let all jobs of the command use the configuration as it is when first read."""
    from pipeline.config import ConfigurationFile

    given.config = ConfigurationFile(given.config)


def _how_to_check(
    given: Given, stack: ExitStack
) -> "tuple[Callable[[CheckJob, Surface], RunResult], KeptOpen | None]":
    """Return a function that checks files or a data set, and the resources to share until `stack` closes."""
    from pipeline.executors.kept_open import KeptOpen
    from pipeline.jobs.check import check

    if given.scheduler is not None and given.engine != "dask":
        raise UsageError(Sentence("cli.scheduler_needs_dask"), advice=Sentence("cli.leave_out"))
    used = {"--engine": given.engine, "--scheduler": given.scheduler, "--no-ask": given.no_ask}
    first_used = next((option for option, value in used.items() if value), None)
    if first_used is not None and given.work is None:
        advice = Sentence("cli.name_work_folder")
        raise UsageError(Sentence("cli.option_only_for_data_set", option=first_used), advice=advice)
    if given.work is None or (first_used is None and not any(file.is_dir() for file in given.files)):
        return check, stack.enter_context(KeptOpen()) if len(given.files) > 1 else None
    if len(given.files) > 1:
        raise UsageError(
            Sentence("cli.work_takes_one_data_set"), advice=Sentence("cli.check_files_in_own_run")
        )

    def check_as_data_set(job: "CheckJob", surface: "Surface") -> "RunResult":
        from pipeline.jobs.data_set import check_data_set
        from pipeline.runs.request import DataSetJob

        engine: Literal["pool", "dask"] = given.engine or "pool"
        return check_data_set(
            DataSetJob(job, given.work, engine, given.scheduler, asks=not given.no_ask), surface
        )

    return check_as_data_set, None


def _output_folders(given: Given) -> dict[Path, Path]:
    from pipeline.runs.starting import folders

    if STANDARD_INPUT in given.files and given.out is None:
        raise UsageError(Sentence("cli.standard_input_without_out"))
    return folders([payment_file(named) for named in given.files], given.out)


def _names(outputs: Mapping[Path, Path], *, quiet: bool) -> dict[Path, str]:
    """Return a name for each file: its path if two files have the same name."""
    from pipeline.runs.starting import renamed_folders

    apart = renamed_folders(outputs)
    if apart and not quiet:
        exit_status.notify(apart)
    return {file: str(file) if apart else file.name for file in outputs}


def _raise_what_ended(end: BaseException | None) -> None:
    if end is not None:
        raise end


def _consoles(given: Given) -> "tuple[Console | None, Console | None]":
    """Return consoles for progress and for the result; they import Rich, so a quiet run has none."""
    if given.quiet or given.log_form == "json":
        return None, None
    from pipeline.reports.terminal import answers, console

    return console(), None if given.as_json else answers()


def _watch(
    name: str, terminal: "Console | None", log_form: Literal["text", "json"]
) -> "AbstractContextManager[RunObserver]":
    from pipeline.cli.logs import ProgressEvents
    from pipeline.runs.request import RunObserver

    if terminal is None:
        return nullcontext(RunObserver() if log_form == "text" else ProgressEvents())
    from pipeline.cli.progress import progress

    return progress(terminal, name)


def print_result(result: "RunResult", folder: Path, console: "Console") -> None:
    """Print the changes that a run found, and its summary."""
    from pipeline.reports.listings import print_changes
    from pipeline.reports.terminal import print_summary

    print_changes(result.summary, result.changes, console)
    print_summary(
        result.summary,
        folder,
        console,
        already_finished=result.already_finished,
        next_step=result.next_step,
        reasons=reasons_to_translate(folder, [code.reason for code in result.summary.codes]),
    )


def _say_in_quiet(name: str, result: "RunResult") -> None:
    from pipeline.cli.logs import file_warnings
    from pipeline.reports.wording import SIMULATED

    if result.summary.simulated:
        exit_status.notify(Sentence("cli.of_file", file=name, why=SIMULATED))
    for warning in file_warnings(result.summary, lambda sentence: rendered(sentence, SurfaceKind.COMMAND)):
        exit_status.notify(f"{name}: {warning}")
    if result.next_step is not None and result.ended_by is None:
        exit_status.notify(Sentence("cli.of_file", file=name, why=result.next_step))


@click.command("import", cls=Command)
@click.argument("file", type=PATH)
@option(
    "--report REPORT",
    "reports",
    type=PATH,
    multiple=True,
    required=True,
    help="The bank's pain.002 report on FILE: XML, .gz, or a .zip of several. Repeatable.",
)
@option(
    "--profile NAME",
    help="The profile whose policy, local rules and signing key apply. Default: none is needed.",
)
@profile_options[1]
@option(
    "--out DIR",
    help="Folder for the results; reports that are already there are kept. Default: FILE's name "
    "with .precheck.",
)
@option(
    "--by NAME",
    callback=name_or_login,
    help="Name of the person who provides the reports, for the record. Default: the login name.",
)
@compare_option
@option(
    "--work",
    type=PATH,
    metavar="DIR",
    help="For a data set (a folder of pain.001 parts): folder for intermediate files. Deleted when every "
    "row is decided.",
)
@option("--fresh", help="Start over; real answers and decisions in the folder are moved aside.")
@sign_option
@option("--json", "as_json", help="Print the summary as JSON on standard output.")
@as_given
def import_report(given: Given) -> None:
    """Read the report of a bank that has verified the payees of FILE itself.

    FILE is the pain.001 exactly as submitted, or with --work a folder of them. The result is a run's folder:
    `precheck fix`, `precheck split` and all other commands work on it. Nothing is sent.
    """
    from pipeline.cli.logs import log_notice, log_to_stderr
    from pipeline.jobs.import_report import ImportJob
    from pipeline.jobs.import_report import import_report as import_
    from pipeline.reports.terminal import answers
    from pipeline.runs.request import CheckJob, RunObserver, Surface
    from pipeline.runs.starting import folders

    log_to_stderr("text", quiet=False)
    [(file, folder)] = folders([Path(given.file)], given.out).items()
    spoken = given_language(click.get_current_context())
    _read_once(given)
    check = given.make(CheckJob, file=file, out=folder, language=spoken, work=None)
    surface = Surface(RunObserver(), now, exit_status.stoppable(), log_notice)
    with exit_status.reporting_a_lost_signature(folder):
        result = import_(given.make(ImportJob, check=check), surface)
    if given.as_json:
        print_document(result.summary)
    else:
        print_result(result, folder, answers())
    sys.exit(result.exit_code())
