"""The whole job, in order: read, validate, plan, ask, resolve, write, report. Read this page first.

    file -read-> Payments -validate-> Accepted -plan-> Checks -ask-> Answers -resolve-> Outcomes -write-> file
                              `--------> Rejects ---------------------------'              `-report-> Summary

This module opens and closes what must be opened and closed, and touches the real clock and real
chance. What happens in between is in the stages.
"""

import random
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import anyio
import polars as pl
import structlog

from pipeline.config import Profile
from pipeline.config.profiles import Chosen, choose, ledger_key, modulus_of, opened, signed_with
from pipeline.connections import api_of, quota_path, routes, scope_for
from pipeline.errors import IncompleteError, InputError, PrecheckError, ProtocolError
from pipeline.files.atomic import write_whole
from pipeline.files.signatures import sign
from pipeline.frames import empty
from pipeline.jobs.comparing import Compared, Subject, Wanted, compared, keep
from pipeline.jobs.earlier import refuse_own_folder, spared, use_again
from pipeline.jobs.report import kept_changes
from pipeline.reports.changes import changes_of, listed
from pipeline.reports.documents import Rows, reports
from pipeline.rules.currencies import currency_sources
from pipeline.rules.enumeration import unknown_in_sequence, why_refused
from pipeline.rules.modulus import used
from pipeline.runs.manifest import Recorded, Settings, keep_changed_workbook, write_manifest
from pipeline.runs.request import Job, Watch
from pipeline.runs.starting import (
    Judged,
    finished_before,
    refuse_what_is_not_ours,
    remove_stale,
    remove_untrue,
)
from pipeline.stages.compare import warnings_of
from pipeline.stages.plan import Plan, bases, plan
from pipeline.stages.read import Source, read
from pipeline.stages.resolve import resolve
from pipeline.stages.summarise import (
    ROWS_NAMED_MAX,
    UNDECIDED,
    Header,
    Limits,
    forecast,
    report,
    route_counts,
)
from pipeline.stages.validate import validate
from pipeline.stages.write import write
from pipeline.stores.sqlite.ledger import Ledger, RunIdentity
from pipeline.stores.sqlite.quota import QuotaUse, usage
from schemas.changes import Change
from schemas.outcomes import WarningCode
from schemas.places import in_brackets
from schemas.summary import ApiCalls, Forecast, InputFile, ModulusUsed, RouteCount, Summary
from schemas.wire import timestamp

log: structlog.stdlib.BoundLogger = structlog.get_logger()

VERSION = version("payee-precheck")
FAILED_ON = 1
"""The exit status where a row has an outcome or a warning that the caller wanted to hear of."""
ANY_WARNING = "warning"
"""Stands in `--fail-on` for every code of a warning."""
TOTALS_DIFFER = "TOTALS_DIFFER"
"""What `--fail-on` calls a total or a count in the file that is not that of its payments."""


class Result(NamedTuple):
    """What a run leaves behind."""

    summary: Summary
    already_finished: bool
    """True where an earlier run had finished the job, so that nothing was left to do."""
    changes: Sequence[Change] = ()
    """What is not as it was in an earlier run, as far as a person looks at it."""
    ended_by: PrecheckError | None = None
    """What ended the run early; what it leaves behind is true of that moment."""


class Planned(NamedTuple):
    """A file, read, validated and planned; nothing has been sent.

    Of a large file every frame is large, so that only what is needed again outlives its stage.
    """

    source: Source
    chosen: Chosen
    profile: Profile
    rejects: pl.DataFrame
    warnings: pl.DataFrame
    routes: list[RouteCount]
    refusal: str | None
    """Why nothing may be asked about this file, unless somebody allows it."""
    plan: Plan
    compared: Compared | None
    """With earlier runs; None where nobody wanted that."""
    modulus: ModulusUsed | None
    """By which tables UK accounts were checked."""


def run(job: Job, watch: Watch) -> Result:
    """Check one payment file.

    Returns:
        What it leaves behind; also where an error ended the asking, which is told with it.

    Raises:
        PrecheckError: the run ended before anything was asked, or its outcome file cannot be written; the
            exit code says why. Answers that came before are kept, and are not asked for again.
    """
    started = _now()
    source = _read(job)
    chosen = signed_with(choose(job.profile, job.config), job.sign_with)
    identity = _identity(source, chosen)
    refuse_own_folder(job.reusable.folders, job.out)
    refuse_what_is_not_ours(job.out, fresh=job.fresh)
    path = job.out / "ledger.db"
    now = timestamp(started)
    with ExitStack() as stack:
        # A file that is refused before anything is asked leaves no folder behind, and no answer forgotten.
        is_new = job.fresh or not path.exists()
        planned = _prepared(job, source, chosen, stack, begun=now) if is_new else None
        ledger = stack.enter_context(
            Ledger.open(path, identity, now=now, fresh=job.fresh, secret=ledger_key(chosen))
        )
        if planned is None:
            tables = modulus_of(chosen, today=started.date())
            asked_before = finished_before(job, source, ledger, Judged(_wanted(job, chosen).said, tables))
            if asked_before is not None:
                _tell_unsigned(job.out, chosen)
                changes = changes_of(asked_before, source.payments, kept_changes(job.out))
                return Result(asked_before, already_finished=True, changes=changes)
            planned = _prepared(job, source, chosen, stack, begun=ledger.created_at)
        return _checked(job, planned, ledger, watch, started)


def _prepared(job: Job, source: Source, chosen: Chosen, stack: ExitStack, *, begun: str) -> Planned:
    """The plan, of a file that may be asked about, with its server there until the stack is closed."""
    planned = _planned(job, source, chosen, stack.enter_context(opened(chosen)), begun=begun)
    if planned.refusal is not None and job.many_names_reason is None:
        raise InputError(planned.refusal)
    return planned


def _checked(job: Job, planned: Planned, ledger: Ledger, watch: Watch, started: datetime) -> Result:
    """Ask what is left to ask, and write everything that a run leaves behind."""
    source, chosen = planned.source, planned.chosen
    if job.many_names_reason is not None:
        ledger.allow(job.many_names_reason, time=timestamp(_now()))
    _tell_before_asking(planned)
    if ledger.last_finish is None:
        remove_untrue(job.out)
    decided = _decided(job, planned, ledger, watch)
    outcomes, format_name = decided.outcomes, job.format or source.outcome_format
    written = write(source.original, outcomes, job.out, format_name=format_name, delimiter=source.delimiter)
    header = _header(job, planned, started, decided)
    summary = report(header, source.payments, outcomes, decided.warnings, decided.calls)
    if (kept := keep_changed_workbook(job.out)) is not None:
        log.warning("the workbook had been changed since it was written", kept_as=str(job.out / kept))
    changes = None if planned.compared is None else planned.compared.changes
    rows = Rows(source.payments, outcomes, source.original, changes)
    report_files = reports(job.out, summary, rows, outcome_name=written.path.name, policy=chosen.policy)
    summary_file = _write_summary(summary, job.out)
    remove_stale(job.out, format_name, compared=planned.compared is not None)
    kept_files = _kept(job, planned, outcomes, ledger)
    finish = ledger.finish(
        timestamp(_now()),
        question_count=decided.question_count,
        unanswered_count=decided.undecided_count,
        outcome_sha256=written.sha256,
    )
    settings = Settings(chosen.name, planned.profile, chosen.fingerprint, job.mapping)
    recorded = Recorded(finish, ledger.counts, ledger.created_at)
    write_manifest(
        job.out, summary, settings, recorded, [written.path, summary_file, *report_files, *kept_files]
    )
    sign(job.out, chosen.signer)
    return Result(
        summary,
        already_finished=False,
        changes=changes_of(summary, source.payments, changes),
        ended_by=decided.ended_by,
    )


def _tell_unsigned(folder: Path, chosen: Chosen) -> None:
    """Say where a finished run, which is left as it is, is not signed as this one would be."""
    if chosen.signer is not None and not chosen.signer.has_signed(folder):
        log.warning(
            "the manifest of this finished run has no signature of the key; "
            "precheck report DIR --sign-with KEY signs it",
            folder=str(folder),
        )


def _tell_before_asking(planned: Planned) -> None:
    """Say what is likely to cost calls for nothing, while they can still be spared."""
    foreign = planned.warnings.filter(pl.col("code") == WarningCode.NAME_NOT_LATIN)["row"]
    if foreign.len():
        first = foreign.head(ROWS_NAMED_MAX).to_list()
        log.warning(
            "names with letters that VoP need not carry between banks are asked about all the same; "
            "vop_names = 'latin' in the profile spares their calls",
            row_count=foreign.len(),
            rows=", ".join(map(str, first)) + in_brackets(first, planned.source.places),
        )


class Decided(NamedTuple):
    """What became of every payment, and what is told of the asking."""

    outcomes: pl.DataFrame
    warnings: pl.DataFrame
    calls: list[ApiCalls]
    next_step: str
    question_count: int
    undecided_count: int
    """Questions without an answer."""
    given_up: bool
    """Whether no later run would ask any of them."""
    ended_by: PrecheckError | None
    """What ended the asking early."""


def _decided(job: Job, planned: Planned, ledger: Ledger, watch: Watch) -> Decided:
    """Ask, and decide every payment by the answers, which are not needed after that."""
    # The HTTP libraries come with them, and a run that is refused needs none.
    from pipeline.executors.local import Asking, ask_all, calls
    from pipeline.stages.ask import Tally, World

    profile, (checks, assignments) = planned.profile, planned.plan
    apis = {server.name: api_of(server) for server in profile.servers}
    use_again(job.reusable, checks, ledger, apis, now=_now())
    world = World(_now, time.monotonic, random.random, lambda: str(uuid4()), anyio.Event(), Tally())
    asking = Asking(checks, profile, is_ours=planned.chosen.config is None)
    asked = ask_all(job, asking, ledger, world, watch)
    warnings = pl.concat([planned.warnings, unknown_in_sequence(checks, assignments, asked.answers)])
    answered = bases(checks)
    empty(checks)
    outcomes = resolve(
        (planned.rejects, warnings),
        (answered, assignments),
        asked.answers,
        apis.values(),
        profile.environment,
    )
    return Decided(
        outcomes,
        warnings,
        calls(answered, world.tally),
        asked.next_step(answered),
        answered.height,
        asked.undecided.height,
        0 < asked.undecided.height == asked.given_up_count,
        asked.ended_by,
    )


def forecast_file(job: Job) -> Forecast:
    """Read, validate and plan one payment file, and say what checking it would take; send nothing."""
    source = _read(job)
    chosen = choose(job.profile, job.config)
    with opened(chosen) as profile:
        planned = _planned(job, source, chosen, profile, begun=timestamp(_now()))
    checks, assignments = planned.plan
    apis = {server.name: api_of(server) for server in profile.servers}
    unasked = spared(job.reusable, checks, (job.out, _identity(source, chosen)), apis, now=_now())
    used = {use.scope: use.cap if use.closed else use.used_count for use in quota_usage()}
    limits = {
        server.name: Limits(server.rate_per_s, server.cap, used.get(scope_for(server), 0))
        for server in profile.servers
    }
    findings = (planned.rejects, planned.warnings)
    told = forecast(
        job.file.name, profile.environment, findings, (checks, assignments, unasked), limits, source.places
    )
    update: dict[str, object] = {
        "refusal": planned.refusal,
        "not_payments": source.not_payments,
        "notes": list(source.notes),
        "currency_sources": currency_sources(source.payments),
    }
    if planned.compared is not None:
        comparison, changes = planned.compared.comparison, planned.compared.changes
        update |= {"compared": comparison, "changes": listed(changes, source.payments, comparison)}
    return told.model_copy(update=update)


def _read(job: Job) -> Source:
    return read(job.file, mapping=job.mapping, encoding=job.encoding, sheet=job.sheet)


def _identity(source: Source, chosen: Chosen) -> RunIdentity:
    return RunIdentity(source.sha256, chosen.fingerprint, chosen.environment.value, VERSION)


def _wanted(job: Job, chosen: Chosen) -> Wanted:
    return Wanted(job.compare_with, None if job.compare_with else chosen.newest_of)


def _planned(job: Job, source: Source, chosen: Chosen, profile: Profile, *, begun: str) -> Planned:
    modulus = modulus_of(chosen, today=_now().date())
    routed = routes(profile)._replace(modulus=modulus)
    accepted, rejects, warnings = validate(source.payments, routed, source.places)
    subject = Subject(job.out, source.sha256, chosen.environment, begun)
    rows = (source.payments, source.original)
    found = compared(_wanted(job, chosen), subject, accepted, rows, now=timestamp(_now()))
    if found is not None:
        warnings = pl.concat([warnings_of(found.changes), warnings])
    return Planned(
        source,
        chosen,
        profile,
        rejects,
        warnings,
        route_counts(accepted),
        why_refused(accepted, warnings, where=job.file.name, places=source.places),
        plan(accepted, job.order),
        found,
        None if modulus is None else used(modulus, accepted),
    )


def _header(job: Job, planned: Planned, started: datetime, decided: Decided) -> Header:
    source = planned.source
    return Header(
        tool_version=VERSION,
        profile=planned.chosen.name,
        environment=planned.chosen.environment,
        started=timestamp(started),
        finished=timestamp(_now()),
        input=InputFile(
            name=job.file.name,
            sha256=source.sha256,
            byte_count=source.byte_count,
            row_count=source.payments.height,
            format=source.format,
            encoding=source.encoding,
            sheet=job.sheet,
            columns=source.read_as,
            mapping=dict(job.mapping),
            decision=dict(source.decision),
            notes=list(source.notes),
            header_line=source.header_line,
            delimiter=source.delimiter,
            line_end=source.line_end,
            byte_order_mark=source.byte_order_mark,
            extra_column_count=source.extra_column_count,
            places=source.places,
            not_payments=source.not_payments,
            currency_sources=currency_sources(source.payments),
        ),
        routes=planned.routes,
        next_step=decided.next_step,
        given_up=decided.given_up,
        many_names_reason=job.many_names_reason,
        compared=None if planned.compared is None else planned.compared.comparison,
        modulus=planned.modulus,
    )


def _kept(job: Job, planned: Planned, outcomes: pl.DataFrame, ledger: Ledger) -> list[Path]:
    """What is kept for the next run to compare with, where this one compared."""
    if planned.compared is None:
        return []
    return keep(planned.compared, outcomes, ledger.payee_key, job.out)


def _write_summary(summary: Summary, folder: Path) -> Path:
    path = folder / "summary.json"
    with write_whole(path) as file:
        file.write(summary.model_dump_json(indent=2).encode() + b"\n")
    return path


def _now() -> datetime:
    return datetime.now(UTC)


def exit_code(summary: Summary, fail_on: Collection[str]) -> int:
    """The exit status that a summary stands for.

    A row that is not decided yet may still become what `fail_on` names, so an incomplete run says
    so first; unless it was asked to fail on just that.

    Args:
        summary: of the run.
        fail_on: outcomes, codes of warnings, or `ANY_WARNING`.
    """
    there = {total.outcome.value for total in summary.outcomes if total.row_count}
    there |= {count.code.value for count in summary.warning_codes}
    there |= {TOTALS_DIFFER} if summary.input.differences else set()
    there |= {ANY_WARNING} if summary.warning_codes or summary.input.differences else set()
    found = there.intersection(fail_on)
    if found & set(UNDECIDED):
        return FAILED_ON
    if not summary.complete:
        return ProtocolError.exit_code if summary.given_up else IncompleteError.exit_code
    return FAILED_ON if found else 0


def quota_usage() -> list[QuotaUse]:
    """How much of each daily cap of this user is used."""
    return usage(quota_path(), _now())
