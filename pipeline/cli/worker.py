"""`precheck worker`: help with the runs of other processes."""

import sys

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import notify, stoppable
from pipeline.cli.options import PATH, Given, as_given, log_option, observing_options, options

EXIT_STATUS = """\b
Exit status:
    0  asked to stop, and did; or with --until-idle, nothing was left to ask
    2  the command was called with words that do not fit
   70  a mistake of this program: report it
   73  the work folder cannot be read
   74  the disk is full or failed
   75  with --until-idle, something is left that cannot be asked now: start it again
   76  the server broke the protocol repeatedly
   77  the credentials or the certificate were refused
   78  the configuration cannot be used, or there is no trusted TLS connection
  130  stopped by Ctrl-C twice, or 143 by SIGTERM twice
"""


@click.command(epilog=EXIT_STATUS)
@click.option("--profile", required=True, metavar="NAME", help="The profile, with the ledger that is shared.")
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file.")
@click.option(
    "--work",
    required=True,
    type=PATH,
    metavar="DIR",
    help="Where `precheck run --work DIR` leaves the questions.",
)
@click.option("--until-idle", is_flag=True, help="End when nothing is left to ask.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@log_option
@click.option(
    "--metrics",
    type=PATH,
    metavar="FILE",
    help="Write what the worker is doing to FILE again and again, in the Prometheus text format.",
)
@options(observing_options)
@as_given
def worker(given: Given) -> None:
    """Ask questions of runs that other processes have begun, on this machine or on others.

    It takes what is free of every run whose questions lie in DIR, until it is asked to stop; what it has
    not asked by then it gives back.
    """
    from pipeline.cli.logs import ProgressEvents, SilentProgress, log_notice, log_to_stderr
    from pipeline.cli.observing import ObservingTargets, observed
    from pipeline.jobs.worker import WorkerJob, work
    from pipeline.reports.wording import counted
    from pipeline.runs.request import Surface

    stop = stoppable()
    log_to_stderr(given.log_form, quiet=given.quiet)
    click.get_current_context().find_root().obj = given.log_form
    watch = ProgressEvents() if given.log_form == "json" else SilentProgress()
    job = given.make(WorkerJob)
    with observed(given.make(ObservingTargets, file=given.metrics)) as observer:
        done = work(job, Surface(watch, now, stop, log_notice, observer))
    if stop.is_urgent and stop.first is not None:
        sys.exit(stop.first.exit_code)
    if not given.quiet:
        notify(f"{counted(done.answered_count, 'question')} answered")
