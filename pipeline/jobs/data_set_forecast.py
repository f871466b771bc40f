"""Forecast the check of a data set. Sends nothing; parts and plans are stored for the run."""

from functools import partial

import polars as pl

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import choose, to_plan_with
from pipeline.connections import api_of
from pipeline.executors.datasets.steps import SetTask, kept_part
from pipeline.frames import ASSIGNMENTS, CHECKS, REJECTS, WARNINGS
from pipeline.jobs.comparing import ComparedRun
from pipeline.jobs.data_set import CheckedSet
from pipeline.jobs.data_set_plan import PlannedSet
from pipeline.jobs.data_set_summary import found_in_parts
from pipeline.jobs.forecast import completed, limits_of
from pipeline.jobs.prepare import RunTime, as_configured, identity_of
from pipeline.jobs.reuse import OwnFolder, spared_checks
from pipeline.reports.changes import gravest_in_parts
from pipeline.runs.data_set import DataPart
from pipeline.runs.request import Clock, DataSetJob
from pipeline.runs.work_folder import read_frame
from pipeline.stages.compare import warnings_of
from pipeline.stages.forecast import QuestionCounts, SparedChecks, counts_by_api, forecast
from schemas.data_set import PartRead
from schemas.forecast import Forecast
from schemas.outcomes import ApiName
from schemas.strict import timestamp


def forecast_data_set(job: DataSetJob, clock: Clock) -> Forecast:
    """Read, validate and plan a data set, and forecast its check; sends nothing.

    Raises:
        PrecheckError: the data set or the configuration cannot be used; the exit code says why.
    """
    now, (file, unused) = clock(), ConfigurationFile(job.check.config).for_profile(job.check.profile)
    data_set = CheckedSet.read(as_configured(job.check, file), file, of=job)
    check = data_set.job
    chosen = choose(check.profile, file).assuming(check.account_type)
    profile = to_plan_with(chosen)
    refusal = data_set.plan(chosen, profile, RunTime(now, begun=timestamp(now)))
    planned, shared, compared = data_set.planned, data_set.task, data_set.compared
    counts, unasked = dict[ApiName, QuestionCounts](), SparedChecks()
    own = OwnFolder(check.out, identity_of(data_set.run_sha256, chosen))
    apis = {server.name: api_of(server) for server in profile.servers}
    with spared_checks(check.reusable, own, apis, now=now) as spared:
        for bucket in range(shared.bucket_count):
            checks = read_frame(shared.files.frame("questions", bucket), CHECKS)
            assignments = read_frame(shared.files.frame("assignments", bucket), ASSIGNMENTS)
            unasked = spared(checks)
            for api, some in counts_by_api(checks, assignments, unasked).items():
                before = counts.get(api, QuestionCounts(0, 0))
                counts[api] = QuestionCounts(
                    *(sum(filter(None, both)) for both in zip(before, some, strict=True))
                )
    made = forecast(
        check.file.name,
        profile.environment,
        _findings(shared, planned, compared),
        counts,
        limits_of(profile, now),
        positions=planned.rows.positions,
        why_uncounted=unasked.why_uncounted,
    )
    problems = [read.problem for _, read in planned.parts if read.problem is not None]

    def payments(part: DataPart, read: PartRead, start: int) -> pl.DataFrame:
        return kept_part(shared, part, read)[1].with_columns(pl.col("row") + start)

    parts = (
        (start + 1, read.row_count, partial(payments, part, read, start))
        for (part, read), start in zip(planned.usable, planned.rows.starts, strict=True)
    )
    changed = partial(gravest_in_parts, parts=parts)
    found = found_in_parts(planned.usable, profile.default_account_type)
    found["notes"] += [*problems, *(note.recorded() for note in filter(None, [unused]))]
    return completed(made, chosen, refusal, compared, changed, found)


def _findings(
    shared: SetTask, planned: PlannedSet, compared: ComparedRun | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `Rejects` and `Warnings` of all parts, numbered by the rows of the data set."""
    files, rejects, warnings = shared.files, [pl.DataFrame(schema=REJECTS)], [pl.DataFrame(schema=WARNINGS)]
    if compared is not None:
        warnings.append(warnings_of(compared.changes))
    for (part, _), start in zip(planned.usable, planned.rows.starts, strict=True):
        number, row = part.number, pl.col("row") + start
        rejects.append(read_frame(files.frame("rejects", number), REJECTS).with_columns(row))
        across = (files.frame("warnings_across", number, bucket) for bucket in range(shared.bucket_count))
        paths = (files.frame("warnings", number), *across)
        warnings += [read_frame(path, WARNINGS).with_columns(row) for path in paths]
    return pl.concat(rejects), pl.concat(warnings)
