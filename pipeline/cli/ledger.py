"""`precheck ledger`: the ledger that several machines share."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import interruptible, notify
from pipeline.cli.options import PATH, options
from pipeline.errors import UsageError

if TYPE_CHECKING:
    from pipeline.jobs.ledger import LedgerJob

_profile_options: list[Callable[..., Any]] = [
    click.option("--profile", required=True, metavar="NAME", help="The profile that names the ledger."),
    click.option("--config", type=PATH, metavar="FILE", help="The configuration file."),
]
_as_role = click.option(
    "--as",
    "role",
    metavar="ROLE",
    help="The role that owns the tables; without it, the user of the profile's `ledger`.",
)


@click.group()
def ledger() -> None:
    """Set up the ledger that several machines share, and look at it.

    It is the database of PostgreSQL that `ledger` in the profile names: see docs/configuration.md.
    """


@ledger.command()
@options(_profile_options)
@_as_role
@click.option(
    "--grant-to",
    metavar="ROLE",
    help="The role of the runs, which may read and add; without it, with --as, the user of the profile's "
    "`ledger`.",
)
def init(*, profile: str, config: Path | None, role: str | None, grant_to: str | None) -> None:
    """Create the tables in an empty database, and let the role of the runs use them.

    The tables belong to the role that runs this. Where they are there already, only the grants are repeated.
    """
    from pipeline.jobs.ledger import create_ledger

    interruptible()
    notify(create_ledger(_job(profile, config, role), grant_to=grant_to))


@ledger.command()
@options(_profile_options)
@click.option(
    "--restored",
    "is_restored",
    is_flag=True,
    help="After a backup was brought back: count the requests whose answers it may lack.",
)
def check(*, profile: str, config: Path | None, is_restored: bool) -> None:
    """Look at the tables, the key, the server's settings, its replicas and the role of the runs.

    Exit status 78 where something would lose an answer.
    """
    from pipeline.jobs.ledger import inspect_ledger
    from pipeline.reports.listings import print_findings
    from pipeline.reports.terminal import console

    interruptible()
    findings = inspect_ledger(_job(profile, config), is_restored=is_restored)
    print_findings([(found.what, found.said, not found.exit_code) for found in findings], console())
    sys.exit(next((finding.exit_code for finding in findings if finding.exit_code), 0))


@ledger.command()
@options(_profile_options)
@_as_role
@click.option("--new-key-env", metavar="NAME", help="The environment variable with the new key.")
@click.option("--new-key-file", type=PATH, metavar="FILE", help="The file with the new key; mode 0600.")
def rekey(
    *,
    profile: str,
    config: Path | None,
    role: str | None,
    new_key_env: str | None,
    new_key_file: Path | None,
) -> None:
    """Put the ledger under another key; nothing that is recorded changes, and runs under way go on.

    From then on every host needs the new key in the place that its profile names.
    """
    from pipeline.jobs.ledger import change_ledger_key

    interruptible()
    if (new_key_env is None) == (new_key_file is None):
        raise UsageError("name the new key with one of --new-key-env and --new-key-file")
    notify(change_ledger_key(_job(profile, config, role), variable=new_key_env, path=new_key_file))


@ledger.command()
@click.argument("run", type=click.UUID, metavar="RUN")
@options(_profile_options)
def close(*, run: UUID, profile: str, config: Path | None) -> None:
    """Close RUN, an unfinished run of `precheck status` that nobody will go on with.

    Its answers stay on record. The same file begins a new run, and workers delete its questions from their
    work folder. A run that a process is asking now is refused (75).
    """
    from pipeline.jobs.ledger import close_ledger_run

    interruptible()
    notify(close_ledger_run(_job(profile, config), run))


def _job(profile: str, config: Path | None, role: str | None = None) -> "LedgerJob":
    from pipeline.jobs.ledger import LedgerJob

    return LedgerJob(profile, config, now, time.monotonic, role)
