"""Rewrite the reports of a finished run from the files in its folder, which is locked. Sends nothing."""

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import policy_today
from pipeline.errors import InputError, UsageError
from pipeline.files.signatures import Signer
from pipeline.jobs.verify import VerifyJob, require_verified
from pipeline.reports.documents import bank_report
from pipeline.runs import proof
from pipeline.runs.ended import EndedRun, changes_in, ended_run, pain001_of, reports_again
from pipeline.runs.manifest import keep_changed_workbook, refresh_manifest
from pipeline.wording import Sentence, speaking
from schemas.manifest import Adoption
from schemas.strict import timestamp
from schemas.summary import Summary


class BankReport(NamedTuple):
    """Requests the report for bank software."""

    input_file: Path | None  # the run's payment file; None: search with `input_path`


def report(  # noqa: PLR0913 (what is written, and how)
    folder: Path,
    sign_with: Path | None = None,
    *,
    adopt: str | None = None,
    for_bank: BankReport | None = None,
    language: str | None = None,
    now: datetime,
) -> tuple[Summary, str | None]:
    """Rewrite the reports of a run from the files in its folder.

    Returns the summary, and the new name of a workbook that people had changed, or None. An existing pain.002
    is kept unless a new one is requested. `adopt` is the reason for signing an unsigned folder as it is.
    `language` is recorded; None keeps it.

    Raises UsageError if there is no finished run, pain.001 or signing key, InputError if a source was changed
    or the folder to sign fails `verify`, ConfigurationError if the key cannot be read, LockedError if a run
    works there, and OutputError or DiskError if a file cannot be written or read.
    """
    run, file = ended_run(folder), ConfigurationFile()
    signer = None if adopt is None else _adopting_signer(run, sign_with, file, now=now)
    with proof.opened_to_read(folder, now=timestamp(now), alone=True):
        summary = run.summary()
        if adopt is None:
            signer = proof.signer_again(folder, run.manifest, sign_with, file)
        message = None if for_bank is None else pain001_of(folder, summary, for_bank.input_file)
        kept = keep_changed_workbook(folder)
        policy = policy_today(summary.profile, file)
        changes, warned = changes_in(folder, run.content), run.warned(summary)
        with speaking(language or run.manifest.language):
            _, written = reports_again(
                run, summary, changes=changes, warned=warned, rows_of=run.rows, policy=policy
            )
        if message is not None:
            written.append(bank_report(folder, summary, message, run.rows().outcomes, now=now))
        adoption = None if adopt is None else Adoption(time=timestamp(now), reason=adopt)
        names = [path.name for path in written]
        made = refresh_manifest(
            folder,
            run.manifest,
            now=now,
            written=names,
            made=adoption,
            decided=None if signer is None or adopt is not None else [],
            language=language,
        )
        proof.sign(folder, signer, made)
    return summary, kept


def _adopting_signer(run: EndedRun, key: Path | None, file: ConfigurationFile, *, now: datetime) -> Signer:
    """Return the signer of an adopted folder, which must be intact and still unsigned."""
    signer, folder = proof.named_signer(key, run.manifest.profile.name, file), run.folder
    require_verified(VerifyJob(folder), "jobs.not_adopted", now=now)
    if signer is None:
        raise UsageError(Sentence("jobs.adopt_without_key"), advice=Sentence("advice.name_signing_key"))
    if proof.was_signed_here(folder, run.manifest) and not proof.is_sealed_by(
        signer, folder, now=timestamp(now)
    ):
        raise InputError(
            Sentence("jobs.signed_here_before", folder=folder),
            advice=(Sentence("stores.restore_from_copy"), Sentence("advice.start_over")),
        )
    return signer
