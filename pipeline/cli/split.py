"""`precheck split`: from the answers to the payments to release and to hold."""

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import reporting_a_lost_signature
from pipeline.cli.options import PATH, Given, as_given, options, payment_file_options, review_options


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file that has the policy.")
@options(review_options)
@click.option("--hold-undecided", is_flag=True, help="Hold rows without an answer, instead of refusing.")
@options(payment_file_options)
@as_given
def split(given: Given) -> None:
    """Split the payments of DIR, the folder of a run, into those that may be paid and those that are held.

    The policy of the run's profile says which is which; without one, matches are released and all else is
    held. Both files have the format and columns of the payment file, and their totals add up to its.
    hold_reasons.csv says of each held row why it is held and what to do.
    """
    from pipeline.jobs.split import SplitJob, split_folder
    from pipeline.reports.reviews import print_split
    from pipeline.reports.terminal import console

    with reporting_a_lost_signature(given.folder):
        done = split_folder(given.make(SplitJob), now=now())
    if given.as_json:
        click.echo(done.model_dump_json())
    print_split(done, console())
