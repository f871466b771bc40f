"""The `precheck` command: a group of commands, each in the module of `pipeline.cli` with its name.

Heavy imports are inside the commands, so that `precheck --help` is fast.
"""

import click

from pipeline.cli.columns import columns
from pipeline.cli.desk import desk
from pipeline.cli.desk_check import desk_check
from pipeline.cli.doctor import doctor
from pipeline.cli.exit_status import CommandGroup
from pipeline.cli.explain import explain
from pipeline.cli.fix import fix
from pipeline.cli.formats import formats
from pipeline.cli.helps import print_versions
from pipeline.cli.import_report import import_report
from pipeline.cli.init import init
from pipeline.cli.language import in_any_language
from pipeline.cli.ledger import ledger
from pipeline.cli.plan import plan
from pipeline.cli.purge import purge
from pipeline.cli.quota import quota
from pipeline.cli.report import report
from pipeline.cli.run import run
from pipeline.cli.sandbox import sandbox
from pipeline.cli.schema import schema
from pipeline.cli.show import show
from pipeline.cli.split import split
from pipeline.cli.status import status
from pipeline.cli.verify import verify
from pipeline.cli.worker import worker


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
    run,
    import_report,
    worker,
    status,
    desk,
    desk_check,
    plan,
    columns,
    formats,
    quota,
    ledger,
    purge,
    report,
    show,
    verify,
    doctor,
    init,
    schema,
    sandbox,
    explain,
    fix,
    split,
):
    main.add_command(_command)
in_any_language(main)
