"""The `precheck` command: a group of commands, which are in the modules of `pipeline.cli`.

Heavy imports are inside the commands, so that `precheck --help` is fast.
"""

import click

from pipeline.cli.configuration import doctor, init
from pipeline.cli.desk import desk, desk_check
from pipeline.cli.exit_status import CommandGroup
from pipeline.cli.helps import print_versions
from pipeline.cli.import_report import import_report
from pipeline.cli.language import in_any_language
from pipeline.cli.ledger import ledger, quota, status, worker
from pipeline.cli.lookup import columns, explain, formats, schema
from pipeline.cli.payment_files import fix, split
from pipeline.cli.run import plan, run
from pipeline.cli.run_folder import purge, report, show, verify
from pipeline.cli.sandbox import sandbox


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_versions,
    help="Print versions.",
)
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
