"""`precheck ledger`: look after the ledger that several machines share."""

import sys
import time
from typing import TYPE_CHECKING

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import interruptible, notify
from pipeline.cli.helps import Command, Group
from pipeline.cli.options import PATH, Given, as_given, ledger_options, options
from pipeline.errors import UsageError
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pipeline.jobs.ledger import LedgerJob

_as_role = click.option(
    "--as",
    "role",
    metavar="ROLE",
    help="The role that owns the tables; without it, the user of the profile's `ledger`.",
)


@click.group(cls=Group)
def ledger() -> None:
    """Set up and check the ledger that several machines share.

    It is the PostgreSQL database that `ledger` in the profile names.
    """


@ledger.command(cls=Command)
@options(ledger_options)
@_as_role
@click.option(
    "--grant-to",
    metavar="ROLE",
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
@click.option(
    "--restored",
    "is_restored",
    is_flag=True,
    help="After restoring a backup: count the requests whose answers it may lack.",
)
@as_given
def check(given: Given) -> None:
    """Check tables, key, server settings, replicas and role.

    Exit status 78 if something could lose an answer.
    """
    from pipeline.jobs.ledger import inspect_ledger
    from pipeline.reports.listings import print_findings
    from pipeline.reports.terminal import answers

    interruptible()
    findings = inspect_ledger(_job(given), is_restored=given.is_restored)
    print_findings([(found.what, found.detail, not found.exit_code) for found in findings], answers())
    sys.exit(next((finding.exit_code for finding in findings if finding.exit_code), 0))


@ledger.command(cls=Command)
@options(ledger_options)
@_as_role
@click.option("--new-key-env", metavar="NAME", help="The environment variable with the new key.")
@click.option("--new-key-file", type=PATH, metavar="FILE", help="The file with the new key; mode 0600.")
@as_given
def rekey(given: Given) -> None:
    """Put the ledger under another key; records and runs are kept.

    From then on every host needs the new key in the place that its profile names.
    """
    from pipeline.jobs.ledger import change_ledger_key

    interruptible()
    if (given.new_key_env is None) == (given.new_key_file is None):
        raise UsageError(Sentence("cli.name_new_key"))
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
