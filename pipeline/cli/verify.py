"""`precheck verify`: check that a run's folder is unchanged."""

import sys

import click

from pipeline.cli.clock import now
from pipeline.cli.helps import Command
from pipeline.cli.options import PATH, Given, as_given
from pipeline.cli.standard_streams import print_document


@click.command(cls=Command)
@click.argument("folder", type=PATH, metavar="DIR")
@click.option(
    "--input",
    "input_file",
    type=PATH,
    metavar="FILE",
    help="The payment file, to compare every cell with it.",
)
@click.option(
    "--config", type=PATH, metavar="FILE", help="The configuration file, for the key of an encrypted ledger."
)
@click.option(
    "--signed-by",
    type=PATH,
    metavar="PUBLIC_KEY",
    help="Require a signature of this Ed25519 public key (PEM). Get the key from the signer, never from DIR.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON on standard output.")
@as_given
def verify(given: Given) -> None:
    """Check that the files of a run are unchanged and consistent.

    Checks every file in the manifest, recounts the outcome file, and compares it with the summary and the
    ledger: each answered row must have the answer for its own payee and account. --input also compares every
    cell with the payment file. --signed-by also requires a signature. Exit status 0: no difference; 65: a
    difference; 74: the ledger is damaged.
    """
    from pipeline.jobs.verify import VerifyJob, verification
    from pipeline.jobs.verify import verify as verify_folder
    from pipeline.reports.listings import print_findings
    from pipeline.reports.terminal import answers

    findings = verify_folder(given.make(VerifyJob), now=now())
    if given.as_json:
        print_document(verification(findings))
    else:
        print_findings([(found.what, found.detail, not found.exit_code) for found in findings], answers())
    sys.exit(max(finding.exit_code for finding in findings))
