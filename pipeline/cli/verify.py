"""`precheck verify`: whether a folder is as its run left it."""

import sys

import click

from pipeline.cli.clock import now
from pipeline.cli.options import PATH, Given, as_given
from pipeline.wording import SurfaceKind


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--input", "input_file", type=PATH, metavar="FILE", help="The payment file, to compare it too.")
@click.option(
    "--config", type=PATH, metavar="FILE", help="The configuration file, where the ledger is encrypted."
)
@click.option(
    "--signed-by",
    type=PATH,
    metavar="PUBLIC_KEY",
    help="The manifest must have a signature that this Ed25519 public key, PEM, verifies. Have the key from "
    "who signs, never from DIR.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON on standard output too.")
@as_given
def verify(given: Given) -> None:
    """Check that the files of the run in DIR are as it left them, and that all of them agree.

    Looks at every file in the manifest, counts the outcome file again, and compares it with the summary
    and the ledger: each answered row must have the very answer that its own payee and account had. With
    --input every cell of the outcome file is compared with the payment file, too. With --signed-by the
    manifest must have a signature that the key verifies. The findings go to standard error, a line each; with
    --json they go to standard output too, as one document. Exit status 0: nothing differs; 65: something
    does; 74: the ledger is damaged.
    """
    from pipeline.jobs.verify import VerifyJob, verification
    from pipeline.jobs.verify import verify as verify_folder
    from pipeline.reports.listings import print_findings
    from pipeline.reports.terminal import console

    findings = verify_folder(given.make(VerifyJob), now=now(), kind=SurfaceKind.COMMAND)
    if given.as_json:
        click.echo(verification(findings).model_dump_json())
    print_findings([(found.what, found.said, not found.exit_code) for found in findings], console())
    sys.exit(max(finding.exit_code for finding in findings))
