"""`precheck init`: write a configuration to fill in."""

from pathlib import Path

import click

from pipeline.cli.options import PATH


@click.command()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.argument("path", type=PATH, default=Path("precheck.toml"))
def init(*, path: Path, force: bool) -> None:
    """Write a commented configuration to PATH, by default ./precheck.toml."""
    from pipeline.config import write_example

    write_example(path, force=force)
    then = "fill in your servers and credentials, then try `precheck doctor --profile production`"
    click.echo(f"{path} written; {then}", err=True)
