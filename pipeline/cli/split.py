"""`precheck split`: write the payments to release and to hold."""

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import reporting_a_lost_signature
from pipeline.cli.helps import Command
from pipeline.cli.options import PATH, Given, as_given, options, payment_file_options, review_options
from pipeline.cli.standard_streams import print_document


@click.command(cls=Command)
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file with the policy.")
@options(review_options)
@click.option(
    "--hold-undecided", is_flag=True, help="Hold rows without an answer instead of refusing to split."
)
@click.option(
    "--release-again",
    is_flag=True,
    help="Also release payments that are in an earlier release file of this file or of its corrections.",
)
@options(payment_file_options)
@as_given
def split(given: Given) -> None:
    """Split the payments of DIR into a release file and a hold file.

    The policy of the profile decides; without one, matches are released and all other rows are held. Both
    files have the format and columns of the payment file, and their totals add up to its total.
    hold_reasons.csv says for each held row why it is held and what to do. A payment is held if a
    related file already released it: the original of a corrected or held file, or a file made from this one.
    """
    from pipeline.jobs.split import SplitJob, split_folder
    from pipeline.reports.reviews import print_split
    from pipeline.reports.terminal import answers

    with reporting_a_lost_signature(given.folder):
        done = split_folder(given.make(SplitJob), now=now())
    if given.as_json:
        print_document(done)
    else:
        print_split(done, answers())
