"""Forecast the check of a payment file: questions, APIs, duration. Sends nothing."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

import polars as pl

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.profiles import Chosen, choose, ledger_url, to_plan_with
from pipeline.connections import api_of, scope_for
from pipeline.executors.datasets.steps import kept_part
from pipeline.executors.datasets.tasks import SetTask
from pipeline.formats.message import set_aside, stated_controls
from pipeline.frames import ASSIGNMENTS, CHECKS, REJECTS, WARNINGS, Changes, Payments
from pipeline.jobs.comparing import ComparedRun
from pipeline.jobs.data_set import CheckedSet
from pipeline.jobs.data_set_outcomes import found_in_parts
from pipeline.jobs.data_set_plan import PlannedSet
from pipeline.jobs.prepare import RunTime, as_configured, identity_of, prepare, read_file
from pipeline.jobs.quota import quota_usage
from pipeline.jobs.reuse import OwnFolder, spared_checks
from pipeline.reports.changes import gravest, gravest_in_parts, listed_changes
from pipeline.rules.currencies import currency_sources
from pipeline.runs.data_set import DataPart
from pipeline.runs.part_files import read_frame
from pipeline.runs.request import CheckJob, Clock, DataSetJob
from pipeline.stages.compare import warnings_of
from pipeline.stages.forecast import (
    ApiLimits,
    QuestionCounts,
    SparedChecks,
    counts_by_api,
    forecast,
    under_limits,
)
from pipeline.wording import Sentence
from schemas.data_set import PartRead
from schemas.forecast import Forecast, RejectedRow
from schemas.outcomes import ApiName
from schemas.strict import timestamp


def forecast_file(job: CheckJob, clock: Clock) -> Forecast:
    """Read, validate and plan one payment file, and forecast its check; sends nothing.

    Raises:
        PrecheckError: the file or the configuration cannot be used; the exit code says why.
    """
    now = clock()
    file, unused = ConfigurationFile(job.config).for_profile(job.profile)
    job = as_configured(job, file)
    source = read_file(job, file)
    chosen = choose(job.profile, file).assuming(job.account_type)
    profile = to_plan_with(chosen)
    prepared, checks = prepare(job, source, chosen, profile, RunTime(now, begun=timestamp(now)))
    apis = {server.name: api_of(server) for server in profile.servers}
    own = OwnFolder(job.out, identity_of(source.sha256, chosen))
    with spared_checks(job.reusable, own, apis, now=now) as spared:
        unasked = spared(checks)
    made = forecast(
        job.file.name,
        profile.environment,
        prepared.findings,
        counts_by_api(checks, prepared.assignments, unasked),
        limits_of(profile, now),
        positions=source.positions,
        why_uncounted=unasked.why_uncounted,
    )
    found: dict[str, object] = {
        "rejects": _with_cells(made.rejects, source.payments),
        "not_payments": source.not_payments,
        "notes": [note.recorded() for note in (*source.notes, *prepared.notes, *filter(None, [unused]))],
        "currency_sources": currency_sources(source.payments),
        "bank_warnings": list(prepared.bank_warnings),
    }
    if source.message is not None:
        found |= {"controls": stated_controls(source.message), "set_aside": set_aside(source.message)}
    changed = partial(gravest, payments=source.payments)
    return completed(made, chosen, prepared.refusal, prepared.compared, changed, found)


def completed(  # noqa: PLR0913, PLR0917 (everything known before anything is sent)
    made: Forecast,
    chosen: Chosen,
    refusal: Sentence | None,
    compared: ComparedRun | None,
    changed: Callable[[Changes], pl.DataFrame],
    found: dict[str, object],
) -> Forecast:
    """Add other findings to a forecast; the most serious kind of change includes the payments' amounts."""
    found |= {"refusal": None if refusal is None else refusal.recorded(), "shared_ledger": ledger_url(chosen)}
    if compared is not None:
        changes = listed_changes(changed(compared.changes), compared.comparison)
        found |= {"compared": compared.comparison, "changes": changes}
    return made.model_copy(update=found)


def _with_cells(rejects: Sequence[RejectedRow], payments: Payments) -> list[RejectedRow]:
    """Return the rejects with the cells of their rows."""
    rows = payments[[one.row - 1 for one in rejects]].iter_rows(named=True)
    return [
        one.model_copy(update={"name": row["name"], "amount": row["amount"], "cell": row.get(one.field)})
        for one, row in zip(rejects, rows, strict=True)
    ]


def under_limits_now(made: Forecast, chosen: Chosen, now: datetime) -> Forecast:
    """Update a forecast to the current use of daily caps; an embedded sandbox has none."""
    return made if chosen.profile is None else under_limits(made, limits_of(chosen.profile, now))


def limits_of(profile: Profile, now: datetime) -> dict[ApiName, ApiLimits]:
    """Return the current limits and prices of each API in a profile."""
    used = {use.scope: use.cap if use.closed else use.used_count for use in quota_usage(now)}
    return {
        server.name: ApiLimits(server.rate_per_s, server.cap, used.get(scope_for(server), 0), server.price)
        for server in profile.servers
    }


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
