"""Forecast the check of a payment file: questions, APIs, duration. Sends nothing."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

import polars as pl

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.profiles import Chosen, choose, ledger_url, to_plan_with
from pipeline.connections import api_of, scope_for
from pipeline.formats.message import set_aside, stated_controls
from pipeline.frames import Changes, Payments
from pipeline.jobs.comparing import ComparedRun
from pipeline.jobs.prepare import RunTime, as_configured, identity_of, prepare, read_file
from pipeline.jobs.quota import quota_usage
from pipeline.jobs.reuse import OwnFolder, spared_checks
from pipeline.reports.changes import gravest, listed_changes
from pipeline.rules.currencies import currency_sources
from pipeline.runs.request import CheckJob, Clock
from pipeline.stages.forecast import ApiLimits, counts_by_api, forecast, under_limits
from pipeline.wording import Sentence
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
