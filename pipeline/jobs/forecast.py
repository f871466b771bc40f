"""Forecast the check of a payment file or a data set: questions, APIs, duration. Sends nothing."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.profiles import Chosen, choose, to_plan_with
from pipeline.connections import api_of, scope_for
from pipeline.frames import Payments
from pipeline.jobs.check import RunInput
from pipeline.jobs.prepare import RunTime, as_configured, identity_of
from pipeline.jobs.quota import quota_usage
from pipeline.jobs.reuse import spared_checks
from pipeline.jobs.whole_file import WholeFile
from pipeline.reports.changes import listed_changes
from pipeline.runs.request import CheckJob, Clock, DataSetJob, RunObserver
from pipeline.stages.forecast import (
    ApiLimits,
    QuestionCounts,
    SparedChecks,
    counts_by_api,
    forecast,
    under_limits,
)
from schemas.forecast import Forecast, RejectedRow
from schemas.outcomes import ApiName
from schemas.strict import timestamp


def forecast_file(job: CheckJob, clock: Clock) -> Forecast:
    """Read, validate and plan one payment file, and forecast its check; sends nothing (PrecheckError)."""
    return _forecast(job, WholeFile.read, clock)


def forecast_data_set(job: DataSetJob, clock: Clock) -> Forecast:
    """Forecast the check of a data set, like `forecast_file`; parts and plans are stored for the run."""
    from pipeline.jobs.data_set import CheckedSet

    return _forecast(job.check, partial(CheckedSet.read, of=job), clock)


def _forecast(
    job: CheckJob, read: Callable[[CheckJob, ConfigurationFile], RunInput], clock: Clock
) -> Forecast:
    now = clock()
    file, unused = ConfigurationFile.of(job.config).for_profile(job.profile)
    source = read(as_configured(job, file), file)
    job = source.job
    chosen = choose(job.profile, file).assuming(job.account_type)
    profile = to_plan_with(chosen)
    refusal = source.prepare(chosen, profile, RunTime(now, begun=timestamp(now)), RunObserver())
    planned = source.planned(profile)
    apis = {server.name: api_of(server) for server in profile.servers}
    own = job.out, identity_of(source.run_sha256, chosen)
    counts, unasked = dict[ApiName, QuestionCounts](), SparedChecks()
    with spared_checks(job.reusable, own, apis, now=now) as spared:
        for checks, assignments in planned.questions:
            unasked = spared(checks)
            for api, some in counts_by_api(checks, assignments, unasked).items():
                before = counts.get(api, QuestionCounts(0, 0))
                added = (sum(filter(None, both)) for both in zip(before, some, strict=True))
                counts[api] = QuestionCounts(*added)
    made = forecast(
        job.file.name,
        profile.environment,
        planned.findings,
        counts,
        limits_of(profile, now),
        positions=planned.positions,
        why_uncounted=unasked.why_uncounted,
    )
    found = planned.found | {
        "notes": planned.found["notes"] + [note.recorded() for note in (unused,) if note is not None],
        "refusal": None if refusal is None else refusal.recorded(),
        "shared_ledger": chosen.settings.ledger,
    }
    if planned.payments is not None:
        found["rejects"] = _with_cells(made.rejects, planned.payments)
    if planned.compared is not None:
        comparison, changes = planned.compared.comparison, planned.changed(planned.compared.changes)
        found |= {"compared": comparison, "changes": listed_changes(changes, comparison)}
    return made.model_copy(update=found)


def _with_cells(rejects: Sequence[RejectedRow], payments: Payments) -> list[RejectedRow]:
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
