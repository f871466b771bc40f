"""What a run leaves behind, whether it finished or ended early: its summary, its reports, its evidence."""

from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.config import Profile
from pipeline.config.profiles import Chosen
from pipeline.executors.results import AskedFile
from pipeline.files.atomic import write_atomically
from pipeline.formats.message import set_aside, stated_controls
from pipeline.frames import Bases, Outcomes, Reasons, Warnings
from pipeline.jobs.comparing import keep
from pipeline.jobs.prepare import VERSION, PreparedFile, country_of
from pipeline.reports.changes import changes_of
from pipeline.reports.documents import Rows, bank_report, reports
from pipeline.reports.reasons import said_reasons
from pipeline.rules.currencies import currency_sources
from pipeline.runs.families import made_of
from pipeline.runs.folder import write_summary
from pipeline.runs.manifest import LedgerSummary, keep_changed_workbook, write_manifest
from pipeline.runs.profile_used import RunSettings
from pipeline.runs.request import CheckJob, Notice, Surface
from pipeline.runs.signing import sign
from pipeline.runs.starting import remove_stale
from pipeline.stages.read import PaymentSource
from pipeline.stages.summarise import SummaryHeader, summarise
from pipeline.stages.write import WrittenOutcomes
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.wording import Sentence, speaking
from schemas.changes import Change
from schemas.folder import REASONS
from schemas.manifest import Manifest
from schemas.strict import timestamp
from schemas.summary import InputFile, Summary


class OpenRun(NamedTuple):
    """One run: its arguments, its findings, and its ledger."""

    job: CheckJob
    source: PaymentSource
    chosen: Chosen
    prepared: PreparedFile
    profile: Profile
    """The chosen one, with its servers running."""
    ledger: SqliteLedger
    before: Manifest | None
    """The manifest that was there as it began."""
    started: datetime
    language: str
    """Of the page and the workbook."""


class DecidedRun(NamedTuple):
    """The outcome of every payment, and the result of the asking."""

    outcomes: Outcomes
    reasons: Reasons
    warnings: Warnings
    bases: Bases
    asked: AskedFile

    @property
    def given_up(self) -> bool:
        """Whether questions are left, and no later run would ask any of them."""
        return 0 < self.asked.given_up_count == self.asked.undecided.height


def leave(
    run: OpenRun, decided: DecidedRun, written: WrittenOutcomes, surface: Surface
) -> tuple[Summary, list[Change]]:
    """Write all results of a run beside its outcome file; the manifest comes last.

    The summary, and what changed since earlier runs, as far as a person looks at it.

    Raises:
        OutputError: a file cannot be created.
        DiskError: the disk is full or failed.
    """
    job, source, compared, clock = run.job, run.source, run.prepared.compared, surface.clock
    header = _header(run, decided, finished=timestamp(clock()))
    summary = summarise(
        header, source.payments, decided.outcomes, decided.warnings, decided.asked.calls(decided.bases)
    )
    if (kept := keep_changed_workbook(job.out)) is not None:
        changed = Sentence("jobs.notice_workbook_kept")
        surface.notify(Notice(changed, {"kept_as": str(job.out / kept)}, is_vital=True))
    changes = None if compared is None else compared.changes
    rows = Rows(source.payments, decided.outcomes, source.original, changes, said_reasons(decided.reasons))
    with speaking(run.language):
        documents = reports(job.out, summary, rows, outcome_name=written.path.name, policy=run.chosen.policy)
    files = [written.path, write_summary(job.out, summary), _keep(decided.reasons, job.out), *documents]
    if compared is not None:  # the next run compares with it
        files += keep(compared, decided.outcomes, run.ledger.payee_key, job.out)
    if job.pain002 and source.message is not None:
        files.append(bank_report(job.out, summary, source.message, decided.outcomes, now=clock()))
    remove_stale(job.out, files)
    recorded = _record(run, decided, written, timestamp(clock()))
    settings = RunSettings(run.chosen.name, run.profile, run.chosen.fingerprint, job.mapping, run.language)
    signer = run.chosen.signer
    signs = signer is not None
    made = write_manifest(job.out, summary, settings, recorded, files, before=run.before, signs=signs)
    sign(job.out, signer, made)
    return summary, changes_of(summary, source.payments, changes)


def _keep(reasons: Reasons, folder: Path) -> Path:
    """Write what stands behind the reasons of the outcome file."""
    path = folder / REASONS
    with write_atomically(path) as file:
        reasons.write_ndjson(file)
    return path


def _record(run: OpenRun, decided: DecidedRun, written: WrittenOutcomes, now: str) -> LedgerSummary:
    """Record the end of a run in its ledger."""
    finish = run.ledger.finish(
        now,
        question_count=decided.bases.height,
        unanswered_count=decided.asked.undecided.height,
        outcome_sha256=written.sha256,
    )
    ledger = run.ledger
    count = ledger.finish_count
    return LedgerSummary(finish, ledger.counts, ledger.created_at, count, ledger.digests(count))


def _header(run: OpenRun, decided: DecidedRun, *, finished: str) -> SummaryHeader:
    job, source, prepared = run.job, run.source, run.prepared
    return SummaryHeader(
        tool_version=VERSION,
        profile=run.chosen.name,
        environment=run.chosen.environment,
        started=timestamp(run.started),
        finished=finished,
        input=InputFile(
            name=job.file.name,
            sha256=source.sha256,
            byte_count=source.byte_count,
            row_count=source.payments.height,
            made_of=made_of(job.file, source.sha256, job.out),
            format=source.format,
            format_said=job.input_format is not None,
            layout=None
            if source.layout is None
            else source.layout.model_dump(mode="json", exclude_defaults=True),
            **_of_packing(source),
            sheet=job.sheet,
            country=country_of(job, run.chosen),
            columns=source.read_as,
            mapping=dict(job.mapping),
            decision=dict(source.decision),
            notes=[note.recorded() for note in (*source.notes, *prepared.notes)],
            **source.dialect._asdict(),
            extra_column_count=source.extra_column_count,
            places=source.positions,
            not_payments=source.not_payments,
            currency_sources=currency_sources(source.payments),
            **_of_message(source),
        ),
        routes=prepared.routes,
        next_step=str(decided.asked.next_step(decided.bases)),
        given_up=decided.given_up,
        many_names_reason=job.many_names_reason,
        compared=None if prepared.compared is None else prepared.compared.comparison,
        modulus=prepared.modulus,
        message=source.message,
    )


def _of_packing(source: PaymentSource) -> dict[str, Any]:
    packing = source.packing
    return {} if packing is None else packing._asdict()


def _of_message(source: PaymentSource) -> dict[str, Any]:
    """What a format of messages says of its file beside its payments."""
    message = source.message
    if message is None:
        return {}
    return {
        "facts": dict(message.facts),
        "controls": stated_controls(message),
        "control_count": message.controls.height,
        "set_aside": set_aside(message),
    }
