"""`precheck init`: write a configuration to fill in."""

from pathlib import Path

import click

from pipeline.cli.helps import Command
from pipeline.cli.language import in_words
from pipeline.cli.options import PATH
from pipeline.wording import Sentence


@click.command(cls=Command)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.argument("path", type=PATH, default=Path("precheck.toml"))
def init(*, path: Path, force: bool) -> None:
    """Write a commented configuration.

    PATH is ./precheck.toml by default.
    """
    from pipeline.config import write_example

    write_example(path, force=force)
    click.echo(in_words(Sentence("cli.configuration_written", path=path)), err=True)
