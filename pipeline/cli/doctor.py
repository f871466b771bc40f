"""`precheck doctor`: test a profile without checking a payee."""

import sys
from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import interruptible
from pipeline.cli.helps import Command
from pipeline.cli.options import options, profile_options


@click.command(cls=Command)
@options(profile_options)
def doctor(*, profile: str | None, config: Path | None) -> None:
    """Test configuration, certificates, TLS and token; check no payee.

    Prints one line for each test.
    """
    from pipeline.cli.logs import log_to_stderr
    from pipeline.files.open_files import require_open_files
    from pipeline.jobs.doctor import diagnose
    from pipeline.reports.listings import print_findings
    from pipeline.reports.terminal import answers

    require_open_files()
    interruptible()
    log_to_stderr("text", quiet=True)
    findings = diagnose(profile, config, now=now())
    shown = [
        (found.what, found.detail, not found.exit_code if found.is_tried else None) for found in findings
    ]
    print_findings(shown, answers())
    sys.exit(next((finding.exit_code for finding in findings if finding.exit_code), 0))
