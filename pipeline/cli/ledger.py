"""Commands of a ledger that several machines share: `precheck ledger`, `status`, `worker`; and `quota`."""

import sys
import time
from typing import TYPE_CHECKING

import click

from pipeline.cli.exit_status import interruptible, notify, stoppable
from pipeline.cli.helps import Command, Group
from pipeline.cli.options import (
    Given,
    as_given,
    as_json_option,
    ledger_options,
    log_option,
    now,
    observing_options,
    option,
    options,
)
from pipeline.cli.standard_streams import print_answer, print_findings
from pipeline.errors import UsageError
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pipeline.jobs.ledger import LedgerJob

_as_role = option(
    "--as ROLE", "role", help="The role that owns the tables; without it, the user of the profile's `ledger`."
)


@click.group(cls=Group)
def ledger() -> None:
    """Set up and check the ledger that several machines share.

    It is the PostgreSQL database that `ledger` in the profile names.
    """


@ledger.command(cls=Command)
@options(ledger_options)
@_as_role
@option(
    "--grant-to ROLE",
    help="The role of the runs, which may read and add; without it, with --as, the user of the profile's "
    "`ledger`.",
)
@as_given
def init(given: Given) -> None:
    """Create the tables in an empty database and grant access to them.

    The tables belong to the role that runs this command. If they exist already, only the grants are repeated.
    """
    from pipeline.jobs.ledger import create_ledger

    interruptible()
    notify(create_ledger(_job(given), grant_to=given.grant_to))


@ledger.command(cls=Command)
@options(ledger_options)
@option(
    "--restored",
    "is_restored",
    help="After restoring a backup: count the requests whose answers it may lack.",
)
@as_given
def check(given: Given) -> None:
    """Check tables, key, server settings, replicas and role.

    Exit status 78 if something could lose an answer.
    """
    from pipeline.jobs.ledger import inspect_ledger

    interruptible()
    findings = inspect_ledger(_job(given), is_restored=given.is_restored)
    print_findings(findings)
    sys.exit(next((finding.exit_code for finding in findings if finding.exit_code), 0))


@ledger.command(cls=Command)
@options(ledger_options)
@_as_role
@option("--new-key-env NAME", help="The environment variable with the new key.")
@option("--new-key-file FILE", help="The file with the new key; mode 0600.")
@as_given
def rekey(given: Given) -> None:
    """Put the ledger under another key; records and runs are kept.

    From then on every host needs the new key in the place that its profile names.
    """
    from pipeline.jobs.ledger import change_ledger_key

    interruptible()
    if (given.new_key_env is None) == (given.new_key_file is None):
        raise UsageError(Sentence("cli.name_one_new_key"))
    notify(change_ledger_key(_job(given), variable=given.new_key_env, path=given.new_key_file))


@ledger.command(cls=Command)
@click.argument("run", type=click.UUID, metavar="RUN")
@options(ledger_options)
@as_given
def close(given: Given) -> None:
    """Close an unfinished run that `precheck status` lists.

    Its answers stay on record. The same file begins a new run, and workers delete its questions from their
    work folder. A run that a process is working on is refused (75).
    """
    from pipeline.jobs.ledger import close_ledger_run

    interruptible()
    notify(close_ledger_run(_job(given), given.run))


def _job(given: Given) -> "LedgerJob":
    from pipeline.jobs.ledger import LedgerJob

    return given.make(LedgerJob, now=now, monotonic=time.monotonic)


@click.command(cls=Command)
@options(ledger_options, [as_json_option])
@as_given
def status(given: Given) -> None:
    """Show unfinished runs and processes of a shared ledger.

    \b
    run      one payment file or data set with one profile, until it has finished;
             `precheck ledger close RUN` closes an abandoned one
    left     its distinct questions without a final answer
    chunk    some hundred questions that one process asks; free: no process holds it
    lease    how long a process holds its chunks; it renews the lease while it lives
    process  `precheck run` or `precheck worker` on any host, with its process id
    rate     the share of the account's rate and requests in flight of each process
    cap      today's requests of the account, from all hosts
    """  # noqa: D301 (click's mark)
    from pipeline.jobs.ledger import status_of
    from pipeline.reports.listings import print_status

    print_answer(status_of(_job(given)), print_status, as_json=given.as_json)


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
@option("--profile NAME", required=True, help="The profile with the shared ledger.")
@option("--config FILE", help="The configuration file.")
@option("--work DIR", required=True, help="The folder that `precheck run --work DIR` uses.")
@option("--until-idle", help="Exit when no questions are left.")
@option("--quiet", help="Print only errors.")
@log_option
@option("--metrics FILE", help="Keep writing metrics to FILE in the Prometheus text format.")
@options(observing_options)
@as_given
def worker(given: Given) -> None:
    """Ask the questions of runs that share a ledger.

    The runs were started by `precheck run --work DIR`, on any host. The worker asks until you stop it, then
    releases unfinished checks.
    """
    from pipeline.cli.logs import ProgressEvents, log_as_given, log_notice
    from pipeline.cli.monitoring import ObservingTargets, observed
    from pipeline.files.open_files import require_open_files
    from pipeline.jobs.sharing import WorkerJob, work
    from pipeline.runs.request import RunObserver, Surface

    require_open_files()
    stop = stoppable()
    log_as_given(given.log_form, quiet=given.quiet)
    watch = ProgressEvents() if given.log_form == "json" else RunObserver()
    job = given.make(WorkerJob)
    with observed(given.make(ObservingTargets, file=given.metrics)) as observer:
        done = work(job, Surface(watch, now, stop, log_notice, observer))
    if stop.is_urgent and stop.first is not None:
        sys.exit(stop.first.exit_code)
    if not given.quiet:
        notify(Sentence("cli.questions_answered", count=done.answered_count))


@click.command(cls=Command)
def quota() -> None:
    """Show how much of each daily cap is used.

    For profiles with a shared `ledger`, use `precheck status`.
    """
    from pipeline.jobs.quota import cap_uses
    from pipeline.reports.listings import print_quota
    from pipeline.reports.terminal import answers

    own, shared = cap_uses(now())
    print_quota(own, answers(), shared=shared)
