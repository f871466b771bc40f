"""Run the command for the Python API of another process, instead of a shell."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

import click

from pipeline.cli.exit_status import reported
from pipeline.cli.language import CALLED
from pipeline.cli.main import main
from pipeline.errors import PrecheckError
from pipeline.wording import ENGLISH, SurfaceKind, speaking, words


def answer() -> None:
    """Read the arguments as a JSON list; print the exit status and all output as a JSON document."""
    arguments = json.load(sys.stdin)
    exit_code = 0
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()):
        try:
            main.main(arguments, prog_name="precheck", obj=CALLED)
        except SystemExit as end:
            exit_code = int(end.code or 0)
    refusals = [_reason_and_advice(error) for error in reported]
    json.dump({"exit_code": exit_code, "document": printed.getvalue(), "refusals": refusals}, sys.stdout)


def _reason_and_advice(error: PrecheckError | click.ClickException) -> tuple[str, str]:
    if isinstance(error, click.ClickException):
        with speaking(ENGLISH):
            return error.format_message(), ""
    if not error.advice:
        return error.sentence(SurfaceKind.COMMAND), ""
    return words(error.reason, SurfaceKind.COMMAND), ", or ".join(
        words(step, SurfaceKind.COMMAND) for step in error.advice
    )
