"""Payment files on standard input, and documents on standard output."""

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
    """Return the file to read; for `-`, a private copy of standard input that is deleted at the end."""
    if named != STANDARD_INPUT:
        return named
    private = click.get_current_context().with_resource(TemporaryDirectory(prefix="precheck-"))
    # Treated as text unless its first bytes show another format, because most pipes carry text.
    file = Path(private) / "standard-input.csv"
    with file.open("xb") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
    return file


def print_document(document: "BaseModel") -> None:
    """Print a JSON document; if the reader closes the pipe early, stop printing without an error."""
    with suppress(BrokenPipeError):
        click.echo(document.model_dump_json())
