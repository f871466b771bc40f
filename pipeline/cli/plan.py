"""`precheck plan`: what a run would take."""

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import interruptible
from pipeline.cli.options import (
    PATH,
    Given,
    as_given,
    compare_option,
    input_options,
    options,
    order_option,
    profile_options,
    read_mapping,
    reuse_options,
)
from pipeline.wording import SurfaceKind


@click.command()
@click.argument("file", type=PATH)
@options(profile_options, input_options)
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="The folder of the run, whose answers are not asked for again; default: FILE's name with .precheck.",
)
@order_option
@options(reuse_options)
@click.option("--json", "as_json", is_flag=True, help="Print the forecast as JSON on standard output.")
@compare_option
@click.option(
    "--work",
    type=PATH,
    metavar="DIR",
    help="FILE is a data set: a folder of parts, or one large Parquet file. What is read of it goes to DIR, "
    "and is used by the run.",
)
@as_given
def plan(given: Given) -> None:
    """Forecast what checking FILE would take, and send nothing.

    Questions that the run in DIR has answers to already, and those that --reuse-from answers, are no calls.
    """
    from pipeline.jobs.data_set_forecast import forecast_data_set
    from pipeline.jobs.forecast import forecast_file
    from pipeline.reports.listings import print_forecast
    from pipeline.reports.terminal import console
    from pipeline.runs.request import CheckJob, DataSetJob, ReusePermission
    from pipeline.runs.starting import folders

    interruptible()
    [folder] = folders([given.file], given.out).values()
    job = given.make(
        CheckJob,
        out=folder,
        mapping=read_mapping(given.mapping),
        reusable=ReusePermission(given.reuse_from, given.reuse_max_age),
        work=None,
    )
    if given.work is None:
        forecast = forecast_file(job, now, SurfaceKind.COMMAND)
    else:
        forecast = forecast_data_set(DataSetJob(job, given.work), now)
    if given.as_json:
        click.echo(forecast.model_dump_json())
    print_forecast(forecast, console())
