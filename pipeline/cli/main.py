"""The `precheck` command: a group of commands, which are in the modules of `pipeline.cli`."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

import click

from pipeline.cli.configuration import doctor, init
from pipeline.cli.desk import desk, desk_check
from pipeline.cli.exit_status import CommandGroup, reported
from pipeline.cli.helps import print_versions
from pipeline.cli.language import CALLED, in_any_language
from pipeline.cli.ledger import ledger, quota, status, worker
from pipeline.cli.lookup import columns, explain, formats, schema
from pipeline.cli.options import option
from pipeline.cli.run import import_report, plan, run
from pipeline.cli.run_folder import fix, purge, report, show, split, verify
from pipeline.cli.sandbox import sandbox
from pipeline.errors import PrecheckError
from pipeline.wording import ENGLISH, SurfaceKind, speaking, words


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@option("--version", callback=print_versions, is_eager=True, expose_value=False, help="Print versions.")
def main() -> None:
    """Check every payee name in a bulk payment file before the money leaves.

    UK accounts are checked by Confirmation of Payee, IBANs by Verification of Payee. Try it without
    any account or configuration: `precheck run payments.csv` starts a sandbox with simulated answers.
    """


for _command in (
    *(run, import_report, worker, status, desk, desk_check, plan, columns, formats, quota, ledger, purge),
    *(report, show, verify, doctor, init, schema, sandbox, explain, fix, split),
):
    main.add_command(_command)
in_any_language(main)


def answer() -> None:
    """Run the command for the Python API of another process: JSON arguments in, a JSON document out."""
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
