"""Verify that the folder of a run is complete, consistent and unchanged. Sends nothing.

Questions are planned again from the manifest and the payment file or, without it, the outcome file.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import polars as pl
from pydantic import SecretStr

from pipeline.errors import DiskError, InputError, OutputError, UsageError
from pipeline.executors.from_report import ReceivedReport, kept_reports, outcomes_again
from pipeline.files.plain import real_path
from pipeline.files.signatures import PublicKey, is_signed
from pipeline.formats.message import Role
from pipeline.formats.registry import MessageEntry, entry_before
from pipeline.frames import DECISIONS, Decisions, Findings, Outcomes, Payments, Warned
from pipeline.jobs.bank_comparison import agrees
from pipeline.reports.wording import ROWS_NAMED_MAX
from pipeline.review.payment_files import in_one, payments_in, payments_writer
from pipeline.review.placements import split
from pipeline.rules.totals import added
from pipeline.runs.ended import EndedRun, FinishedRun, RunPart, ended_run, input_path
from pipeline.runs.evidence import (
    DIFFERS,
    DIGITS_SHOWN,
    Finding,
    LedgerAnswers,
    LedgerContents,
    answers_agree,
    cells_agree,
    file_agrees,
    ledger_agrees,
    outcomes_agree,
    rows_agree,
    summary_agrees,
)
from pipeline.runs.folder import approvals_of, made_anew, read_summary
from pipeline.runs.manifest import identity_of, looks_payable, purged, routes_of, unrecorded
from pipeline.runs.proof import is_outdated, is_signed_by, opened_to_read
from pipeline.stages.plan import Plan, plan
from pipeline.stages.read import PaymentSource
from pipeline.stages.validate import validate
from pipeline.stores.sqlite.reader import LedgerReader
from pipeline.wording import Moment, Sentence, SurfaceKind, words
from schemas.folder import APPROVALS, HOLD, MANIFEST, RELEASE, SIGNATURE
from schemas.manifest import Manifest, PaymentsEvidence, SplitMade, Verification, VerifiedItem
from schemas.outcomes import Environment, WarningCode
from schemas.review import PaymentFile, Shaped, Verdict
from schemas.strict import timestamp

_VERSION = version("payee-precheck")


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """The arguments of `precheck verify`: the folder, and what to compare it with."""

    folder: Path
    input_file: Path | None = None
    config: Path | None = None  # the configuration whose profile names the ledger's key; None: the usual one
    signed_by: Path | None = None  # the public key of the required signer; None if no signature is required
    asks_again: bool = True  # true to plan the questions again; otherwise answers are found only by their ids


def verify(job: VerifyJob, *, now: datetime) -> list[Finding]:
    """Check that the folder of a run is unchanged and consistent: one finding per check, even if some fail.

    Raises UsageError for an unfinished run or its own public key, ConfigurationError for an unusable key,
    InputError for an unreadable payment file, and LockedError for a folder in use.
    """
    folder, run = job.folder, ended_run(job.folder)
    manifest = run.manifest
    detail = Sentence("evidence.manifest_of", file=manifest.input.name, time=Moment(manifest.written))
    findings = [Finding(Sentence("evidence.manifest"), detail)]
    findings += _signature(job, manifest)
    adopted = Sentence("evidence.adopted")
    findings += [
        Finding(adopted, Sentence("evidence.adopted_at", time=Moment(each.time), reason=each.reason))
        for each in manifest.adoptions
    ]
    is_input = False
    if job.input_file is not None:
        findings.append(_as_checked(job.input_file, manifest))
        is_input = not findings[-1].exit_code
    looked_at = _LookedAt(job, run, is_input=is_input)
    files = (manifest.outcome_file, *manifest.files)
    findings += [file_agrees(folder / file.name, file, purged(manifest, file.name)) for file in files]
    findings += _splits(folder, manifest)
    findings += _tried("evidence.approvals", lambda: _approvals(folder, manifest))
    findings += _tried("evidence.summary", lambda: [summary_agrees(manifest, read_summary(folder))])
    if (deleted := run.forgotten(run.outcome_file.name)) is not None:
        detail = Sentence("evidence.not_counted", file=manifest.outcome_file.name, deleted=deleted)
        findings.append(Finding(Sentence("evidence.rows"), detail))
    else:
        findings += _tried("evidence.rows", lambda: rows_agree(manifest, looked_at.counted()))
        if is_input:
            findings += _tried("evidence.cells", lambda: _cells_agree(looked_at))
        findings += _tried("evidence.payments", lambda: _payments_agree(looked_at))
    findings += _tried("evidence.ledger", lambda: _ledger_agrees(looked_at, now))
    return [*findings, *_others(folder, manifest)]


def _others(folder: Path, manifest: Manifest) -> list[Finding]:
    others = sorted(unrecorded(folder, manifest))
    folders = [path for name in others if not (path := folder / name).is_symlink()]
    within = chain.from_iterable(path.rglob("*") for path in folders)
    paths = [*(folder / name for name in others), *sorted(within)]
    payable = [str(path.relative_to(folder)) for path in paths if _looks_payable(path, manifest)]
    what, found = Sentence("evidence.also_here"), []
    if harmless := [name for name in others if name not in payable]:
        detail = Sentence("evidence.not_in_evidence", files=[ascii(name)[1:-1] for name in harmless])
        found.append(Finding(what, detail))
    if payable:
        detail = Sentence("evidence.payable_not_in_evidence", files=[ascii(name)[1:-1] for name in payable])
        found.append(Finding(what, detail, DIFFERS))
    return found


def _looks_payable(path: Path, manifest: Manifest) -> bool:
    """True if users may mistake a file for checked payments; the checked file itself does not count."""
    if not (looks_payable(path.name) or path.name.casefold() == manifest.input.name.casefold()):
        return False
    if path.is_symlink():
        return True
    try:
        return identity_of(path)[0] != manifest.input.sha256
    except OSError:
        return True


def require_verified(job: VerifyJob, refusal: str, *, now: datetime) -> None:
    """Refuse a changed folder (InputError with the sentence `refusal`; PrecheckError: see `verify`)."""
    for finding in verify(job, now=now):
        if finding.exit_code:
            raise InputError(Sentence(refusal, folder=job.folder, what=finding.what, detail=finding.detail))


def _signature(job: VerifyJob, manifest: Manifest) -> list[Finding]:
    """Return the finding about the signature, which must be by the required signer."""
    folder, path, what = job.folder, job.signed_by, Sentence("evidence.signature")
    if path is None:
        there = Sentence("evidence.signature_unverified", signature=SIGNATURE)
        return [Finding(what, there)] if is_signed(folder) else []
    if real_path(path).is_relative_to(real_path(folder)):
        raise UsageError(
            Sentence("jobs.signer_key_inside_folder", path=path), advice=Sentence("jobs.get_key_from_signer")
        )
    key = PublicKey.read(path)
    if not is_signed(folder):
        return [Finding(what, Sentence("evidence.not_signed", signature=SIGNATURE), DIFFERS)]
    if not is_signed_by(key, folder, manifest):
        differs = Sentence("evidence.signed_by_another", path=path, manifest=MANIFEST)
        return [Finding(what, differs, DIFFERS)]
    if is_outdated(folder, manifest):
        return [Finding(what, Sentence("evidence.older_state"), DIFFERS)]
    detail = Sentence("evidence.signed_by", manifest=MANIFEST, path=path, fingerprint=key.fingerprint)
    return [Finding(what, detail)]


def verification(findings: Iterable[Finding]) -> Verification:
    """Return the findings as a document, in English and with the command's options."""
    found = [
        VerifiedItem(what=str(what), well=not exit_code, detail=words(detail, SurfaceKind.COMMAND))
        for what, detail, exit_code, _ in findings
    ]
    return Verification(well=all(each.well for each in found), findings=found)


def _as_checked(path: Path, manifest: Manifest) -> Finding:
    try:
        sha256, _ = identity_of(path)
    except OSError as error:
        raise InputError(Sentence("runs.file_unreadable", path=path, why=error)) from error
    what = Sentence("evidence.input")
    if sha256 != manifest.input.sha256:
        return Finding(what, Sentence("evidence.another_input", file=path.name), DIFFERS)
    return Finding(what, Sentence("evidence.same_input", file=path.name, digits=sha256[:DIGITS_SHOWN]))


class _LookedAt:
    """The folder that is being verified, part by part; caches what was read last."""

    def __init__(self, job: VerifyJob, run: EndedRun, *, is_input: bool) -> None:
        self.job, self.run, self.is_input = job, run, is_input
        self.parts = lru_cache(maxsize=1)(run.parts)
        self.source = lru_cache(maxsize=1)(partial(run.source, changed=True))
        self.rows = lru_cache(maxsize=1)(lambda part: run.rows_of(self.source(part), part))
        self.original = lru_cache(maxsize=1)(self._original)

    def counted(self) -> Iterator[tuple[Payments, Outcomes]]:
        return (self.rows(part)[:2] for part in self.parts())

    def _original(self, part: RunPart) -> PaymentSource:
        """See `EndedRun.original`."""
        assert self.job.input_file is not None
        return self.run.original(part, self.job.input_file)

    def original_table(self, part: RunPart) -> pl.DataFrame:
        """Return the columns of the original; a data set may be one file that was divided."""
        table = self.original(part).original
        return table if table.height == part.row_count else table.slice(part.first_row - 1, part.row_count)


def _cells_agree(looked_at: _LookedAt) -> list[Finding]:
    manifest, parts = looked_at.run.manifest, looked_at.parts()
    tables = (
        (part.name, part.first_row, looked_at.original_table(part), looked_at.rows(part).original)
        for part in parts
    )
    found = [cells_agree(manifest.input, tables)]
    source, recorded, name = looked_at.original(parts[0]), manifest.input.decision, manifest.input.name
    if len(parts) == 1 and dict(source.decision) != recorded:
        fields = sorted({field for field, _ in recorded.items() ^ source.decision.items()})
        detail = Sentence("evidence.other_columns", file=name, fields=fields)
        differs = Finding(Sentence("evidence.columns"), detail, DIFFERS)
        found.append(_by_another_version(differs, manifest))
    return found


def _ledger_agrees(looked_at: _LookedAt, now: datetime) -> list[Finding]:
    job, run, rows = looked_at.job, looked_at.run, looked_at.rows
    manifest = run.manifest

    def planned(part: RunPart) -> tuple[Plan, Outcomes]:
        """Plan the questions of a part, from the payment file if it exists."""
        is_whole = looked_at.is_input and len(looked_at.parts()) == 1
        payments = looked_at.original(part).payments if is_whole else rows(part).payments
        valid = validate(payments, routes_of(manifest.profile), manifest.input.positions)
        return plan(valid.accepted), rows(part).outcomes

    with opened_to_read(run.folder, now=timestamp(now), proves=False) as record:
        found = record.digests(manifest.ledger.finish_count)
        kept = LedgerContents(record.run, record.counts, record.last_finish, record.answers(), found)
        if run.forgotten(run.outcome_file.name) is not None:
            return ledger_agrees(manifest, kept, None)
        if not job.asks_again:
            return ledger_agrees(manifest, kept, (outcomes for _, outcomes in looked_at.counted()))
        reported = _reports_agree(looked_at) if manifest.bank_reports else []
        if manifest.environment is Environment.BANK:
            return [*ledger_agrees(manifest, kept, None), *reported]
        known = _known(record, run.key_of_names(record, job.config))
        agree = answers_agree(manifest, map(planned, looked_at.parts()), known)
        agree = [_by_another_version(each, manifest) for each in agree]
        return [*ledger_agrees(manifest, kept, None), *agree, *reported]


def _known(record: LedgerReader, secret: SecretStr | None) -> LedgerAnswers:
    has_names = secret is not None or not record.is_encrypted
    answers_to = partial(record.answers_to, secret=secret, with_names=has_names)
    return LedgerAnswers(record.question_key, answers_to, has_names, record.purged_before or "")


def _reports_agree(looked_at: _LookedAt) -> list[Finding]:
    """Check that every outcome, or the comparison with a check, follows from the bank's reports."""
    run, manifest = looked_at.run, looked_at.run.manifest
    providers = list(dict.fromkeys(report.provided_by for report in manifest.bank_reports))
    origin = Sentence("evidence.reports_provided", count=len(manifest.bank_reports), names=providers)
    found = [Finding(Sentence("evidence.reports"), origin)]
    is_answer = manifest.environment is Environment.BANK
    what = Sentence("evidence.answers" if is_answer else "evidence.comparison")
    if not looked_at.is_input:
        try:
            path = input_path(run.folder, manifest.input, None)
        except (UsageError, InputError):
            detail = Sentence("evidence.reports_need_input", file=manifest.input.name)
            return [*found, Finding(what, detail)]
        looked_at = _LookedAt(replace(looked_at.job, input_file=path), run, is_input=True)
    messages = [looked_at.original(part).as_message() for part in looked_at.parts()]
    if not is_answer:
        if agrees(run, messages, looked_at.rows):
            return [*found, Finding(what, Sentence("evidence.comparison_agrees"))]
        return [*found, Finding(what, Sentence("evidence.comparison_differs"), DIFFERS)]
    reports = kept_reports(run, messages)
    pairs = (
        (looked_at.rows(part).outcomes, _reported_again(looked_at, part, reports))
        for part in looked_at.parts()
    )
    return [*found, outcomes_agree(manifest, pairs)]


def _reported_again(looked_at: _LookedAt, part: RunPart, reports: Sequence[ReceivedReport]) -> Outcomes:
    """Derive the outcomes of a part from the bank's reports, numbered by the rows of the run."""
    manifest = looked_at.run.manifest
    valid = validate(looked_at.original(part).payments, routes_of(manifest.profile), manifest.input.positions)
    findings, planned = Findings(valid.rejects, valid.warnings), plan(valid.accepted)
    again = outcomes_again(looked_at.original(part).as_message(), findings, planned, reports)
    return Outcomes(again.with_columns(pl.col("row") + (part.first_row - 1)))


def _by_another_version(finding: Finding, manifest: Manifest) -> Finding:
    """Add a note to a finding that another version may have caused the difference."""
    made_by = manifest.tool_version
    if not finding.exit_code or made_by == _VERSION:
        return finding
    detail = Sentence("evidence.other_version", finding=finding.detail, version=made_by)
    return finding._replace(detail=detail)


def _splits(folder: Path, manifest: Manifest) -> list[Finding]:
    """Check that the existing files are those of the last split, and that it lost no payment."""
    if not manifest.splits:
        return []
    last = manifest.splits[-1]
    payments = [file for file in (last.release, last.hold) if file is not None]
    made = {file.name: file.sha256 for file in (*payments, last.reasons)}
    recorded_as = {file.name: file.sha256 for file in manifest.files if file.name in made}
    is_whole = (
        made == recorded_as
        and sum(file.row_count for file in payments) == manifest.input.row_count
        and added([file.totals for file in payments]) == manifest.totals
    )
    if not is_whole:
        unlike = Sentence("evidence.split_unlike", remedy=made_anew(folder / last.reasons.name))
        return [Finding(Sentence("evidence.split"), unlike, DIFFERS)]
    files = [Sentence("evidence.rows_in_file", count=file.row_count, file=file.name) for file in payments]
    detail = Sentence("evidence.split_by", name=last.by, time=Moment(last.time), files=files)
    again = Sentence("evidence.released_again", count=len(last.again_rows), rows=_some(last.again_rows))
    found = [detail, again] if last.again_rows else [detail]
    return [Finding(Sentence("evidence.split"), each) for each in found]


def _some(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows[:ROWS_NAMED_MAX])) + ("..." if len(rows) > ROWS_NAMED_MAX else "")


def _payments_agree(looked_at: _LookedAt) -> list[Finding]:
    """Check that the last split wrote the payments of the run, and released only what may be paid."""
    job, run = looked_at.job, looked_at.run
    manifest = run.manifest
    made = manifest.splits[-1] if manifest.splits else None
    is_message = isinstance(entry_before(manifest.input), MessageEntry)
    if made is None or (is_message and job.input_file is None):
        return []
    what, held_rows = Sentence("evidence.payments"), pl.Series(made.held_rows, dtype=pl.UInt32)
    summary = run.summary()
    roles: dict[Role, PaymentsEvidence | None] = {RELEASE: made.release, HOLD: made.hold}
    written: dict[Role, list[PaymentFile]] = {RELEASE: [], HOLD: []}
    unpaid, warned = list[int](), None
    for part in looked_at.parts():
        source, outcomes = looked_at.source(part), looked_at.rows(part).outcomes
        finished = FinishedRun(run.folder, summary, source, outcomes, manifest, part)
        writer = payments_writer(finished, job.input_file if is_message else None)
        held = outcomes["row"].is_in(held_rows.implode())
        for role, file in roles.items():
            mine = held if role == HOLD else ~held
            if mine.any() and file is not None:
                name = run.folder / (part.name if finished.is_data_set else file.name)
                write = partial(writer.part, mine, role)
                written[role].append(payments_in(io.BytesIO(), finished, name, write))
        warned = _warned_then(finished, made) if warned is None else warned
        unpaid += _not_to_be_paid(finished, made, warned)["row"].to_list()
    row_count = sum(file.row_count for files in written.values() for file in files)
    is_of_role = all(bool(written[role]) == (roles[role] is not None) for role in roles)
    if row_count != summary.input.row_count or not is_of_role:
        return [Finding(what, Sentence("evidence.split_other_rows"), DIFFERS)]
    for role, file in roles.items():
        if file is None or run.forgotten(file.name) is not None:
            continue
        rewritten = in_one(written[role], run.folder / file.name) if summary.parts else written[role][0]
        if rewritten.sha256 != file.sha256:
            differs = Finding(what, Sentence("evidence.other_payments", file=file.name), DIFFERS)
            return [_by_another_version(differs, manifest)]
    if unpaid:
        detail = Sentence("evidence.released_by_nobody", count=len(unpaid), rows=_some(unpaid))
        return [Finding(what, detail, DIFFERS)]
    return [Finding(what, Sentence("evidence.payments_agree"))]


def _warned_then(run: FinishedRun, made: SplitMade) -> Warned:
    """Return the warnings at the time of a split; a bank's report that came later stopped nothing."""
    warned = run.warned()
    if all(report.provided <= made.time for report in run.manifest.bank_reports):
        return warned
    return Warned(warned.filter(pl.col("code") != WarningCode.BANK_DIFFERS))


def _not_to_be_paid(run: FinishedRun, made: SplitMade, warned: Warned) -> pl.DataFrame:
    """Return rows that a split released against its policy and without a recorded decision."""
    decided = [
        (row, each.decision, each.why, each.by, each.time, None)
        for each in run.manifest.approvals
        if each.approved_at == made.time and each.decision is not None
        for row in each.rows
    ]
    decisions = pl.DataFrame(decided, DECISIONS, orient="row").unique("row", keep="last", maintain_order=True)
    found = split(run.outcomes, warned, made.policy, Decisions(decisions))
    return found.filter(~pl.col("row").is_in(made.held_rows), place=Verdict.HOLD)


def _approvals(folder: Path, manifest: Manifest) -> list[Finding]:
    approvals, what = approvals_of(folder), Sentence("evidence.approvals")
    if approvals != manifest.approvals:
        return [Finding(what, Sentence("evidence.approvals_unlike", approvals=APPROVALS), DIFFERS)]
    if (fault := _fault_of_approvals(manifest)) is not None:
        untrue = Sentence("evidence.approvals_untrue", fault=fault, approvals=APPROVALS)
        return [Finding(what, untrue, DIFFERS)]
    decided = [Finding(what, _decided(manifest))] if approvals else []
    shaped = manifest.splits[-1].shaped if manifest.splits else []
    return [*decided, *(Finding(Sentence("evidence.shaped"), _shaped(one)) for one in shaped)]


def _shaped(one: Shaped) -> Sentence:
    key = f"evidence.shaped_{one.act.name.lower()}"
    return Sentence(key, name=one.by, time=Moment(one.time), sha256=one.file)


def _fault_of_approvals(manifest: Manifest) -> Sentence | None:
    """Return a contradiction in the records of decisions and approvals; None if there is none."""
    splits = {split.time: split for split in manifest.splits}
    for number, approval in enumerate(manifest.approvals, start=1):
        if any(not 1 <= row <= manifest.input.row_count for row in approval.rows):
            return Sentence("evidence.decision_about_other_rows", number=number)
        if approval.approved_at < approval.time:
            return Sentence("evidence.decision_approved_before", number=number)
        is_same = approval.by.casefold() == approval.approved_by.casefold()
        if is_same and not approval.self_approved:
            return Sentence("evidence.decision_self_approved", number=number, name=approval.by)
        split = splits.get(approval.approved_at)
        if split is not None and (
            split.by != approval.approved_by or (approval.self_approved and not split.self_approved)
        ):
            return Sentence("evidence.decision_of_another_split", number=number, time=Moment(split.time))
    for split in manifest.splits:
        shapers = {one.by.casefold() for one in split.shaped}
        if not split.self_approved and split.by.casefold() in shapers:
            return Sentence("evidence.approved_by_shaper", name=split.by, time=Moment(split.time))
    return None


def _decided(manifest: Manifest) -> Sentence:
    approvals = manifest.approvals
    deciders = _names(each.by for each in approvals if each.rows)
    alone = any(each.self_approved for each in approvals)
    decided = "evidence.decided_alone" if alone else "evidence.decided"
    submitted = "evidence.submitted_alone" if alone else "evidence.submitted"
    return Sentence(
        decided if deciders else submitted,
        count=len(approvals),
        deciders=deciders or _names(each.by for each in approvals),
        approvers=_names(each.approved_by for each in approvals),
    )


def _names(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _tried(what: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """Return the findings of a check, or one that says why it is impossible."""
    try:
        return look()
    except (InputError, UsageError, OutputError) as error:
        return [Finding(Sentence(what), message, DIFFERS) for message in error.messages]
    except DiskError as error:
        return [Finding(Sentence(what), message, error.exit_code) for message in error.messages]
