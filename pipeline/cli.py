"""The `precheck` command: a group of the commands in `pipeline.commands`, each in the module of its name.

They parse, call, print and exit; no decision lives there. Heavy imports stand inside them, so that
`precheck --help` answers at once.
"""

from importlib.metadata import version

import click

from pipeline.commands.columns import columns
from pipeline.commands.doctor import doctor
from pipeline.commands.ending import Group
from pipeline.commands.explain import explain
from pipeline.commands.fix import fix
from pipeline.commands.init import init
from pipeline.commands.plan import plan
from pipeline.commands.purge import purge
from pipeline.commands.quota import quota
from pipeline.commands.report import report
from pipeline.commands.run import run
from pipeline.commands.sandbox import sandbox
from pipeline.commands.schema import schema
from pipeline.commands.show import show
from pipeline.commands.split import split
from pipeline.commands.verify import verify


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("payee-precheck"), prog_name="precheck")
def main() -> None:
    """Check every payee name in a bulk payment file before the money leaves.

    UK accounts are asked about by Confirmation of Payee, IBANs by Verification of Payee. Try it without
    any account or configuration: `precheck run payments.csv` starts a sandbox with simulated answers.
    """


for _command in (
    run,
    plan,
    columns,
    quota,
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
