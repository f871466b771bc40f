"""What checking a data set would take. Nothing is sent; what was read and planned stays for the run."""

from dataclasses import replace

import polars as pl

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import choose, ledger_url, modulus_of, to_plan_with
from pipeline.connections import routes
from pipeline.executors.datasets.engines import engine
from pipeline.executors.datasets.tasks import SetTask
from pipeline.frames import REJECTS, WARNINGS
from pipeline.jobs.data_set import refuse_options_of_a_file
from pipeline.jobs.data_set_plan import PlannedSet, plan_parts, task_of, why_refused_set
from pipeline.jobs.forecast import limits_of
from pipeline.jobs.prepare import as_configured
from pipeline.runs.data_set import open_data_set
from pipeline.runs.folder import has_begun
from pipeline.runs.part_files import read_frame
from pipeline.runs.request import Clock, DataSetJob
from pipeline.stages.forecast import QuestionCounts, forecast_by_counts
from pipeline.wording import Sentence
from schemas.forecast import Forecast
from schemas.outcomes import ApiName


def forecast_data_set(job: DataSetJob, clock: Clock) -> Forecast:
    """Read, validate and plan a data set, and say what checking it would take; send nothing.

    Raises:
        PrecheckError: the data set or the configuration cannot be used; the exit code says why.
    """
    now, (file, _) = clock(), ConfigurationFile(job.check.config).for_profile(job.check.profile)
    check = as_configured(job.check, file)
    refuse_options_of_a_file(check)
    job, chosen = replace(job, check=check), choose(check.profile, file).assuming(check.account_type)
    data = open_data_set(check.file, job.work)
    profile = to_plan_with(chosen)
    there = routes(profile)._replace(modulus=modulus_of(chosen, today=now.date()))
    shared = task_of(job, data, chosen, there)
    with engine(job.engine, job.scheduler) as at_work:
        planned = plan_parts(data, shared, at_work)
    own = Sentence("jobs.data_set_uncounted", folder=check.out).recorded()
    made = forecast_by_counts(
        check.file.name,
        profile.environment,
        _findings(shared, planned),
        _counts(planned),
        limits_of(profile, now),
        positions=planned.rows.positions,
        why_uncounted=own if has_begun(check.out) else None,
    )
    problems = [read.problem for _, read in planned.parts if read.problem is not None]
    refusal = why_refused_set(check, planned)
    update: dict[str, object] = {
        "refusal": None if refusal is None else refusal.recorded(),
        "notes": [*planned.usable[0][1].notes, *problems],
        "shared_ledger": ledger_url(chosen),
    }
    return made.model_copy(update=update)


def _counts(planned: PlannedSet) -> dict[ApiName, QuestionCounts]:
    """Rows and questions of each API."""
    rows, questions = dict.fromkeys(ApiName, 0), dict.fromkeys(ApiName, 0)
    for route in (route for _, read in planned.usable for route in read.routes):
        rows[route.api] += route.row_count
    for bucket in planned.buckets:
        for api, count in bucket.question_counts.items():
            questions[api] += count
    return {api: QuestionCounts(rows[api], questions[api]) for api in ApiName if questions[api]}


def _findings(shared: SetTask, planned: PlannedSet) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`Rejects` and `Warnings` of all parts, by the rows of the data set."""
    files, rejects, warnings = shared.files, [pl.DataFrame(schema=REJECTS)], [pl.DataFrame(schema=WARNINGS)]
    for (part, _), start in zip(planned.usable, planned.rows.starts, strict=True):
        number, row = part.number, pl.col("row") + start
        rejects.append(read_frame(files.frame("rejects", number), REJECTS).with_columns(row))
        across = (files.frame("warnings_across", number, bucket) for bucket in range(shared.bucket_count))
        paths = (files.frame("warnings", number), *across)
        warnings += [read_frame(path, WARNINGS).with_columns(row) for path in paths]
    return pl.concat(rejects), pl.concat(warnings)
