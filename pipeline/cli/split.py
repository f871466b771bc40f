"""`precheck split`: from the answers to the payments to release and to hold."""

from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import reporting_a_lost_signature
from pipeline.cli.options import (
    PATH,
    allow_simulated_option,
    as_json_option,
    by_option,
    decisions_option,
    edited_input_option,
    sign_option,
)


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file that has the policy.")
@decisions_option
@edited_input_option
@by_option
@click.option("--hold-undecided", is_flag=True, help="Hold rows without an answer, instead of refusing.")
@allow_simulated_option
@sign_option
@as_json_option
def split(  # noqa: PLR0913 (one argument per option)
    *,
    folder: Path,
    config: Path | None,
    decisions: Path | None,
    input_file: Path | None,
    by: str | None,
    hold_undecided: bool,
    allow_simulated: bool,
    sign_with: Path | None,
    as_json: bool,
) -> None:
    """Split the payments of DIR, the folder of a run, into those that may be paid and those that are held.

    The policy of the run's profile says which is which; without one, matches are released and all else is
    held. Both files have the format and columns of the payment file, and their totals add up to its.
    hold_reasons.csv says of each held row why it is held and what to do.
    """
    from pipeline.jobs.split import SplitJob, split_folder
    from pipeline.reports.reviews import print_split
    from pipeline.reports.terminal import console

    with reporting_a_lost_signature(folder):
        done = split_folder(
            SplitJob(
                folder=folder,
                config=config,
                decisions=decisions,
                input_file=input_file,
                by=by,
                hold_undecided=hold_undecided,
                allow_simulated=allow_simulated,
                sign_with=sign_with,
            ),
            now=now(),
        )
    if as_json:
        click.echo(done.model_dump_json())
    print_split(done, console())
