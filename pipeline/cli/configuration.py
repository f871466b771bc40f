"""`precheck init` and `precheck doctor`: write a configuration, and test it."""

import sys
from pathlib import Path

import click

from pipeline.cli.exit_status import interruptible
from pipeline.cli.helps import Command
from pipeline.cli.language import in_words
from pipeline.cli.options import PATH, now, option, options, profile_options
from pipeline.cli.standard_streams import print_findings
from pipeline.wording import Sentence


@click.command(cls=Command)
@option("--force", help="Replace an existing file.")
@click.argument("path", type=PATH, default=Path("precheck.toml"))
def init(*, path: Path, force: bool) -> None:
    """Write a commented configuration.

    PATH is ./precheck.toml by default.
    """
    from pipeline.config.file import write_example

    write_example(path, force=force)
    click.echo(in_words(Sentence("cli.configuration_written", path=path)), err=True)


@click.command(cls=Command)
@options(profile_options)
def doctor(*, profile: str | None, config: Path | None) -> None:
    """Test configuration, certificates, TLS and token; check no payee.

    Prints one line for each test.
    """
    from pipeline.cli.logs import log_to_stderr
    from pipeline.files.open_files import require_open_files
    from pipeline.jobs.doctor import diagnose

    require_open_files()
    interruptible()
    log_to_stderr("text", quiet=True)
    findings = diagnose(profile, config, now=now())
    print_findings(findings)
    sys.exit(next((finding.exit_code for finding in findings if finding.exit_code), 0))
