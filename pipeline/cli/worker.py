"""`precheck worker`: ask questions for other processes' runs."""

import sys

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import notify, stoppable
from pipeline.cli.helps import Command
from pipeline.cli.options import PATH, Given, as_given, log_option, observing_options, options
from pipeline.wording import Sentence

EXIT_STATUS = """\b
Exit status:
    0  stopped as requested; with --until-idle, no questions are left
    2  invalid command-line arguments
   70  an error in precheck: report it
   73  the work folder cannot be read
   74  the disk is full or failed
   75  with --until-idle, questions are left that cannot be asked now: start it again
   76  the server broke the protocol repeatedly
   77  credentials or certificate refused
   78  invalid configuration, or no trusted TLS connection
  130  stopped by a second Ctrl-C, or 143 by a second SIGTERM
"""


@click.command(cls=Command, epilog=EXIT_STATUS)
@click.option("--profile", required=True, metavar="NAME", help="The profile with the shared ledger.")
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file.")
@click.option(
    "--work", required=True, type=PATH, metavar="DIR", help="The folder that `precheck run --work DIR` uses."
)
@click.option("--until-idle", is_flag=True, help="Exit when no questions are left.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@log_option
@click.option(
    "--metrics", type=PATH, metavar="FILE", help="Keep writing metrics to FILE in the Prometheus text format."
)
@options(observing_options)
@as_given
def worker(given: Given) -> None:
    """Ask the questions of runs that share a ledger.

    The runs were started by `precheck run --work DIR`, on any host. The worker asks until you stop it, then
    releases unfinished checks.
    """
    from pipeline.cli.logs import ProgressEvents, log_notice, log_to_stderr
    from pipeline.cli.observing import ObservingTargets, observed
    from pipeline.files.open_files import require_open_files
    from pipeline.jobs.sharing import WorkerJob, work
    from pipeline.runs.request import RunObserver, Surface

    require_open_files()
    stop = stoppable()
    log_to_stderr(given.log_form, quiet=given.quiet)
    click.get_current_context().find_root().obj = given.log_form
    watch = ProgressEvents() if given.log_form == "json" else RunObserver()
    job = given.make(WorkerJob)
    with observed(given.make(ObservingTargets, file=given.metrics)) as observer:
        done = work(job, Surface(watch, now, stop, log_notice, observer))
    if stop.is_urgent and stop.first is not None:
        sys.exit(stop.first.exit_code)
    if not given.quiet:
        notify(Sentence("cli.questions_answered", count=done.answered_count))
