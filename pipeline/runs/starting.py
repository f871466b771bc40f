"""The run's folder when a run starts and ends: the earlier run there, its files, and files to remove."""

import os
from collections.abc import Collection, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError, OtherRunError, OutputError, PrecheckError, UsageError
from pipeline.files.atomic import delete, partial_name
from pipeline.files.disk_errors import refuse_non_file, writing
from pipeline.files.folder_lock import locked, refuse_open, require_ours
from pipeline.files.plain import real_path
from pipeline.formats.registry import layout_before
from pipeline.rules.modulus import Modulus, same_tables
from pipeline.runs.folder import approvals_of, has_begun, ledger_of, outcome_file, outcome_files, read_summary
from pipeline.runs.manifest import identity_of, read_manifest, replaced_manifest
from pipeline.runs.request import CheckJob
from pipeline.stages.read import PaymentSource
from pipeline.stores.protocols import RunLedger
from pipeline.stores.sqlite.ledger_file import ledger_files
from pipeline.stores.sqlite.reader import ledger_reader
from pipeline.wording import Sentence
from schemas.folder import (
    APPROVALS,
    ATTENTION,
    CHANGES,
    MANIFEST,
    OPTIONAL,
    OTHER_NAMES,
    OUTCOMES,
    PAIN002,
    PAIN002_SIMULATED,
    PARTS,
    PAYEES,
    REASONS,
    REPORT_HTML,
    REPORTS,
    SIGNATURE,
    STORE,
    SUMMARY,
    files_of_review,
    pain002_name,
)
from schemas.outcomes import Environment
from schemas.summary import Summary

_OTHER_FOLDER = Sentence("advice.other_folder")


class PriorRun(NamedTuple):
    """An earlier run that the new one would replace, and never destroys."""

    folder: Path
    environment: Environment | None  # the kind of server that answered; None if the ledger is unreadable
    has_answers: bool
    profile: str | None  # the name of the run's profile; None if the run never ended

    @property
    def is_paid_for(self) -> bool:
        """True if a real server answered, or may have answered."""
        return self.has_answers and self.environment is not Environment.SANDBOX

    @property
    def is_kept(self) -> bool:
        """True if the run must be moved aside, to keep its answers or people's decisions and files."""
        was_reviewed = (self.folder / APPROVALS).exists() or any(files_of_review(self.folder))
        return self.is_paid_for or was_reviewed

    def require_replaceable(self, environment: Environment) -> None:
        """Refuse to replace a real run by a simulated one (OtherRunError)."""
        if environment is Environment.SANDBOX and self.is_paid_for:
            raise OtherRunError(
                Sentence("runs.would_replace_real_answers", folder=self.folder),
                advice=(*self._own_profile, _OTHER_FOLDER),
            )

    def refusal(self, refused: OtherRunError, environment: Environment, profile: str) -> OtherRunError:
        """Explain why another run cannot continue in this folder, and how to continue without loss."""
        is_lost = environment is Environment.SANDBOX and self.is_paid_for
        others = (_OTHER_FOLDER,) if is_lost else (_OTHER_FOLDER, Sentence("advice.start_over"))
        if self.profile in (None, profile):
            return OtherRunError(refused.reason, advice=others)
        reason = Sentence("runs.of_other_profile", folder=self.folder, profile=self.profile)
        return OtherRunError(reason, advice=(*self._own_profile, *others))

    @property
    def _own_profile(self) -> tuple[Sentence, ...]:
        return () if self.profile is None else (Sentence("advice.run_with_profile", profile=self.profile),)

    def move_aside(self, now: str) -> Path:
        """Move the folder aside, and return its new path (LockedError: in use; OutputError, DiskError)."""
        here = real_path(self.folder)
        if Path.cwd().is_relative_to(here):
            raise OutputError(Sentence("runs.is_current_folder", folder=self.folder), advice=_OTHER_FOLDER)
        with locked(self.folder, now, otherwise=(_OTHER_FOLDER,)):
            stamp = now[:19].replace(":", "")
            names = (f"{here.name}.{stamp}{'' if number == 1 else f'-{number}'}" for number in range(1, 1000))
            aside = next(path for path in map(here.with_name, names) if not path.exists())
            with writing(self.folder, otherwise=_OTHER_FOLDER):
                here.rename(aside)
        return self.folder.with_name(aside.name) if self.folder.name else aside


def earlier_run(folder: Path, now: str) -> PriorRun | None:
    """Return the run in a folder, or None."""
    if not has_begun(folder):
        return None
    manifest = replaced_manifest(folder)
    profile = None if manifest is None else manifest.profile.name
    try:
        with ledger_reader(ledger_of(folder), now=now) as record:
            counts = record.counts
            has_answers = counts.answer_count + counts.reused_count + record.finish_count > 0
            return PriorRun(folder, Environment(record.run.environment), has_answers, profile)
    except PrecheckError:
        return PriorRun(folder, None, has_answers=True, profile=profile)


def moved_from(folder: Path) -> list[Path]:
    """Find the earlier runs that were moved aside from a folder, oldest first."""
    stamp = f"{'[0-9]' * 4}-{'[0-9]' * 2}-{'[0-9]' * 2}T{'[0-9]' * 6}"
    return sorted(path for path in folder.parent.glob(f"{escape(folder.name)}.{stamp}*") if path.is_dir())


def folders(files: Sequence[Path], out: Path | None) -> dict[Path, Path]:
    """Return the folder of results for each file: `out` for a single file, otherwise one folder each.

    Files of the same name are distinguished by their folder's name: `jan-pay`, `feb-pay` (UsageError: two
    would share a folder if case is ignored; OutputError: any user can replace the folders in `out`).
    """
    if len(files) == 1:
        return {files[0]: out or Path(f"{files[0].stem}.precheck")}
    if out is not None:
        refuse_open(out, within=True)
    paths = [_absolute(file) for file in files]
    for file, path in zip(files, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(Sentence("runs.file_named_twice", file=file))
    shared = _repeated([path.stem for path in paths])
    apart = [
        f"{path.parent.name}-{path.stem}".removeprefix("-") if path.stem.casefold() in shared else path.stem
        for path in paths
    ]
    if still := _repeated(apart):
        alike = [str(file) for file, name in zip(files, apart, strict=True) if name.casefold() in still]
        raise UsageError(
            Sentence("runs.results_share_a_folder", alike=list(alike)),
            advice=Sentence("advice.check_one_at_a_time"),
        )
    targets = [out / name if out else Path(f"{name}.precheck") for name in apart]
    return dict(zip(files, targets, strict=True))


def _repeated(names: Sequence[str]) -> set[str]:
    """Return names that occur twice, in lower case because some disks ignore case."""
    folded = [name.casefold() for name in names]
    return {name for name in folded if folded.count(name) > 1}


def _absolute(file: Path) -> Path:
    """Return the absolute path without resolving links: a link keeps its own name."""
    return Path(os.path.normpath(file.absolute()))


def renamed_folders(folders: Mapping[Path, Path]) -> Sentence | None:
    """Name the files whose folders have other names than they do, in a sentence; None if there are none."""
    renamed = [
        Sentence("runs.file_to_folder", file=file, folder=folder)
        for file, folder in folders.items()
        for stem in [_absolute(file).stem]
        if folder.name not in (stem, f"{stem}.precheck")
    ]
    if len(folders) == 1 or not renamed:
        return None
    return Sentence("runs.folders_renamed", folders=renamed)


def finished_before(job: CheckJob, outcome_format: str | None, ledger: RunLedger) -> Summary | None:
    """Return the summary of an earlier run that finished, if its files still exist in this format."""
    finish = ledger.last_finish
    if finish is None or ledger.finished_at is None:
        return None
    try:
        summary = read_summary(job.out)
        manifest = read_manifest(job.out)
        hashes = {file.name: file.sha256 for file in manifest.files}
        wanted = [pain002_name(simulated=summary.simulated)] if job.pain002 else []
        unchanged = [*wanted, *(name for name in (SUMMARY, PAYEES, CHANGES) if name in hashes)]
        is_same = job.language in (None, manifest.language)
        if not is_same or any(hashes.get(name) != identity_of(job.out / name)[0] for name in unchanged):
            return None
        outcomes = job.out / OUTCOMES if outcome_format is None else outcome_file(job.out, outcome_format)
        if {identity_of(outcomes)[0], manifest.outcome_file.sha256} != {finish.outcome_sha256}:
            return None
    except (OSError, ValueError, UsageError, InputError):
        return None
    nothing = {"request_count": 0, "repeat_count": 0}
    calls = [
        call.model_copy(update={"answered_before_count": call.question_count - call.reused_count, **nothing})
        for call in summary.calls
    ]
    return summary.model_copy(update={"calls": calls})


def is_same_reading(
    summary: Summary, job: CheckJob, source: PaymentSource, compared_with: str | None, modulus: Modulus | None
) -> bool:
    """True if the run of this summary read its file, and compared it with runs and tables, as this would."""
    file, dialect = summary.input, source.dialect
    requested_before = None if summary.compared is None else summary.compared.requested
    before = (file.columns, file.decision, file.encoding, file.delimiter, file.sheet, file.format)
    now = (source.read_as, source.decision, dialect.encoding, dialect.delimiter, job.sheet, source.format)
    is_same = (*before, layout_before(file), requested_before) == (*now, source.layout, compared_with)
    return is_same and same_tables(summary.modulus, modulus)


def refuse_foreign_files(folder: Path, environment: Environment, *, now: str, fresh: bool) -> None:
    """Refuse, before any request, to replace other programs' files, or a real run by a simulated one.

    Raises OtherRunError for the latter, OutputError if any user can write to the folder, a file of ours is
    not plain or has no ledger, or the manifest's decisions cannot be read.
    """
    fixed = (SUMMARY, MANIFEST, SIGNATURE, *REPORTS, *OPTIONAL)
    others = (folder / name for name in fixed)
    written = (*outcome_files(folder).values(), *others)
    ledger = ledger_files(ledger_of(folder))
    # For a data set, files of a review are folders.
    review = (path for path in files_of_review(folder) if path.suffix != PARTS or path.is_symlink())
    for path in (*written, *review, folder / APPROVALS, folder / STORE, *ledger):
        refuse_non_file(path)
        refuse_non_file(partial_name(path))
    for path in written:
        if path.exists() and not fresh and not has_begun(folder):
            raise OutputError(
                Sentence("runs.file_of_no_run", path=path),
                advice=(Sentence("advice.other_folder"), Sentence("advice.replace_results")),
            )
    require_ours(folder)
    if fresh and (earlier := earlier_run(folder, now)) is not None:
        earlier.require_replaceable(environment)
    try:
        approvals_of(folder)
    except InputError as error:
        raise OutputError(error.reason, advice=(*error.advice, Sentence("advice.other_folder"))) from error


def remove_outdated(folder: Path) -> None:
    """Remove results whose answers are not in the new ledger."""
    # The workbook stays, because it may contain people's decisions.
    names = (SUMMARY, REASONS, REPORT_HTML, ATTENTION, OTHER_NAMES, PAIN002, PAIN002_SIMULATED)
    for path in (*outcome_files(folder).values(), *(folder / name for name in names)):
        path.unlink(missing_ok=True)


def remove_stale(folder: Path, written: Collection[Path]) -> None:
    """Remove files of an earlier run that the new one did not replace."""
    for path in (*outcome_files(folder).values(), *(folder / name for name in OPTIONAL)):
        if path not in written:
            path.unlink(missing_ok=True)
    # Files that `precheck fix` and `precheck split` made from earlier answers are outdated, too.
    for path in files_of_review(folder):
        delete(path)
