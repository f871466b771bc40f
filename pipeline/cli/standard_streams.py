"""Standard input as a payment file, and documents on standard output."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pydantic import BaseModel

STANDARD_INPUT = Path("-")


def payment_file(named: Path) -> Path:
    """The file that an argument names: `-` is standard input, in a private file until the command ends."""
    if named != STANDARD_INPUT:
        return named
    private = click.get_current_context().with_resource(TemporaryDirectory(prefix="precheck-"))
    # A format that its first bytes do not show is text, as a pipe's mostly is.
    file = Path(private) / "standard-input.csv"
    with file.open("xb") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
    return file


def print_document(document: "BaseModel") -> None:
    """Print a JSON document; a reader that goes away ends the printing, not the command."""
    with suppress(BrokenPipeError):
        click.echo(document.model_dump_json())
