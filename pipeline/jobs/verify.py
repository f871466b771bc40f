"""Whether the folder of a run is as the run left it, and whether all of it agrees. Nothing is sent.

The questions are planned again from the payment file, or from the outcome file where the payment file is not
at hand, by the settings in the manifest; the ledger must have answered them as the outcome file says.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from pydantic import SecretStr

from pipeline.errors import DiskError, InputError, OutputError, UsageError
from pipeline.files.signatures import PublicKey, is_signed
from pipeline.formats import format_as_read
from pipeline.reports.documents import Rows
from pipeline.reports.wording import counted
from pipeline.rules.totals import added
from pipeline.runs.approvals import approvals_of
from pipeline.runs.ended import EndedRun, ended_run
from pipeline.runs.evidence import (
    DIFFERS,
    Finding,
    LedgerAnswers,
    LedgerContents,
    answers_agree,
    cells_agree,
    file_agrees,
    ledger_agrees,
    rows_agree,
    summary_agrees,
)
from pipeline.runs.folder import opened_to_read, read_summary
from pipeline.runs.manifest import identity_of, purged, unrecorded
from pipeline.runs.profile_used import routes_of
from pipeline.stages.plan import plan
from pipeline.stages.read import PaymentSource, read
from pipeline.stages.validate import validate
from pipeline.stores.sqlite.reader import LedgerReader
from pipeline.wording import Sentence, SurfaceKind
from schemas.folder import APPROVALS, MANIFEST, SIGNATURE, made_anew
from schemas.manifest import Manifest
from schemas.strict import timestamp
from schemas.verification import Verification, VerifiedItem

_VERSION = version("payee-precheck")


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """Which folder to look at, and what there is beside it to compare it with."""

    folder: Path
    input_file: Path | None = None
    config: Path | None = None
    """Where the profile of the run has the key of its ledger; None: the usual configuration."""
    signed_by: Path | None = None
    """The public key of who must have signed the manifest; None: nobody must."""
    asks_again: bool = True
    """Whether the questions are planned again; otherwise answers are looked for by their ids alone."""


def verify(job: VerifyJob, *, now: datetime, kind: SurfaceKind = SurfaceKind.ANY) -> list[Finding]:
    """Check that nothing in the folder of a run was changed since, and that all of it agrees.

    Returns:
        One finding per thing looked at, in order. What differs in one does not hide another.

    Raises:
        UsageError: it is no folder of a run that has ended, or the public key lies in it.
        ConfigurationError: the public key cannot be used.
        InputError: the payment file cannot be read.
        LockedError: a run works in the folder.
    """
    folder, tried = job.folder, partial(_tried, kind)
    run = ended_run(folder)
    manifest = run.manifest
    written = manifest.written[:16].replace("T", " ")
    findings = [Finding("manifest", f"of {manifest.input.name}, written {written} UTC")]
    findings += _signature(job)
    is_input = False
    if job.input_file is not None:
        findings.append(_as_checked(job.input_file, manifest))
        is_input = not findings[-1].exit_code
    original = cache(lambda: _original(job, manifest)) if is_input else None
    rows = cache(lambda: run.rows(changed=True))
    files = (manifest.outcome_file, *manifest.files)
    findings += [file_agrees(folder / file.name, file, purged(manifest, file.name)) for file in files]
    findings += _splits(folder, manifest)
    findings += tried("approvals", lambda: _approvals(folder, manifest))
    findings += tried("summary", lambda: [summary_agrees(manifest, read_summary(folder))])
    if (forgotten := run.forgotten(run.outcome_file.name)) is not None:
        what = f"cannot be counted again: {manifest.outcome_file.name} was {forgotten}"
        findings.append(Finding("rows", what))
    else:
        findings += tried("rows", lambda: rows_agree(manifest, rows().payments, rows().outcomes))
        if original is not None:
            findings += tried("cells", lambda: _cells_agree(manifest, original(), rows()))
    findings += tried("ledger", lambda: _ledger_agrees(job, run, original, rows, now))
    if others := sorted(unrecorded(folder, manifest)):
        findings.append(Finding("also here", f"{', '.join(others)}; no part of the evidence"))
    return findings


def _signature(job: VerifyJob) -> list[Finding]:
    """Whether the manifest is signed by who should have signed it."""
    folder, path = job.folder, job.signed_by
    if path is None:
        there = f"{SIGNATURE} is there; --signed-by PUBLIC_KEY says whether it is good"
        return [Finding("signature", there)] if is_signed(folder) else []
    if path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            Sentence("jobs.lies_folder_prove", path=path),
            advice=Sentence("jobs.key_from_who"),
        )
    key = PublicKey.read(path)
    if not is_signed(folder):
        return [Finding("signature", f"none: there is no {SIGNATURE}", DIFFERS)]
    if not key.verifies(folder):
        differs = f"not by {path}: {MANIFEST} was changed since it was signed, or another key signed it"
        return [Finding("signature", f"{differs}; nothing below proves anything", DIFFERS)]
    return [Finding("signature", f"{MANIFEST} is signed by {path}, key sha256 {key.fingerprint}")]


def verification(findings: Iterable[Finding]) -> Verification:
    """Findings as a document."""
    found = [VerifiedItem(what=each.what, well=not each.exit_code, said=each.said) for each in findings]
    return Verification(well=all(each.well for each in found), findings=found)


def _as_checked(path: Path, manifest: Manifest) -> Finding:
    """Whether a payment file is the one that the run checked."""
    try:
        sha256, _ = identity_of(path)
    except OSError as error:
        raise InputError(Sentence("jobs.cannot_read_check", path=path, why=error.strerror)) from error
    if sha256 != manifest.input.sha256:
        differs = f"{path.name} is not the file that was checked; give --input the one that was"
        return Finding("input", differs, DIFFERS)
    return Finding("input", f"{path.name} is the file that was checked, sha256 {sha256[:16]}...")


def _original(job: VerifyJob, manifest: Manifest) -> PaymentSource:
    """The payment file, read as the run read it."""
    assert job.input_file is not None
    recorded = manifest.input
    encoding = None if recorded.encoding == "utf-8" else recorded.encoding
    return read(
        job.input_file,
        mapping=manifest.mapping,
        encoding=encoding,
        sheet=recorded.sheet,
        format_choice=format_as_read(recorded),
    )


def _cells_agree(manifest: Manifest, source: PaymentSource, rows: Rows) -> list[Finding]:
    name, recorded = manifest.input.name, manifest.input.decision
    found = [cells_agree(name, source.original, rows.original, manifest.input.places)]
    if dict(source.decision) != recorded:
        fields = sorted(
            field
            for field in {*recorded, *source.decision}
            if recorded.get(field) != source.decision.get(field)
        )
        differs = f"another column of {name} than the manifest says is read as {', '.join(fields)}"
        found.append(Finding("columns", f"{differs}{_by_another_version(manifest)}", DIFFERS))
    return found


def _ledger_agrees(
    job: VerifyJob,
    run: EndedRun,
    original: Callable[[], PaymentSource] | None,
    rows: Callable[[], Rows],
    now: datetime,
) -> list[Finding]:
    manifest = run.manifest
    with opened_to_read(run.folder, now=timestamp(now)) as record:
        kept = LedgerContents(record.run, record.counts, record.last_finish, record.answers())
        if run.forgotten(run.outcome_file.name) is not None:
            return ledger_agrees(manifest, kept, None)
        if not job.asks_again:
            return ledger_agrees(manifest, kept, rows().outcomes)
        payments = rows().payments if original is None else original().payments
        validated = validate(payments, routes_of(manifest.profile), manifest.input.places)
        known = _known(record, run.key_of_names(record, job.config))
        agree = answers_agree(manifest, plan(validated.accepted), rows().outcomes, known)
        return [
            *ledger_agrees(manifest, kept, None),
            *(
                each._replace(said=each.said + _by_another_version(manifest)) if each.exit_code else each
                for each in agree
            ),
        ]


def _known(record: LedgerReader, secret: SecretStr | None) -> LedgerAnswers:
    has_names = secret is not None or not record.is_encrypted
    answers = record.answers_with_names(secret) if has_names else record.answers()
    return LedgerAnswers(record.question_key, answers, has_names, record.purged_before or "")


def _by_another_version(manifest: Manifest) -> str:
    """What else a difference may come from."""
    made_by = manifest.tool_version
    return "" if made_by == _VERSION else f"; the run was made by version {made_by}: verify it with that one"


def _splits(folder: Path, manifest: Manifest) -> list[Finding]:
    """Whether the last split made the files that are there, and lost no payment."""
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
        anew = made_anew(folder / last.reasons.name)
        return [Finding("split", f"its files are not those on record, or lack payments; {anew}", DIFFERS)]
    files = " and ".join(f"{counted(file.row_count, 'row')} in {file.name}" for file in payments)
    return [Finding("split", f"by {last.by} at {last.time[:16].replace('T', ' ')} UTC: {files}")]


def _approvals(folder: Path, manifest: Manifest) -> list[Finding]:
    approvals = approvals_of(folder)
    if approvals != manifest.approvals:
        differs = f"{APPROVALS} says something else than the manifest; bring both back from copies"
        return [Finding("approvals", differs, DIFFERS)]
    if (fault := _fault_of_approvals(manifest)) is not None:
        return [
            Finding("approvals", f"{fault}; bring {APPROVALS} and the manifest back from copies", DIFFERS)
        ]
    return [Finding("approvals", _approvals_told(manifest))] if approvals else []


def _fault_of_approvals(manifest: Manifest) -> str | None:
    """What cannot be true of who decided and who approved; None where nothing is."""
    splits = {split.time: split for split in manifest.splits}
    for number, approval in enumerate(manifest.approvals, start=1):
        if any(not 1 <= row <= manifest.input.row_count for row in approval.rows):
            return f"decision {number} is about rows that the file does not have"
        if approval.approved_at < approval.time:
            return f"decision {number} was approved before it was made"
        is_same = approval.by.casefold() == approval.approved_by.casefold()
        if is_same and not approval.self_approved:
            return f"{approval.by} made decision {number}, and approved it as if somebody else had"
        split = splits.get(approval.approved_at)
        if split is not None and (
            split.by != approval.approved_by or (approval.self_approved and not split.self_approved)
        ):
            return f"the split at {split.time} names another approval than decision {number}"
    return None


def _approvals_told(manifest: Manifest) -> str:
    """How many decisions there are, whose they are, and who approved them."""
    approvals = manifest.approvals
    told = [f"{len(approvals):,}, as recorded"]
    if deciders := _names(each.by for each in approvals if each.rows):
        told.append(f"decided by {deciders}")
    else:
        told.append(f"no decision on any row; submitted by {_names(each.by for each in approvals)}")
    is_own = any(each.self_approved for each in approvals)
    approvers = _names(each.approved_by for each in approvals)
    told.append(f"approved by {approvers}" + (", self-approved" if is_own else ", four eyes"))
    return "; ".join(told)


def _names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _tried(kind: SurfaceKind, what: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """What a look finds, or why nothing can be seen."""
    try:
        return look()
    except (InputError, UsageError, OutputError) as error:
        return [Finding(what, error.sentence(kind), DIFFERS)]
    except DiskError as error:
        return [Finding(what, error.sentence(kind), error.exit_code)]
