"""`precheck plan`: forecast a run."""

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import interruptible
from pipeline.cli.helps import Command
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
    rehearse_option,
    reuse_options,
)
from pipeline.cli.standard_streams import payment_file, print_document


@click.command(cls=Command)
@click.argument("file", type=PATH)
@options(profile_options, input_options)
@rehearse_option
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="Folder of the run; its answers are not counted as calls. Default: FILE's name with .precheck.",
)
@order_option
@options(reuse_options)
@click.option("--json", "as_json", is_flag=True, help="Print the forecast as JSON on standard output.")
@compare_option
@click.option(
    "--work",
    type=PATH,
    metavar="DIR",
    help="For a data set (a folder of parts, or one large Parquet file): folder for intermediate "
    "files, which the run reuses.",
)
@as_given
def plan(given: Given) -> None:
    """Forecast calls, duration and cost; send nothing.

    Answers in DIR and reused answers are not counted as calls.
    """
    from pipeline.jobs.forecast import forecast_file
    from pipeline.reports.listings import print_forecast
    from pipeline.reports.terminal import answers
    from pipeline.runs.request import CheckJob, DataSetJob, ReusePermission
    from pipeline.runs.starting import folders

    interruptible()
    [(file, folder)] = folders([payment_file(given.file)], given.out).items()
    job = given.make(
        CheckJob,
        file=file,
        out=folder,
        mapping=read_mapping(given.mapping),
        reusable=ReusePermission(given.reuse_from, given.reuse_max_age),
        work=None,
    )
    if given.work is None:
        forecast = forecast_file(job, now)
    else:
        from pipeline.jobs.forecast import forecast_data_set

        forecast = forecast_data_set(DataSetJob(job, given.work), now)
    if given.as_json:
        print_document(forecast)
    else:
        print_forecast(forecast, answers())
