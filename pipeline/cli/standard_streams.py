"""Payment files on standard input, and answers on standard output."""

import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from pipeline.runs.evidence import Finding

STANDARD_INPUT = Path("-")
Document = TypeVar("Document", bound="BaseModel")


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


def print_answer(document: Document, show: "Callable[[Document, Console], None]", *, as_json: bool) -> None:
    """Print the answer of a command: as JSON, or by `show` for people."""
    from pipeline.reports.terminal import answers

    if as_json:
        print_document(document)
    else:
        show(document, answers())


def print_findings(findings: "Iterable[Finding]") -> None:
    """Print the result of each test, one line each."""
    from pipeline.reports import listings
    from pipeline.reports.terminal import answers

    lines = [(one.what, one.detail, not one.exit_code if one.is_tried else None) for one in findings]
    listings.print_findings(lines, answers())
