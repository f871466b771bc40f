"""The steps of a check before anything is sent: read, validate, compare, plan."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import polars as pl

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.inputs import ReadAs
from pipeline.config.profiles import Chosen, choose, format_choice_of, modulus_of
from pipeline.connections import routes
from pipeline.errors import InputError, PrecheckError, UsageError
from pipeline.formats.pain001.bank_rules import bank_warnings
from pipeline.formats.registry import FormatChoice
from pipeline.frames import Assignments, Changes, Checks, Findings, Payments, Warnings
from pipeline.jobs.comparing import ComparedRun, ComparisonRequest, CurrentRun, compare_with_earlier, rows_of
from pipeline.rules.currencies import currency_sources
from pipeline.rules.enumeration import many_names, why_refused
from pipeline.rules.modulus import used
from pipeline.runs.folder import read_summary
from pipeline.runs.request import CheckJob, Notice, Surface
from pipeline.stages.compare import warnings_of
from pipeline.stages.plan import plan
from pipeline.stages.read import PaymentSource, read
from pipeline.stages.summarise import route_counts
from pipeline.stages.validate import validate
from pipeline.stores.values import RunIdentity
from pipeline.wording import Sentence
from schemas.cop import AccountType
from schemas.outcomes import WarningCode
from schemas.row_positions import RowPositions, in_brackets
from schemas.summary import ROWS_NAMED_MAX, BankWarning, ModulusUsed, RouteCount

VERSION = version("payee-precheck")
READ_AHEAD_BYTES_MAX = 8 * 1024**2  # the largest file that may be read while another is in memory


class RunTime(NamedTuple):
    """When this run, and the first run in its folder, began."""

    now: datetime
    begun: str  # UTC, ISO 8601 with Z


class PreparedFile(NamedTuple):
    """A validated and planned file. Its questions are separate, so that they can be dropped once asked."""

    findings: Findings
    assignments: Assignments
    routes: list[RouteCount]
    refusal: Sentence | None  # why the file is refused, unless a user allows it
    compared: ComparedRun | None  # the comparison with earlier runs; None if none was requested
    modulus: ModulusUsed | None  # the modulus tables that were used on UK accounts
    notes: tuple[Sentence, ...] = ()  # assumptions made about the payments
    bank_warnings: Sequence[BankWarning] = ()

    def facts(self, source: PaymentSource) -> dict[str, Any]:
        """Return the fields that `InputFile` and `Forecast` share."""
        return {
            "not_payments": source.not_payments,
            "notes": [note.recorded() for note in (*source.notes, *self.notes)],
            "currency_sources": currency_sources(source.payments),
            "bank_warnings": list(self.bank_warnings),
        }


class PlannedInput(NamedTuple):
    """What a forecast states about an input that is validated and planned."""

    questions: Iterable[tuple[pl.DataFrame, pl.DataFrame]]  # `Checks` and `Assignments`, in pieces
    findings: tuple[pl.DataFrame, pl.DataFrame]  # `Rejects` and `Warnings`
    positions: RowPositions | None
    compared: ComparedRun | None
    changed: Callable[[Changes], pl.DataFrame]  # adds the payments' amounts to the gravest changes
    found: dict[str, Any]  # other fields of `Forecast`
    payments: Payments | None = None  # None if they are not in memory


def assumed_types(count: int, default: AccountType) -> tuple[Sentence, ...]:
    """Return a note on payments whose account type was assumed, if there are any."""
    return (Sentence("jobs.assumed_account_type", count=count, default=default),) if count else ()


def rules_day(chosen: Chosen, today: date) -> date | None:
    """Return the day for which the rules of banks apply; None if the profile turns them off."""
    return None if chosen.settings.bank_rules == "off" else today


def as_configured(job: CheckJob, file: ConfigurationFile) -> CheckJob:
    """Return the job, with the configured reading options for files of this name added."""
    read_as = ReadAs(job.mapping, job.encoding, job.sheet, job.input_format, job.country)
    return replace(job, **read_as.completed(job.file.name, file.inputs)._asdict())


def read_file(job: CheckJob, file: ConfigurationFile) -> PaymentSource:
    """Read the payments of a job, with the options of the job and its profile."""
    format_choice = format_choice_of(job.input_format, file)
    try:
        return read(
            job.file,
            mapping=job.mapping,
            encoding=job.encoding,
            sheet=job.sheet,
            format_choice=format_choice,
            country=job.country or _default_country(job, file),
        )
    except InputError as error:
        if (lost := _lost_layout(job, format_choice)) is None:
            raise
        raise InputError(
            Sentence("jobs.layout_no_longer_configured", reason=error.reason, out=job.out, lost=lost),
            advice=(Sentence("jobs.restore_layout"), Sentence("advice.name_configuration_with_layout")),
        ) from error


def read_ahead(job: CheckJob) -> PaymentSource | None:
    """Read a file before its turn; None if it is large or unreadable, which its own turn will report."""
    with suppress(Exception):
        if job.file.is_file() and job.file.stat().st_size <= READ_AHEAD_BYTES_MAX:
            file, _ = ConfigurationFile.of(job.config).for_profile(job.profile)
            return read_file(as_configured(job, file), file)
    return None


def country_of(job: CheckJob, chosen: Chosen) -> str | None:
    """Return the country of accounts that are not IBANs, from the job or its profile."""
    return job.country or chosen.settings.default_country


def _default_country(job: CheckJob, file: ConfigurationFile) -> str | None:
    """Return the profile's country; an invalid profile is reported only after the file is read."""
    with suppress(PrecheckError):
        return choose(job.profile, file).settings.default_country
    return None


def _lost_layout(job: CheckJob, format_choice: FormatChoice) -> str | None:
    """Name the layout that an earlier run in this folder used for its file, if it is not configured now."""
    try:
        before = read_summary(job.out).input
    except (InputError, UsageError):
        return None
    is_lost = before.layout is not None and before.format not in format_choice.layouts
    return before.format if is_lost and before.name == job.file.name else None


def identity_of(input_sha256: str, chosen: Chosen) -> RunIdentity:
    """Return the identity of a run: its payments, and how they are asked about."""
    return RunIdentity(input_sha256, chosen.fingerprint, chosen.environment.value, VERSION)


def wanted(job: CheckJob, chosen: Chosen) -> ComparisonRequest:
    """Return the earlier runs to compare with, as the job or its profile requests."""
    newest_of = None if job.compare_with else chosen.settings.compare_with
    return ComparisonRequest(job.compare_with, newest_of, chosen.signer)


def notify_of_wasted_calls(warnings: pl.DataFrame, positions: RowPositions | None, surface: Surface) -> None:
    """Notify the user of names in a script that banks hardly ever match."""
    foreign = warnings.filter(pl.col("code") == WarningCode.NAME_NOT_LATIN)["row"]
    if foreign.len():
        first = foreign.head(ROWS_NAMED_MAX).to_list()
        rows = ", ".join(map(str, first)) + in_brackets(first, positions)
        facts: dict[str, str | int] = {"row_count": foreign.len(), "rows": rows}
        surface.notify(Notice(Sentence("jobs.notice_names_not_latin"), facts))


def prepare(
    job: CheckJob, source: PaymentSource, chosen: Chosen, profile: Profile, time: RunTime
) -> tuple[PreparedFile, Checks]:
    """Validate the payments, compare them with earlier runs, and find the distinct questions."""
    modulus = modulus_of(chosen, today=time.now.date())
    valid = validate(source.payments, routes(profile)._replace(modulus=modulus), source.positions)
    subject = CurrentRun(job.out, source.sha256, chosen.environment, time.begun)
    found = compare_with_earlier(
        wanted(job, chosen), subject, partial(rows_of, valid.accepted, source.original), now=time.now
    )
    warnings = Warnings(pl.concat([source.warnings, valid.warnings]))
    if found is not None:
        warnings = Warnings(pl.concat([warnings_of(found.changes), warnings]))
    questions = plan(valid.accepted, job.order)
    prepared = PreparedFile(
        Findings(valid.rejects, warnings),
        questions.assignments,
        route_counts(valid.accepted),
        why_refused(many_names(valid.accepted, warnings), where=job.file.name, positions=source.positions),
        found,
        None if modulus is None else used(modulus, valid.accepted),
        assumed_types(valid.assumed_type_count, profile.default_account_type),
        [*bank_warnings(source.message, rules_day(chosen, time.now.date()))],
    )
    return prepared, questions.checks
