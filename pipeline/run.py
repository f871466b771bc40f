"""The whole job, in order: read, validate, plan, ask, resolve, write, report. Read this page first.

    file -read-> Payments -validate-> Accepted -plan-> Checks -ask-> Answers -resolve-> Outcomes -write-> file
                              `--------> Rejects ---------------------------'              `-report-> Summary

This module opens and closes what must be opened and closed, and touches the real clock and real
chance. What happens in between is in the stages.
"""

import gc
import random
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Literal, NamedTuple, Protocol
from uuid import uuid4

import anyio
import polars as pl
import structlog

from pipeline.apis.enumeration import unknown_in_sequence, why_refused
from pipeline.channels import api_of, open_channels, quota_path, routes, scope_for
from pipeline.earlier import Permitted, refuse_own_folder, spared, use_again
from pipeline.errors import IncompleteError, InputError, OutputError, StoppedError, UsageError, first_of
from pipeline.formats import NAMES, format_named
from pipeline.formats.whole import refuse_what_is_no_file, write_whole
from pipeline.frames import ANSWERS, AnswerState, OwnCode
from pipeline.ledger import Ledger, RunIdentity
from pipeline.manifest import Recorded, Settings, keep_changed_workbook, read_manifest, write_manifest
from pipeline.profiles import Chosen, choose, ledger_key, opened
from pipeline.quota import QuotaUse, usage
from pipeline.reports.documents import REPORT_NAMES, Rows, reports
from pipeline.settings import Profile
from pipeline.stages.ask import Tally, World, ask
from pipeline.stages.plan import Plan, plan
from pipeline.stages.read import Source, read
from pipeline.stages.report import UNDECIDED, Header, Limits, forecast, report, route_counts
from pipeline.stages.resolve import resolve
from pipeline.stages.validate import validate
from pipeline.stages.write import write
from schemas.folder import files_of_review
from schemas.manifest import NAME as MANIFEST_NAME
from schemas.outcomes import ApiName
from schemas.strict import parse
from schemas.summary import ApiCalls, Forecast, InputFile, RouteCount, Summary
from schemas.wire import timestamp

log: structlog.stdlib.BoundLogger = structlog.get_logger()

VERSION = version("payee-precheck")
PROGRESS_INTERVAL_S = 0.2
FAILED_ON = 1
"""The exit status where a row has an outcome or a warning that the caller wanted to hear of."""
ANY_WARNING = "warning"
"""Stands in `--fail-on` for every code of a warning."""
_HAS_UVLOOP = find_spec("uvloop") is not None


@dataclass(frozen=True, slots=True)
class Job:
    """One payment file, and how it is to be checked."""

    file: Path
    out: Path
    profile: str | None = None
    """None: the embedded sandbox."""
    config: Path | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Canonical field -> header, where the headers do not say it themselves."""
    encoding: str | None = None
    sheet: str | None = None
    """Of a workbook; None: the only one that has data."""
    format: str | None = None
    """Of the outcome file; None: that of the input, or CSV where it is one that is only read."""
    order: Literal["file", "amount"] = "file"
    limit: int | None = None
    fresh: bool = False
    """Forget the answers of earlier runs in the same folder."""
    many_names_reason: str | None = None
    """Why one account may be asked about by many names; None: it may not."""
    reusable: Permitted = field(default_factory=Permitted)
    """Whose matches are used again instead of asking."""


class Result(NamedTuple):
    """What a run leaves behind."""

    summary: Summary
    already_finished: bool
    """True where an earlier run had finished the job, so that nothing was left to do."""


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


class Watch(Protocol):
    """Somebody who wants to see how far a run is."""

    def update(self, done_count: int, check_count: int) -> None:
        """Called a few times a second while questions are asked."""


def run(job: Job, watch: Watch) -> Result:
    """Check one payment file.

    Raises:
        PrecheckError: the run ended before its outcome file was written; the exit code says why.
            Answers that came before are kept, and are not asked for again.
    """
    started = _now()
    source = _read(job)
    chosen = choose(job.profile, job.config)
    identity = _identity(source, chosen)
    refuse_own_folder(job.reusable.folders, job.out)
    _refuse_what_is_not_ours(job.out, fresh=job.fresh)
    path = job.out / "ledger.db"
    with ExitStack() as stack:
        # A file that is refused before anything is asked leaves no folder behind, and no answer forgotten.
        is_new = job.fresh or not path.exists()
        planned = _prepared(job, source, chosen, stack) if is_new else None
        ledger = stack.enter_context(
            Ledger.open(path, identity, now=timestamp(started), fresh=job.fresh, secret=ledger_key(chosen))
        )
        if planned is None:
            if (summary := _finished_before(job, source, ledger)) is not None:
                return Result(summary, already_finished=True)
            planned = _prepared(job, source, chosen, stack)
        return Result(_checked(job, planned, ledger, watch, started), already_finished=False)


def _prepared(job: Job, source: Source, chosen: Chosen, stack: ExitStack) -> Planned:
    """The plan, of a file that may be asked about, with its server there until the stack is closed."""
    planned = _planned(job, source, chosen, stack.enter_context(opened(chosen)))
    if planned.refusal is not None and job.many_names_reason is None:
        raise InputError(planned.refusal)
    return planned


def _checked(job: Job, planned: Planned, ledger: Ledger, watch: Watch, started: datetime) -> Summary:
    """Ask what is left to ask, and write everything that a run leaves behind."""
    source, chosen = planned.source, planned.chosen
    if job.many_names_reason is not None:
        ledger.allow(job.many_names_reason, time=timestamp(_now()))
    decided = _decided(job, planned, ledger, watch)
    outcomes, format_name = decided.outcomes, job.format or source.outcome_format
    written = write(source.original, outcomes, job.out, format_name=format_name, delimiter=source.delimiter)
    header = _header(job, planned, started, decided.next_step)
    summary = report(header, source.payments, outcomes, decided.warnings, decided.calls)
    if (kept := keep_changed_workbook(job.out)) is not None:
        log.warning("the workbook had been changed since it was written", kept_as=str(job.out / kept))
    rows = Rows(source.payments, outcomes, source.original)
    report_files = reports(job.out, summary, rows, outcome_name=written.path.name)
    summary_file = _write_summary(summary, job.out)
    _remove_stale(job.out, format_name)
    finish = ledger.finish(
        timestamp(_now()),
        question_count=planned.plan.checks.height,
        unanswered_count=decided.undecided_count,
        outcome_sha256=written.sha256,
    )
    settings = Settings(chosen.name, planned.profile, chosen.fingerprint, job.mapping)
    recorded = Recorded(finish, ledger.counts, ledger.created_at)
    write_manifest(job.out, summary, settings, recorded, [written.path, summary_file, *report_files])
    return summary


class Decided(NamedTuple):
    """What became of every payment, and what is told of the asking."""

    outcomes: pl.DataFrame
    warnings: pl.DataFrame
    calls: list[ApiCalls]
    next_step: str
    undecided_count: int
    """Questions that a later run may ask."""


def _decided(job: Job, planned: Planned, ledger: Ledger, watch: Watch) -> Decided:
    """Ask, and decide every payment by the answers, which are not needed after that."""
    profile, (checks, assignments) = planned.profile, planned.plan
    apis = {server.name: api_of(server) for server in profile.servers}
    use_again(job.reusable, checks, ledger, apis, now=_now())
    world = World(_now, time.monotonic, random.random, lambda: str(uuid4()), anyio.Event(), Tally())
    with _garbage_rarely_collected():
        asked = anyio.run(
            _ask, job, planned, ledger, world, watch, backend_options={"use_uvloop": _HAS_UVLOOP}
        )
    warnings = pl.concat([planned.warnings, unknown_in_sequence(checks, assignments, asked.answers)])
    outcomes = resolve(
        (planned.rejects, warnings), planned.plan, asked.answers, apis.values(), profile.environment
    )
    return Decided(
        outcomes,
        warnings,
        _calls(checks, world.tally),
        _next_step(checks, asked),
        _undecided(asked.answers).height,
    )


def forecast_file(job: Job) -> Forecast:
    """Read, validate and plan one payment file, and say what checking it would take; send nothing."""
    source = _read(job)
    chosen = choose(job.profile, job.config)
    with opened(chosen) as profile:
        planned = _planned(job, source, chosen, profile)
    checks, assignments = planned.plan
    apis = {server.name: api_of(server) for server in profile.servers}
    unasked = spared(job.reusable, checks, (job.out, _identity(source, chosen)), apis, now=_now())
    used = {use.scope: use.cap if use.closed else use.used_count for use in quota_usage()}
    limits = {
        server.name: Limits(server.rate_per_s, server.cap, used.get(scope_for(server), 0))
        for server in profile.servers
    }
    findings = (planned.rejects, planned.warnings)
    told = forecast(job.file.name, profile.environment, findings, (checks, assignments, unasked), limits)
    return told.model_copy(update={"refusal": planned.refusal})


def _read(job: Job) -> Source:
    return read(job.file, mapping=job.mapping, encoding=job.encoding, sheet=job.sheet)


def _identity(source: Source, chosen: Chosen) -> RunIdentity:
    return RunIdentity(source.sha256, chosen.fingerprint, chosen.environment.value, VERSION)


def _planned(job: Job, source: Source, chosen: Chosen, profile: Profile) -> Planned:
    accepted, rejects, warnings = validate(source.payments, routes(profile))
    return Planned(
        source,
        chosen,
        profile,
        rejects,
        warnings,
        route_counts(accepted),
        why_refused(accepted, warnings, where=job.file.name),
        plan(accepted, job.order),
    )


class Asked(NamedTuple):
    """The answers, and the daily caps that may have stopped some of them."""

    answers: pl.DataFrame
    caps: dict[ApiName, tuple[int, datetime]]
    """API -> its cap, and when it begins anew."""


@contextmanager
def _garbage_rarely_collected() -> Iterator[None]:
    """Spare the checks what finds nothing: thousands of requests in flight are no garbage (docs/adr/0012)."""
    before = gc.get_threshold()
    gc.freeze()  # what is here stays, and is not walked again
    gc.set_threshold(200_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def _ask(job: Job, planned: Planned, ledger: Ledger, world: World, watch: Watch) -> Asked:
    """Ask what is left to ask, while watching for signals and showing the progress."""
    checks = planned.plan.checks
    needed = {ApiName(api) for api in checks["api"].unique()}
    stopper = _Stopper(world)
    answers = pl.DataFrame(schema=ANSWERS)
    caps: dict[ApiName, tuple[int, datetime]] = {}
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(stopper.listen, group.cancel_scope)
            group.start_soon(_show, world.tally, watch)
            channels_open = open_channels(
                planned.profile, needed, now=_now, shared=planned.chosen.config is not None
            )
            async with channels_open as channels:
                answers = await ask(checks, channels, ledger, world, limit=job.limit)
                for server in planned.profile.servers:
                    channel = channels.get(server.name)
                    if channel is not None and channel.quota is not None and server.cap is not None:
                        caps[server.name] = (server.cap, channel.quota.resets_at())
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    if stopper.received is not None:
        raise StoppedError(
            f"{job.file.name}: stopped by {stopper.received.name}; what was answered is kept: "
            "run the same command again to go on",
            stopper.received,
        )
    return Asked(answers, caps)


class _Stopper:
    """Turns the first signal into a wish to stop, and the second into an immediate end."""

    def __init__(self, world: World) -> None:
        self.received: signal.Signals | None = None
        self._stop = world.stop
        self._tally = world.tally

    async def listen(self, scope: anyio.CancelScope) -> None:
        on_term = signal.getsignal(signal.SIGTERM)
        try:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for number in signals:
                    if self.received is not None or self._tally.check_count == 0:
                        scope.cancel()  # the second signal, or nothing is asked yet
                    self.received = self.received or number
                    if self._tally.in_flight_count and not self._stop.is_set():
                        log.warning("stopping", requests_in_flight=self._tally.in_flight_count)
                    self._stop.set()
        finally:
            # The receiver leaves the system's default behind, which ends a process without a word.
            signal.signal(signal.SIGTERM, on_term)


async def _show(tally: Tally, watch: Watch) -> None:
    while True:
        # Answers that were there before cost nothing, and tell no speed.
        before_count = sum(tally.answered_before.values()) + sum(tally.reused.values())
        watch.update(tally.done_count - before_count, tally.check_count - before_count)
        await anyio.sleep(PROGRESS_INTERVAL_S)


def _finished_before(job: Job, source: Source, ledger: Ledger) -> Summary | None:
    """The summary of an earlier run that left nothing to do, if its files are still there."""
    outcome_file = job.out / f"outcomes{format_named(job.format or source.outcome_format).SUFFIX}"
    finish = ledger.last_finish
    if finish is None or ledger.finished_at is None:
        return None
    try:
        summary = parse(Summary, (job.out / "summary.json").read_bytes())
        if sha256(outcome_file.read_bytes()).hexdigest() != finish.outcome_sha256:
            return None
        if read_manifest(job.out).outcome_file.sha256 != finish.outcome_sha256:
            return None
    except (OSError, ValueError, UsageError, InputError):
        return None
    told = summary.input
    read_before = (told.columns, told.encoding, told.delimiter, told.sheet)
    if read_before != (_read_as(source), source.encoding, source.delimiter, job.sheet):
        return None  # --map, --encoding or --sheet was another one, and so were the questions
    nothing = {"request_count": 0, "repeat_count": 0}
    calls = [
        call.model_copy(update={"answered_before_count": call.question_count - call.reused_count, **nothing})
        for call in summary.calls
    ]
    return summary.model_copy(update={"calls": calls})


def _outcome_files(folder: Path) -> dict[str, Path]:
    return {name: folder / f"outcomes{format_named(name).SUFFIX}" for name in NAMES}


def _refuse_what_is_not_ours(folder: Path, *, fresh: bool) -> None:
    """Before anything is sent, see to it that what will be written replaces nobody else's file.

    Raises:
        OutputError: a name of ours is a link or a folder, or a file in a folder without a ledger.
    """
    others = (folder / name for name in ("summary.json", MANIFEST_NAME, *REPORT_NAMES))
    for path in (*_outcome_files(folder).values(), *others):
        refuse_what_is_no_file(path)
        if path.exists() and not fresh and not (folder / "ledger.db").exists():
            raise OutputError(
                f"{path}: exists, and there is no run of this tool in its folder; choose another --out, "
                "or replace it with --fresh"
            )


def _remove_stale(folder: Path, format_name: str) -> None:
    """An outcome file of an earlier run in the other format would tell an older story."""
    for name, path in _outcome_files(folder).items():
        if name != format_name:
            path.unlink(missing_ok=True)
    # So would what `precheck fix` and `precheck split` made of earlier answers.
    for path in files_of_review(folder):
        path.unlink(missing_ok=True)


def _header(job: Job, planned: Planned, started: datetime, next_step: str) -> Header:
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
            columns=_read_as(source),
            mapping=dict(job.mapping),
            delimiter=source.delimiter,
            line_end=source.line_end,
            byte_order_mark=source.byte_order_mark,
            extra_column_count=source.extra_column_count,
        ),
        routes=planned.routes,
        next_step=next_step,
        many_names_reason=job.many_names_reason,
    )


def _read_as(source: Source) -> dict[str, str]:
    return {reading.header: reading.field for reading in source.columns if reading.field is not None}


def _undecided(answers: pl.DataFrame) -> pl.DataFrame:
    return answers.filter(pl.col("state").is_in([AnswerState.UNANSWERED, AnswerState.DEFERRED]))


def _next_step(checks: pl.DataFrame, asked: Asked) -> str:
    """How to go on with the questions that are left, and when."""
    left = _undecided(asked.answers)
    capped = left.filter(pl.col("code") == OwnCode.DAILY_CAP).join(checks, on="check")
    if capped.is_empty():
        return f"Questions left: {left.height:,}. Run the same command again."
    # Where two APIs have a cap, the one that needs more days decides.
    days, cap, resets_at = max(
        (ceil(count / asked.caps[ApiName(api)][0]), *asked.caps[ApiName(api)])
        for api, count in capped.group_by("api").len().iter_rows()
    )
    return (
        f"Questions left: {left.height:,}; the daily cap of {cap:,} is used up. Run the same command again "
        f"after {resets_at:%Y-%m-%d %H:%M} UTC (days needed at this cap: {days:,})."
    )


def _calls(checks: pl.DataFrame, tally: Tally) -> list[ApiCalls]:
    counts = checks.group_by("api", maintain_order=True).len()
    return [
        ApiCalls(
            api=ApiName(api),
            question_count=question_count,
            answered_before_count=tally.answered_before[ApiName(api)],
            reused_count=tally.reused[ApiName(api)],
            request_count=tally.requests[ApiName(api)],
            repeat_count=tally.repeats[ApiName(api)],
        )
        for api, question_count in counts.iter_rows()
    ]


def _write_summary(summary: Summary, folder: Path) -> Path:
    path = folder / "summary.json"
    with write_whole(path) as file:
        file.write(summary.model_dump_json(indent=2).encode() + b"\n")
    return path


def _now() -> datetime:
    return datetime.now(UTC)


def folders(files: Sequence[Path], out: Path | None) -> dict[Path, Path]:
    """Where the results of each file go.

    Raises:
        UsageError: two files would share a folder.
    """
    if len(files) == 1:
        return {files[0]: out or Path(f"{files[0].stem}.precheck")}
    chosen = {file: out / file.stem if out else Path(f"{file.stem}.precheck") for file in files}
    shared = {folder for folder in chosen.values() if list(chosen.values()).count(folder) > 1}
    if shared or len(chosen) < len(files):
        raise UsageError(
            f"{', '.join(str(folder) for folder in shared) or 'FILE'}: named twice; check one alone"
        )
    return chosen


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
    there |= {ANY_WARNING} if summary.warning_codes else set()
    found = there.intersection(fail_on)
    if found & set(UNDECIDED):
        return FAILED_ON
    if not summary.complete:
        return IncompleteError.exit_code
    return FAILED_ON if found else 0


def quota_usage() -> list[QuotaUse]:
    """How much of each daily cap of this user is used."""
    return usage(quota_path(), _now())
