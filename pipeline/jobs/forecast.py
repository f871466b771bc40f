"""Forecast the check of a payment file: how many questions, to which API, how long. Nothing is sent."""

from collections.abc import Sequence
from datetime import datetime

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.profiles import Chosen, choose, ledger_url, to_plan_with
from pipeline.connections import api_of, scope_for
from pipeline.formats.message import set_aside, stated_controls
from pipeline.frames import Payments
from pipeline.jobs.prepare import RunTime, as_configured, identity_of, prepare, read_file
from pipeline.jobs.quota import quota_usage
from pipeline.jobs.reuse import OwnFolder, reusable_checks
from pipeline.reports.changes import gravest, listed_changes
from pipeline.rules.currencies import currency_sources
from pipeline.runs.request import CheckJob, Clock
from pipeline.stages.forecast import ApiLimits, forecast, under_limits
from schemas.forecast import Forecast, RejectedRow
from schemas.outcomes import ApiName
from schemas.strict import timestamp


def forecast_file(job: CheckJob, clock: Clock) -> Forecast:
    """Read, validate and plan one payment file, and forecast its check; send nothing.

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
    unasked = reusable_checks(job.reusable, checks, own, apis, now=now)
    questions, limits = (checks, prepared.assignments, unasked), limits_of(profile, now)
    made = forecast(
        job.file.name, profile.environment, prepared.findings, questions, limits, source.positions
    )
    update: dict[str, object] = {
        "rejects": _with_cells(made.rejects, source.payments),
        "refusal": None if prepared.refusal is None else prepared.refusal.recorded(),
        "not_payments": source.not_payments,
        "notes": [note.recorded() for note in (*source.notes, *prepared.notes, *filter(None, [unused]))],
        "shared_ledger": ledger_url(chosen),
        "currency_sources": currency_sources(source.payments),
    }
    update["bank_warnings"] = list(prepared.bank_warnings)
    if source.message is not None:
        update |= {"controls": stated_controls(source.message), "set_aside": set_aside(source.message)}
    if prepared.compared is not None:
        comparison, changes = prepared.compared.comparison, prepared.compared.changes
        update |= {
            "compared": comparison,
            "changes": listed_changes(gravest(changes, source.payments), comparison),
        }
    return made.model_copy(update=update)


def _with_cells(rejects: Sequence[RejectedRow], payments: Payments) -> list[RejectedRow]:
    """The rejects with the cells of their rows."""
    rows = payments[[one.row - 1 for one in rejects]].iter_rows(named=True)
    return [
        one.model_copy(update={"name": row["name"], "amount": row["amount"], "cell": row.get(one.field)})
        for one, row in zip(rejects, rows, strict=True)
    ]


def under_limits_now(made: Forecast, chosen: Chosen, now: datetime) -> Forecast:
    """The same forecast under the current use of daily caps; an embedded sandbox has none."""
    return made if chosen.profile is None else under_limits(made, limits_of(chosen.profile, now))


def limits_of(profile: Profile, now: datetime) -> dict[ApiName, ApiLimits]:
    """The current limits and prices of each API in a profile."""
    used = {use.scope: use.cap if use.closed else use.used_count for use in quota_usage(now)}
    return {
        server.name: ApiLimits(server.rate_per_s, server.cap, used.get(scope_for(server), 0), server.price)
        for server in profile.servers
    }
