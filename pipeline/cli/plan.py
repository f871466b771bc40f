"""`precheck plan`: what a run would take."""

from datetime import timedelta
from pathlib import Path

import click

from pipeline.cli.advice import OPTIONS
from pipeline.cli.clock import now
from pipeline.cli.exit_status import interruptible
from pipeline.cli.options import (
    PATH,
    compare_option,
    input_options,
    options,
    order_option,
    profile_options,
    read_mapping,
    reuse_options,
)


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
def plan(  # noqa: PLR0913 (one argument per option)
    *,
    file: Path,
    profile: str | None,
    config: Path | None,
    mapping: tuple[str, ...],
    input_format: str | None,
    encoding: str | None,
    sheet: str | None,
    out: Path | None,
    order: str,
    reuse_from: tuple[Path, ...],
    reuse_max_age: timedelta,
    as_json: bool,
    compare_with: tuple[Path, ...],
    work: Path | None,
) -> None:
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
    [folder] = folders([file], out).values()
    job = CheckJob(
        file=file,
        out=folder,
        profile=profile,
        config=config,
        mapping=read_mapping(mapping),
        input_format=input_format,
        encoding=encoding,
        sheet=sheet,
        order="amount" if order == "amount" else "file",
        reusable=ReusePermission(reuse_from, reuse_max_age),
        compare_with=compare_with,
    )
    if work is None:
        forecast = forecast_file(job, now, OPTIONS)
    else:
        forecast = forecast_data_set(DataSetJob(job, work), now)
    if as_json:
        click.echo(forecast.model_dump_json())
    print_forecast(forecast, console())
